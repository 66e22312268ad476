import { ApiError, RegedgeError, UnansweredError } from "./errors.js";
import { rateLimit, retryAfter, suggestions } from "./headers.js";
import type { Company, Director, Llp, Match, Result } from "./resources.js";

/** The public key for trying the API. It costs nothing. */
export const SANDBOX_KEY = "reg_sandbox_public";

/** Where `regedge dev` listens. */
export const DEFAULT_BASE_URL = "http://127.0.0.1:8080";

/** The longest pause before the first retry in milliseconds; it doubles up to longestPause. */
const firstPause = 250;
const longestPause = 8_000;
/** The longest that a timer takes; a longer one ends at once. */
const longestTimer = 2 ** 31 - 1;

/** Bytes; four times the longest answer of the service. */
const maxBody = 1 << 20;

export interface ClientOptions {
  /** The address of the service, without /v1. */
  baseUrl?: string | undefined;
  /** A live key, or SANDBOX_KEY, the default. A live key does not belong into a web page. */
  apiKey?: string | undefined;
  /** Milliseconds for one attempt, from connecting to the last byte. The default is 10,000. */
  timeout?: number | undefined;
  /** How often a call is repeated at most. The default is 3; 0 for never. */
  maxRetries?: number | undefined;
  /**
   * The longest pause before a retry in milliseconds; the default is 30,000. When the service asks for a
   * longer one (a monthly volume that is used up), its error is thrown at once.
   */
  maxWait?: number | undefined;
  /** Sent with each request, for example a traceparent. */
  headers?: Record<string, string> | undefined;
  /** Sends the requests; the default is the global fetch. */
  fetch?: typeof fetch | undefined;
}

export interface CallOptions {
  /** Ends the call, with its attempts and pauses. */
  signal?: AbortSignal | undefined;
  /**
   * 1 to 64 printable ASCII characters. Without it each call has a random one. Give one to
   * repeat a call that threw an UnansweredError without being charged twice.
   */
  idempotencyKey?: string | undefined;
}

export interface SearchOptions extends CallOptions {
  /** The most matches to return, 1 to 10; 5 when absent. */
  limit?: number | undefined;
}

/** Options with their defaults. */
type Settings = { [Name in keyof ClientOptions]-?: NonNullable<ClientOptions[Name]> };

/**
 * Calls the API. An answer that is not a success is thrown as ApiError.
 *
 * A call is repeated when the connection breaks, when an attempt takes longer than the timeout, and
 * after 408, 429 and 5xx. All attempts of a call carry the same Idempotency-Key, so that a lookup
 * whose answer was lost is not charged again by the edge that answered it.
 */
export class Client {
  readonly #options: Settings;

