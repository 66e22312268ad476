// Serves the component over HTTP on V8; see README.md.
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import { HTTPServer } from "@bytecodealliance/preview2-shim/http";

import { compile } from "./component.mjs";
import { spinImports } from "./spin.mjs";
import { wasiImports, withClientAddr } from "./wasi.mjs";

const { values: flags } = parseArgs({
  options: {
    component: { type: "string" },
    access: { type: "string" },
    registry: { type: "string" },
    "meter-url": { type: "string" },
    "meter-token": { type: "string", default: "" },
    "docs-url": { type: "string", default: "" },
    "client-header": { type: "string" },
    port: { type: "string", default: "0" },
  },
});
for (const name of ["component", "access", "registry", "meter-url"]) {
  if (flags[name] === undefined) {
    console.error(`serve.mjs: --${name} is missing`);
    process.exit(2);
  }
}

const instantiate = await compile(await readFile(flags.component));
const imports = {
  ...wasiImports(),
  ...spinImports({
    databases: { access: flags.access, registry: flags.registry },
    variables: {
      meter_url: flags["meter-url"],
      meter_token: flags["meter-token"],
      docs_url: flags["docs-url"],
    },
  }),
};

const host = "127.0.0.1";
const server = new HTTPServer({
  handle(request, out) {
    withClientAddr(request, flags["client-header"], host); // only this machine can connect
    instantiate(imports).incomingHandler.handle(request, out);
  },
});
server.listen(Number(flags.port), host);
console.log(`listening ${host}:${server.address().port}`);

process.on("SIGTERM", () => process.exit(0));
process.stdin.on("end", () => process.exit(0)).resume();
