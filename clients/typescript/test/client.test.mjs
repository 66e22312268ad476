// Run by `npm test` in clients/typescript.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ApiError, Client, UnansweredError } from "../dist/index.js";
import { rateLimit, retryAfter, suggestions } from "../dist/headers.js";

const match = JSON.stringify({
  data: [{ value: "AAA-0001", label: "A", type: "llp" }],
  meta: { request_id: "01", credits_remaining: 9, sandbox: false },
});

/** Answers the n-th attempt with the n-th step, and every later one with the last. */
async function serve(t, ...steps) {
  const keys = [];
  const urls = [];
  const server = createServer((request, response) => {
    urls.push(request.url);
    keys.push(request.headers["idempotency-key"]);
    steps[Math.min(keys.length, steps.length) - 1](response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${server.address().port}`;
  return { keys, urls, baseUrl, client: (options = {}) => new Client({ baseUrl, ...options }) };
}

const found = (response) => response.end(match);

/** Breaks the connection in the middle of an answer. */
function lost(response) {
  response.writeHead(200, { "Content-Length": match.length });
  response.write(match.slice(0, 20), () => response.destroy());
}

const problem = (status, code, retryAfter) => (response) => {
  response.writeHead(status, { "X-Request-Id": "01ID", ...(retryAfter && { "Retry-After": retryAfter }) });
  response.end(JSON.stringify({ type: "t", title: "T", detail: "D", status, code }));
};

test("a lost answer is asked for again under the same idempotency key", async (t) => {
  const replayed = (response) => {
    response.setHeader("Idempotent-Replayed", "true");
    found(response);
  };
  const service = await serve(t, lost, problem(503, "overloaded", 1), replayed);
  const begun = Date.now();
  const result = await service.client().findLlp("AAA-0001");
  assert.ok(Date.now() - begun >= 1000, "the pause is at least the Retry-After");
  assert.deepEqual([result.attempts, result.replayed, result.creditsRemaining, result.data[0].label], [3, true, 9, "A"]);
  assert.equal(new Set(service.keys).size, 1);
  assert.match(service.keys[0], /^[0-9a-f]{32}$/);
  await service.client().findLlp("AAA-0001");
  assert.equal(new Set(service.keys).size, 2, "another call has a key of its own");
});

for (const [status, code, wait] of [
  [404, "llp_not_found"],
  [402, "insufficient_credits"],
  [422, "idempotency_key_reused"],
  [429, "monthly_volume_exceeded", 86400],
  [429, "rate_limit_exceeded", 31], // longer than maxWait by default
]) {
  test(`${code} is thrown at once`, async (t) => {
    const service = await serve(t, problem(status, code, wait));
    const error = await service.client().llp("AAA-0001").catch((error) => error);
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.code, error.requestId, error.detail], [status, code, "01ID", "D"]);
    assert.equal(error.message, `${status} ${code}: D (request 01ID)`);
    assert.equal(service.keys.length, 1);
  });
}

for (const status of [408, 429, 500, 502, 503, 504, 520]) {
  test(`${status} is retried`, async (t) => {
    const service = await serve(t, problem(status, "x"), found);
    assert.equal((await service.client({ maxWait: 1 }).findLlp("AAA-0001")).attempts, 2);
  });
}

test("a pause is at most maxWait", async (t) => {
  const service = await serve(t, lost, problem(503, "overloaded"), problem(503, "overloaded", 1));
  const error = await service.client({ maxWait: 999 }).company("x").catch((error) => error);
  assert.deepEqual([error.attempts, error.retryAfter], [3, 1], "a longer one is not waited for");
  const other = await serve(t, lost, problem(503, "overloaded"), found);
  assert.equal((await other.client({ maxWait: 0 }).findLlp("AAA-0001")).attempts, 3, "a short one is waited for");
});

test("what is asked for", async (t) => {
  const { baseUrl, urls } = await serve(t, found);
  const client = new Client({ baseUrl: baseUrl + "/api//" });
  for (const method of ["company", "director", "llp"]) await client[method]("a/b?c");
  await client.search("a & b", { limit: 1 });
  assert.deepEqual(urls, [
    ...["companies", "directors", "llps"].map((kind) => `/api/v1/${kind}/a%2Fb%3Fc`),
    "/api/v1/search/companies?name=a+%26+b&limit=1",
  ]);
});

test("what is no string is not sent", async (t) => {
  const { baseUrl, urls } = await serve(t, found);
  const client = new Client({ baseUrl });
  for (const method of ["company", "director", "llp", "search", "findLlp"])
    for (const value of [undefined, null, 1234567])
      await assert.rejects(client[method](value), { name: "TypeError", message: /want a string, got/ }, `${method}(${value})`);
  assert.deepEqual(urls, []);
});

test("headers of the options replace none of the call", async () => {
  const headers = { Authorization: "Bearer other", "Idempotency-Key": "other", traceparent: "00-trace" };
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  let sent;
  const fetch = async (_, init) => ((sent = new Headers(init.headers)), new Response(match));
  for (const given of [headers, lower]) {
    await new Client({ headers: given, fetch, apiKey: "mine" }).findLlp("x", { idempotencyKey: "own" });
    assert.deepEqual(["Authorization", "Idempotency-Key", "traceparent"].map((name) => sent.get(name)), [
      "Bearer mine",
      "own",
      "00-trace",
    ]);
  }
});

test("pauses are random, from half of what doubles to the whole", async (t) => {
  const pauses = [];
  t.mock.method(globalThis, "setTimeout", (done, pause) => {
    if (pause !== 10_000) pauses.push(pause); // the time-out of an attempt
    queueMicrotask(done);
  });
  await new Client({ fetch: async () => new Response("{}", { status: 503 }), maxRetries: 7 }).company("x").catch(() => {});
  const bounds = [250, 500, 1000, 2000, 4000, 8000, 8000];
  assert.equal(pauses.length, bounds.length);
  pauses.forEach((pause, i) => assert.ok(bounds[i] / 2 <= pause && pause <= bounds[i], String(pauses)));
  assert.notDeepEqual(pauses, bounds);
});

test("no timer is longer than the longest, after which it would end at once", async (t) => {
  const pauses = [];
  t.mock.method(globalThis, "setTimeout", (done, pause) => {
    pauses.push(pause);
    queueMicrotask(done);
  });
  const month = 30 * 24 * 3600;
  const fetch = async () => new Response("{}", { status: 429, headers: { "Retry-After": String(month) } });
  await new Client({ fetch, timeout: Infinity, maxWait: Infinity, maxRetries: 1 }).company("x").catch(() => {});
  assert.deepEqual(pauses, Array(3).fill(2 ** 31 - 1), "an attempt, a pause and an attempt");
});

test("an attempt may take any time", async (t) => {
  const service = await serve(t, (response) => setTimeout(found, 50, response));
  assert.equal((await service.client({ timeout: Infinity }).findLlp("AAA-0001")).attempts, 1);
});

test("a call leaves no timer and no listener", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const { signal } = new AbortController();
  const answers = [new Response("{}", { status: 503 }), new Response(match)];
  await new Client({ fetch: async () => answers.shift(), maxWait: 1 }).findLlp("x", { signal });
  assert.deepEqual([timers(), getEventListeners(signal, "abort").length], [before, 0]);
});

test("retries end", async (t) => {
  const service = await serve(t, problem(503, "registry_unavailable"));
  const error = await service.client({ maxRetries: 1 }).company("x").catch((error) => error);
  assert.deepEqual([error.code, error.attempts, service.keys.length], ["registry_unavailable", 2, 2]);
});

test("a key that no header takes is refused at once", async (t) => {
  const service = await serve(t, lost);
  const error = await service.client().director("1", { idempotencyKey: "a\nb" }).catch((error) => error);
  assert.ok(error instanceof TypeError, String(error));
  assert.deepEqual(service.keys, []);
});

test("a call without an answer says under which key to ask again", async (t) => {
  const service = await serve(t, lost);
  const client = service.client({ maxRetries: 1 });
  const error = await client.director("1", { idempotencyKey: "mine" }).catch((error) => error);
  assert.ok(error instanceof UnansweredError, String(error));
  assert.deepEqual([error.idempotencyKey, error.attempts], ["mine", 2]);
  const closed = createServer();
  await new Promise((done) => closed.listen(0, "127.0.0.1", done));
  const { port } = closed.address();
  await new Promise((done) => closed.close(done));
  const nobody = new Client({ baseUrl: `http://127.0.0.1:${port}`, maxRetries: 0 });
  const refused = await nobody.director("1").catch((error) => error);
  assert.match(refused.message, /^no answer after 1 attempts: fetch failed: .*ECONNREFUSED/);
});

test("a problem after a lost answer says under which key to ask again", async (t) => {
  const service = await serve(t, lost, problem(503, "overloaded"));
  const error = await service.client({ maxRetries: 1 }).director("1").catch((error) => error);
  assert.ok(error instanceof ApiError, String(error));
  assert.deepEqual([error.idempotencyKey, error.attempts], [service.keys[0], 2]);
});

test("an attempt that hangs is repeated", async (t) => {
  const service = await serve(t, () => {}, found);
  const result = await service.client({ timeout: 200, maxRetries: 20 }).findLlp("AAA-0001");
  assert.ok(result.attempts >= 2, "more on a busy machine");
});

test("a signal ends a call, also while it waits", async (t) => {
  const service = await serve(t, problem(503, "overloaded", 20));
  const call = service.client().search("name", { signal: AbortSignal.timeout(50) });
  await assert.rejects(call, { name: "TimeoutError" });
  const aborted = service.client().search("name", { signal: AbortSignal.abort(new Error("mine")) });
  await assert.rejects(aborted, /mine/);
  const only = service.client({ maxRetries: 0 }).search("name", { signal: AbortSignal.abort(new Error("mine")) });
  await assert.rejects(only, { name: "Error", message: "mine" });
});

test("an answer of something else is an error", async (t) => {
  const service = await serve(t, (response) => response.end("<html>"));
  await assert.rejects(service.client().company("x"), { name: "RegedgeError" });
  for (const body of ["<html>", "[]", '{"code":null,"detail":null}', '{"code":403,"detail":["no"]}']) {
    const proxy = await serve(t, (response) => response.writeHead(403).end(body));
    await assert.rejects(proxy.client().company("x"), { status: 403, code: "", detail: "" }, body);
  }
});

test("redirects are not followed", async (t) => {
  const elsewhere = await serve(t, found);
  const service = await serve(t, (response) => response.writeHead(302, { Location: elsewhere.baseUrl }).end());
  await assert.rejects(service.client().company("x"), { status: 302 });
  assert.equal(elsewhere.keys.length, 0);
});

test("options that cannot work are refused", () => {
  for (const options of [{ baseUrl: "localhost:8080" }, { apiKey: "reg_live_x\n" }, { apiKey: "reg_live x" }, { apiKey: "" }, { apiKey: null }, { timeout: 0 }, { maxRetries: -1 }, { maxWait: -1 }, { baseUrl: "http:///x" }]) {
    assert.throws(() => new Client(options), undefined, JSON.stringify(options));
  }
  for (const baseUrl of ["http://127.0.0.1:8080?tenant=1", "http://127.0.0.1:8080/#top"]) {
    assert.throws(() => new Client({ baseUrl }), { name: "TypeError", message: /without \? and #/ });
  }
  for (const baseUrl of ["https://api.example.org/v1", "http://127.0.0.1:8080/v1/"]) {
    assert.throws(() => new Client({ baseUrl }), /without \/v1, which each call adds/);
  }
});

test("an address that no call can be sent to is refused at once", () => {
  for (const baseUrl of ["http://127.0.0.1:8080 ", "http://127.0.0.1:99999", "http://exa mple", "http://[::1", "http://name:password@127.0.0.1:8080", "http://name@127.0.0.1:8080", "http://:password@127.0.0.1:8080", new URL("http://127.0.0.1:8080")]) {
    assert.throws(() => new Client({ baseUrl }), { name: "TypeError", message: /^baseUrl: want an address such as/ }, String(baseUrl));
  }
  for (const baseUrl of ["HTTP://127.0.0.1:8080", "http://[::1]:8080", "https://exämple.org/a b"]) new Client({ baseUrl });
});

test("a header that cannot be sent is refused at once, and one of a Headers object is sent", async (t) => {
  for (const timeout of [0, -1, NaN]) assert.throws(() => new Client({ timeout }), { name: "RangeError", message: /timeout must be positive/ });
  assert.throws(() => new Client({ headers: { "no name": "x" } }), { name: "TypeError", message: /no name/ });
  let sent;
  const { client } = await serve(t, found);
  const asked = (input, init) => {
    sent = new Headers(init.headers).get("Traceparent");
    return fetch(input, init);
  };
  await client({ headers: new Headers({ Traceparent: "00-1" }), fetch: asked }).findLlp("AAA-0001");
  assert.equal(sent, "00-1");
});

test("an option that is undefined takes its default", async (t) => {
  let key;
  const { client } = await serve(t, found);
  const asked = (input, init) => {
    key = new Headers(init.headers).get("Authorization");
    return fetch(input, init);
  };
  await client({ apiKey: undefined, timeout: undefined, fetch: asked }).findLlp("AAA-0001");
  assert.equal(key, "Bearer reg_sandbox_public");
});

test("the README's program compiles under the strictest options of the compiler", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "regedge-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const here = (path) => fileURLToPath(new URL("../" + path, import.meta.url));
  const [, program] = /```ts\n(.*?)```/s.exec(readFileSync(here("README.md"), "utf8"));
  writeFileSync(join(folder, "main.mts"), "declare const process: { env: Record<string, string | undefined> };\n" + program);
  const compilerOptions = {
    strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noEmit: true, target: "ES2022", module: "NodeNext",
    lib: ["ES2022", "DOM", "DOM.Iterable"], types: [], paths: { regedge: [here("dist/index.d.ts")] },
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.mts"] }));
  const { status, stdout } = spawnSync(here("node_modules/.bin/tsc"), ["-p", folder], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

test("suggestions are a list of strings", () => {
  for (const [value, want] of [
    [null, []],
    ['"TATA MOTORS", "TATA \\"X\\" \\\\ LTD"', ["TATA MOTORS", 'TATA "X" \\ LTD']],
    ['"%E0%A4%86 50%25"', ["आ 50%"]],
    ['"50%"', ["50%"]],
    ['"open', []],
    ["token", []],
    ['"a" "b"', []],
  ]) {
    assert.deepEqual(suggestions(value), want, value);
  }
});

test("Retry-After is seconds or a date", (t) => {
  for (const value of [null, "-3", "soon", "soon 3000", "Thu, 01 Jan 1970 00:00:00 GMT"]) assert.equal(retryAfter(value), 0, value);
  assert.equal(retryAfter("3"), 3);
  assert.equal(retryAfter("3, 5"), 3, "two lines");
  const at = new Date(Date.now() + 60_000);
  const [, day, date, month, year, time] = /(.*), (.*) (.*) (.*) (.*) GMT/.exec(at.toUTCString());
  const weekday = at.toLocaleDateString("en", { weekday: "long", timeZone: "UTC" });
  const zone = process.env.TZ;
  t.after(() => (zone === undefined ? delete process.env.TZ : (process.env.TZ = zone)));
  process.env.TZ = "Asia/Kolkata"; // the last form names no zone, and is of UTC all the same
  for (const value of [at.toUTCString(), `${weekday}, ${date}-${month}-${year.slice(2)} ${time} GMT`, `${day} ${month} ${date} ${time} ${year}`]) {
    const seconds = retryAfter(value);
    assert.ok(seconds > 50 && seconds <= 60, `${value}: ${seconds}`);
  }
});

test("each rate limit is read from its header", () => {
  const headers = { "RateLimit-Limit": "60", "RateLimit-Remaining": "59", "RateLimit-Reset": "7" };
  assert.deepEqual(rateLimit(new Headers(headers)), { limit: 60, remaining: 59, reset: 7 });
  assert.deepEqual(rateLimit(new Headers({ "RateLimit-Limit": "60" })), { limit: 60, remaining: null, reset: null });
});

test("an attempt takes at most 10 s by default", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let signal;
  const hangs = (url, init) => new Promise((resolve, reject) => {
    signal = init.signal;
    signal.addEventListener("abort", () => reject(signal.reason));
  });
  const call = new Client({ fetch: hangs, maxRetries: 0 }).company("x");
  t.mock.timers.tick(9_999);
  assert.equal(signal.aborted, false);
  t.mock.timers.tick(1);
  await assert.rejects(call, /no answer within 10000 ms/);
});

test("a call is made four times by default, under a key of 32 digits", async (t) => {
  t.mock.method(crypto, "getRandomValues", (bytes) => bytes.fill(7));
  const keys = [];
  const fetch = async (_, init) => (keys.push(init.headers["Idempotency-Key"]), new Response("{}", { status: 503 }));
  await assert.rejects(new Client({ fetch, maxWait: 1 }).company("x"), { attempts: 4 });
  assert.deepEqual(keys, Array(4).fill("07".repeat(16)));
});

test("an answer that is too long is none", async (t) => {
  const padded = (size) => (response) => response.end(match + " ".repeat(size - match.length));
  const longest = await serve(t, padded(1 << 20));
  assert.equal((await longest.client({ maxRetries: 0 }).findLlp("x")).attempts, 1);
  const longer = await serve(t, padded((1 << 20) + 1));
  await assert.rejects(longer.client({ maxRetries: 0 }).findLlp("x"), UnansweredError);
  let sent = 0;
  const endless = (response) => {
    const write = () => {
      while (!response.destroyed && (sent += 1 << 16) < 1 << 26 && response.write(" ".repeat(1 << 16)));
      if (!response.destroyed && sent < 1 << 26) response.once("drain", write);
    };
    write();
  };
  const service = await serve(t, endless);
  await assert.rejects(service.client({ maxRetries: 0 }).findLlp("x"), /longer than 1048576 bytes/);
  assert.ok(sent < 1 << 25, `${sent} bytes were sent`);
  let canceled = false;
  const body = new ReadableStream({ pull: (stream) => stream.enqueue(new Uint8Array(1 << 18)), cancel: () => void (canceled = true) });
  await assert.rejects(new Client({ fetch: async () => new Response(body), maxRetries: 0 }).findLlp("x"), UnansweredError);
  assert.ok(canceled, "its connection is given up");
});

test("an answer is text, however it is divided", async () => {
  const bytes = new TextEncoder().encode(match.replace('"A"', '"आ"'));
  const body = new ReadableStream({
    start(stream) {
      for (const byte of bytes) stream.enqueue(new Uint8Array([byte]));
      stream.close();
    },
  });
  assert.equal((await new Client({ fetch: async () => new Response(body) }).findLlp("x")).data[0].label, "आ");
});

for (const status of [400, 401, 403, 405, 409, 431]) {
  test(`${status} is thrown at once`, async (t) => {
    const service = await serve(t, problem(status, "x"), found);
    await assert.rejects(service.client().company("x"), { status, attempts: 1 });
  });
}

test("a result and an error have what the service says beside them", async (t) => {
  const beside = { "Idempotent-Replayed": "false", "X-Registry-Release": "r1", "RateLimit-Limit": "60", "Search-Suggestion": '"TATA"' };
  const service = await serve(t, (response) => response.writeHead(200, beside).end(match), (response) =>
    response.writeHead(403, beside).end(JSON.stringify({ type: "t", title: "T" })));
  const result = await service.client().findLlp("x");
  assert.deepEqual([result.replayed, result.release, result.rateLimit.limit, result.suggestions], [false, "r1", 60, ["TATA"]]);
  const error = await service.client().findLlp("x").catch((error) => error);
  assert.deepEqual([error.rateLimit.limit, error.type, error.title], [60, "t", "T"]);
});

test("a pause of maxWait is waited for", async (t) => {
  t.mock.method(globalThis, "setTimeout", (done, pause) => pause !== 10_000 && queueMicrotask(done));
  for (const [asked, attempts] of [["30", 2], ["31", 1]]) {
    const answers = [new Response("{}", { status: 429, headers: { "Retry-After": asked } }), new Response(match)];
    const made = await new Client({ fetch: async () => answers.shift() }).findLlp("x").catch((error) => error);
    assert.equal(made.attempts, attempts, asked);
  }
});

test("a signal that has ended sends nothing", async () => {
  let sent = 0;
  const fetch = async (_, { signal }) => (signal.throwIfAborted(), sent++, new Response(match));
  const reason = new Error("mine");
  await assert.rejects(new Client({ fetch }).findLlp("x", { signal: AbortSignal.abort(reason) }), reason);
  assert.equal(sent, 0);
});

test("a signal that ends between an answer and its pause ends the call", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] }); // no pause ends
  const control = new AbortController();
  const reason = new Error("mine");
  const body = new ReadableStream({ pull: (stream) => (control.abort(reason), stream.close()) }, { highWaterMark: 0 });
  const fetch = async () => new Response(body, { status: 503 });
  await assert.rejects(new Client({ fetch }).company("x", { signal: control.signal }), reason);
});

test("each call is sent under the key it is given, and ends with its signal", async (t) => {
  const service = await serve(t, problem(400, "x"));
  const methods = ["company", "director", "llp", "search", "findLlp"];
  for (const method of methods) {
    await assert.rejects(service.client()[method]("x", { idempotencyKey: method }), ApiError);
    const reason = new Error("mine");
    await assert.rejects(service.client()[method]("x", { signal: AbortSignal.abort(reason) }), reason, method);
  }
  assert.deepEqual(service.keys, methods);
});

test("a limit that is none is left to the service to refuse", async (t) => {
  const service = await serve(t, problem(400, "invalid_query"));
  await assert.rejects(service.client().search("x", { limit: 0 }), { code: "invalid_query" });
  assert.deepEqual(service.urls, ["/v1/search/companies?name=x&limit=0"]);
});

test("an answer without its parts is an error that says why", async () => {
  const error = (body) => new Client({ fetch: async () => new Response(body) }).company("x").catch((error) => error);
  for (const body of ['{"data":{}}', '{"meta":{}}', '{"data":null,"meta":{}}', "null"]) {
    const failed = await error(body);
    assert.deepEqual([failed.name, /it has no data or no meta/.test(failed.message)], ["RegedgeError", true], body);
  }
  assert.ok((await error("<html>")).cause instanceof SyntaxError);
  const refused = new TypeError("fetch failed");
  const unanswered = await new Client({ fetch: async () => { throw refused; }, maxRetries: 0 }).company("x").catch((error) => error);
  assert.deepEqual([unanswered.cause, unanswered.name, UnansweredError.name], [refused, "UnansweredError", "UnansweredError"]);
});

test("an empty idempotency key is none", async () => {
  const keys = [];
  const fetch = async (_, init) => (keys.push(init.headers["Idempotency-Key"]), new Response(match));
  await new Client({ fetch }).findLlp("x", { idempotencyKey: "" });
  assert.match(keys[0], /^[0-9a-f]{32}$/);
});

test("a result has what its envelope says, and no more", async () => {
  const body = JSON.stringify({ data: [], meta: { request_id: "01", credits_remaining: 0, sandbox: true } });
  const { requestId, creditsRemaining, sandbox, release, replayed, suggestions } = await new Client({ fetch: async () => new Response(body), headers: null }).findLlp("x");
  assert.deepEqual([requestId, creditsRemaining, sandbox, release, replayed, suggestions], ["01", 0, true, "", false, []]);
});

test("an error says which call it was, where that is known", async () => {
  const ask = (body, init) => new Client({ fetch: async () => new Response(body, init), maxRetries: 0 }).company("x").catch((error) => error);
  const headers = { "X-Request-Id": "01ID" };
  for (const body of ["<html>", "{}"]) assert.match((await ask(body, { headers })).message, /^read the answer of 01ID/);
  assert.match((await ask("<html>", {})).message, /^read an answer that is not of this service: ./);
  const foreign = await ask("<html>", { status: 502 });
  assert.deepEqual([foreign.name, foreign.code, foreign.requestId, foreign.attempts], ["ApiError", "", "", 1]);
  assert.equal(foreign.message, "502 an answer that is not of this service");
  for (const body of ["null", "[]", '"busy"']) assert.equal((await ask(body, { status: 403 })).code, "", body);
});

test("a refused connection is told by its code where it has no words", async () => {
  const cause = Object.assign(new AggregateError([]), { code: "ECONNREFUSED" });
  const fetch = async () => { throw new TypeError("fetch failed", { cause }); };
  await assert.rejects(new Client({ fetch, maxRetries: 0 }).company("x"), { message: "no answer after 1 attempts: fetch failed: ECONNREFUSED" });
});

test("a body that cannot be given up is an unanswered call all the same", async () => {
  const body = () => new ReadableStream({
    pull: (stream) => stream.enqueue(new Uint8Array(1 << 20)),
    cancel: () => { throw new Error("it goes on"); },
  });
  await assert.rejects(new Client({ fetch: async () => new Response(body()), maxRetries: 0 }).company("x"), /longer than 1048576 bytes/);
});

test("a number of another kind is no Retry-After", () => {
  for (const value of ["1e3", "0x10", ""]) assert.equal(retryAfter(value), 0, value);
});
