// Makes the calls that it reads from standard input, one JSON object a line, and writes what the
// client returned. The service's tests run it on their vectors (internal/conformance/clients_test.go).
import { createInterface } from "node:readline";
import { ApiError, Client } from "../dist/index.js";

const methods = { company: "company", director: "director", llp: "llp", search: "search", find_llp: "findLlp" };

async function perform(request) {
  const client = new Client({ baseUrl: request.base, apiKey: request.key, headers: request.header, maxRetries: 0 });
  try {
    const result = await client[methods[request.method]](request.argument, request.limit ? { limit: request.limit } : {});
    return {
      data: result.data,
      request_id: result.requestId,
      credits_remaining: result.creditsRemaining,
      sandbox: result.sandbox,
      rate_limit: result.rateLimit,
      release: result.release,
      replayed: result.replayed,
      suggestions: result.suggestions,
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { status, code, type, title, detail, retryAfter } = error;
    return {
      request_id: error.requestId,
      rate_limit: error.rateLimit,
      error: { status, code, type, title, detail, retry_after: retryAfter },
    };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await perform(JSON.parse(line))));
}