  constructor(options: ClientOptions = {}) {
    // An option that is undefined, as an environment variable that is not set, takes its default.
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const all = {
      baseUrl: DEFAULT_BASE_URL,
      apiKey: SANDBOX_KEY,
      timeout: 10_000,
      maxRetries: 3,
      maxWait: 30_000,
      headers: {},
      fetch: globalThis.fetch.bind(globalThis),
      ...given,
    };
    if (!isAddress(all.baseUrl)) {
      throw new TypeError(`baseUrl: want an address such as ${DEFAULT_BASE_URL}, got ${JSON.stringify(all.baseUrl)}`);
    }
    if (/[?#]/.test(all.baseUrl)) {
      throw new TypeError(`baseUrl: want the address without ? and #; got ${JSON.stringify(all.baseUrl)}`);
    }
    if (/\/v1\/*$/.test(all.baseUrl)) {
      throw new TypeError(`baseUrl: want the address without /v1, which each call adds; got ${JSON.stringify(all.baseUrl)}`);
    }
    if (typeof all.apiKey !== "string" || !/^[!-~]+$/.test(all.apiKey)) {
      throw new TypeError("apiKey: it is empty, or has a character that no key has, such as a line end");
    }
    if (!(all.timeout > 0) || !(all.maxRetries >= 0) || !(all.maxWait >= 0)) {
      throw new RangeError("timeout must be positive; maxRetries and maxWait must not be negative");
    }
    const headers = new Headers(all.headers ?? {}); // throws a TypeError for what no header takes
    for (const name of ["authorization", "idempotency-key"]) headers.delete(name); // those of the call would be joined to them
    this.#options = { ...all, headers: Object.fromEntries(headers), baseUrl: all.baseUrl.replace(/\/+$/, "") };
  }

  /** Returns a company by its CIN (21 characters, any case). */
  async company(cin: string, options: CallOptions = {}): Promise<Result<Company>> {
    return this.#call(`/v1/companies/${segment("cin", cin)}`, options);
  }

  /** Returns a director by DIN (1 to 8 digits). */
  async director(din: string, options: CallOptions = {}): Promise<Result<Director>> {
    return this.#call(`/v1/directors/${segment("din", din)}`, options);
  }

  /** Returns an LLP by its LLPIN (three letters, four digits, a hyphen or none between them). */
  async llp(llpin: string, options: CallOptions = {}): Promise<Result<Llp>> {
    return this.#call(`/v1/llps/${segment("llpin", llpin)}`, options);
  }

  /**
   * Returns companies and LLPs whose names match, best first. When nothing matches, data is
   * empty, the call is free, and suggestions may have names that were perhaps meant.
   */
  async search(name: string, options: SearchOptions = {}): Promise<Result<Match[]>> {
    const query = new URLSearchParams({ name: text("name", name) });
    if (options.limit !== undefined) query.set("limit", String(options.limit));
    return this.#call(`/v1/search/companies?${query}`, options);
  }

  /** Returns the LLP with exactly this LLPIN, or an empty list. */
  async findLlp(llpin: string, options: CallOptions = {}): Promise<Result<Match[]>> {
    return this.#call(`/v1/search/llps?${new URLSearchParams({ llpin: text("llpin", llpin) })}`, options);
  }

  async #call<T>(target: string, options: CallOptions): Promise<Result<T>> {
    const key = options.idempotencyKey || randomKey(); // an empty one is none, as in the other libraries
    new Headers({ "Idempotency-Key": key }); // throws a TypeError at once if no header takes the key
    for (let attempts = 1; ; attempts++) {
      const last = attempts > this.#options.maxRetries;
      let pause = Math.min(randomPause(attempts), this.#options.maxWait);
      let failure: RegedgeError;
      try {
        const response = await this.#attempt(target, key, options.signal);
        if (response.status === 200) return result<T>(response, attempts);
        const problem = problemOf(response, attempts, key);
        pause = Math.max(pause, problem.retryAfter * 1000);
        if (!retryable(problem.status) || pause > this.#options.maxWait) throw problem;
        failure = problem;
      } catch (error) {
        options.signal?.throwIfAborted();
        if (error instanceof RegedgeError) throw error;
        failure = new UnansweredError(error, key, attempts);
      }
      if (last) throw failure;
      await sleep(pause, options.signal);
    }
  }

  /** Sends the call once. Throws when no whole answer arrives. */
  async #attempt(target: string, key: string, signal: AbortSignal | undefined): Promise<Answer> {
    const { baseUrl, apiKey, headers, timeout, fetch } = this.#options;
    const limit = new AbortController();
    const abort = () => limit.abort(signal?.reason);
    const timer = setTimeout(() => limit.abort(new Error(`no answer within ${timeout} ms`)), Math.min(timeout, longestTimer));
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    try {
      const response = await fetch(baseUrl + target, {
        headers: { ...headers, Authorization: `Bearer ${apiKey}`, "Idempotency-Key": key },
        redirect: "manual", // the API has none, and a key must not go elsewhere
        signal: limit.signal,
      });
      return { status: response.status, headers: response.headers, body: await textOf(response) };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

/** Whether a call can be sent to an address. Otherwise fetch would fail as it does without a connection, after all attempts. */
function isAddress(baseUrl: unknown): boolean {
  if (typeof baseUrl !== "string" || !/^https?:\/\/[^/]/i.test(baseUrl)) return false;
  try {
    const { username, password } = new URL(`${baseUrl}/`);
    return !username && !password; // fetch takes neither
  } catch {
    return false;
  }
}

/** Refuses what is no string: undefined would be searched for as a name, and charged. */
function text(parameter: string, value: string): string {
  if (typeof value !== "string") throw new TypeError(`${parameter}: want a string, got ${value}`);
  return value;
}

function segment(parameter: string, value: string): string {
  return encodeURIComponent(text(parameter, value));
}

/** A response that arrived whole. */
interface Answer {
  status: number;
  headers: Headers;
  body: string;
}

/** Reads a body, and throws when it has no end. */
async function textOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let size = 0; reader; ) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > maxBody) {
      await reader.cancel().catch(() => {});
      throw new Error(`the answer is longer than ${maxBody} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function retryable(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** 128 random bits. crypto.randomUUID is missing in pages that came by plain HTTP. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Exponential backoff with jitter, so that clients that failed together don't retry together. */
function randomPause(attempts: number): number {
  const longest = Math.min(longestPause, firstPause * 2 ** (attempts - 1));
  return longest * (0.5 + Math.random() / 2);
}

function sleep(pause: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, Math.min(pause, longestTimer));
    signal?.addEventListener("abort", done);
    if (signal?.aborted) done();
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    }
  });
}

function result<T>({ headers, body }: Answer, attempts: number): Result<T> {
  const id = headers.get("X-Request-Id");
  const what = id ? `the answer of ${id}` : "an answer that is not of this service";
  let envelope: { data?: T | null; meta?: { request_id: string; credits_remaining: number | null; sandbox: boolean } };
  try {
    envelope = JSON.parse(body);
  } catch (cause) {
    throw new RegedgeError(`read ${what}: ${(cause as Error).message}`, { cause });
  }
  if (envelope?.data == null || !envelope.meta) {
    throw new RegedgeError(`read ${what}: it has no data or no meta`);
  }
  return {
    data: envelope.data,
    requestId: envelope.meta.request_id,
    creditsRemaining: envelope.meta.credits_remaining,
    sandbox: envelope.meta.sandbox,
    rateLimit: rateLimit(headers),
    release: headers.get("X-Registry-Release") ?? "",
    replayed: headers.get("Idempotent-Replayed") === "true",
    suggestions: suggestions(headers.get("Search-Suggestion")),
    attempts,
  };
}

function problemOf({ status, headers, body }: Answer, attempts: number, key: string): ApiError {
  let document: Record<string, unknown> | null = null;
  try {
    document = JSON.parse(body);
  } catch {
    // Not an answer of the service: the status says all that is known.
  }
  const text = (name: string) => (typeof document?.[name] === "string" ? document[name] : "");
  return new ApiError(
    status,
    text("code"),
    text("type"),
    text("title"),
    text("detail"),
    headers.get("X-Request-Id") ?? "",
    retryAfter(headers.get("Retry-After")),
    rateLimit(headers),
    attempts,
    key,
  );
}
