import type { RateLimit } from "./resources.js";

export function rateLimit(headers: Headers): RateLimit {
  return {
    limit: integer(headers.get("RateLimit-Limit")),
    remaining: integer(headers.get("RateLimit-Remaining")),
    reset: integer(headers.get("RateLimit-Reset")),
  };
}

/** Reads seconds or a date (RFC 9110, section 10.2.3); 0 for anything else. Of several lines, which fetch joins, the first counts if it is seconds. */
export function retryAfter(value: string | null): number {
  const seconds = integer(value?.replace(/^(\d+) *,.*/, "$1") ?? null) ?? (date(value ?? "") - Date.now()) / 1000;
  return seconds > 0 ? seconds : 0;
}

/** Reads one of HTTP's three forms of a date in milliseconds (RFC 9110, section 5.6.7). The last names no zone: all are of UTC. */
function date(value: string): number {
  return /:\d\d (GMT|\d{4})$/.test(value) ? Date.parse(value.replace(/ GMT$/, "") + " GMT") : NaN;
}

/** Reads a list of strings (RFC 9651, section 3.1), percent-encoded beyond ASCII. */
export function suggestions(value: string | null): string[] {
  const names: string[] = [];
  let rest = (value ?? "").trim();
  while (rest) {
    const match = /^"((?:[^"\\]|\\.)*)"\s*(?:,\s*|$)/.exec(rest);
    if (!match) return [];
    const name = match[1]!.replace(/\\(.)/g, "$1");
    try {
      names.push(decodeURIComponent(name));
    } catch {
      names.push(name);
    }
    rest = rest.slice(match[0].length);
  }
  return names;
}

function integer(value: string | null): number | null {
  return value !== null && /^\s*[-+]?\d+\s*$/.test(value) ? Number(value) : null;
}
