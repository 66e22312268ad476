import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { transpileBytes } from "@bytecodealliance/jco-transpile";

// compile translates a component once and returns a function that instantiates it
// afresh with the imports that it is given.
export async function compile(component) {
  const { files } = await transpileBytes(component, {
    name: "registry",
    instantiation: { tag: "sync" },
    noTypescript: true,
    wasiShim: false,
  });
  const modules = new Map();
  for (const [name, content] of Object.entries(files)) {
    if (name.endsWith(".wasm")) {
      modules.set(name, new WebAssembly.Module(content));
    }
  }
  const { instantiate } = await load(files["registry.js"]);
  return (imports) => instantiate((name) => modules.get(name), imports);
}

async function load(source) {
  const folder = await mkdtemp(join(tmpdir(), "regedge-jco-"));
  try {
    const path = join(folder, "registry.mjs");
    await writeFile(path, source);
    return await import(pathToFileURL(path));
  } finally {
    await rm(folder, { recursive: true });
  }
}
