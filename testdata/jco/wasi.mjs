import { clocks, http, io, random } from "@bytecodealliance/preview2-shim";

const clientAddrHeader = "spin-client-addr";

// wasiImports are the wasi: interfaces of the component's world.
export function wasiImports() {
  return {
    "wasi:clocks/monotonic-clock": clocks.monotonicClock,
    "wasi:clocks/wall-clock": clocks.wallClock,
    "wasi:http/outgoing-handler": http.outgoingHandler,
    "wasi:http/types": http.types,
    "wasi:io/error": io.error,
    "wasi:io/poll": io.poll,
    "wasi:io/streams": io.streams,
    "wasi:random/random": random.random,
  };
}

// withClientAddr makes a request say where it came from, whatever its client claimed: the
// last address in the header that is trusted to name it, if there is one, else the peer.
export function withClientAddr(request, trustedHeader, peer) {
  const entries = request.headers().entries().filter(([name]) => name.toLowerCase() !== clientAddrHeader);
  const named = trustedHeader && valueOf(entries, trustedHeader);
  const address = named ? named.split(",").at(-1).trim() : peer;
  const withPort = address.includes(":") ? `[${address}]:0` : `${address}:0`;
  const headers = http.types.Fields.fromList([...entries, [clientAddrHeader, new TextEncoder().encode(withPort)]]);
  request.headers = () => headers;
}

function valueOf(entries, wanted) {
  const entry = entries.findLast(([name]) => name.toLowerCase() === wanted.toLowerCase());
  return entry && new TextDecoder().decode(entry[1]);
}
