import { readFileSync } from "node:fs";

import { Client } from "regedge";

const { answers } = JSON.parse(readFileSync("sandbox.json", "utf8"));

async function recorded(url) {
  const { pathname, search } = new URL(url);
  const { status, headers, body } = answers[pathname + search] ?? answers["*"];
  return new Response(JSON.stringify(body), { status, headers });
}

const client = new Client({ fetch: recorded });
const company = await client.company("U72900ZZ2015PTC000001");
console.log(company.data.company_name);
await client.llp("ZZZ-9999").catch((error) => console.log(error.code));
