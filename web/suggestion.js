/** Reads the strings of the header Search-Suggestion: a structured field (RFC 9651) whose content is percent-encoded. */
export function listed(value) {
  return [...value.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => decodeURIComponent(text.replace(/\\(.)/g, "$1")));
}
