import { ApiError, Client, UnansweredError } from "regedge";

const client = new Client({
  baseUrl: process.env.REGISTRY_URL ?? "{base}",
  apiKey: process.env.REGISTRY_KEY ?? "{key}", // a live key in production
  timeout: 5_000,
});
try {
  const company = await client.company("U72900ZZ2015PTC000001");
  console.log(company.data.company_name);
  console.log("request", company.requestId, "credits left", company.creditsRemaining);
} catch (error) {
  if (error instanceof ApiError && error.code === "company_not_found") {
    console.log("not registered");
  } else if (error instanceof ApiError && error.code === "insufficient_credits") {
    console.log("add credits, then go on"); // alert people: no retry helps
  } else if (error instanceof UnansweredError) {
    console.log("no answer, try later under", error.idempotencyKey);
  } else {
    throw error; // its message has code and request id
  }
}
