// Package engine answers lookups, either with the service's Wasm component on wazero
// ([NewComponent]) or with the same handler as plain Go ([NewNative]), for a debugger and to
// measure what Wasm costs. Both are the Answerer of package server, use the same databases
// and meter, and give the same bytes.
//
// wazero runs core modules. So the engine takes the core module out of the component and
// implements its imports and its one export itself, by the canonical ABI of the component
// model, for exactly the interfaces of wasm/wit.
//
// Invariants, whatever the guest does:
//
//   - A guest reaches only what it was given: the named databases, the variables, the
//     clock, randomness and the meter. Every other outgoing request is denied.
//   - A handle is valid only in the request that made it, only as the type of resource that
//     it is, and only until it is dropped or moved. Anything else traps.
//   - A trap, an exhausted limit or an incomplete answer fails only that request. The
//     instance is discarded; the next request gets another.
//   - A guest that computes ends by itself: its loops and calls count down a number of
//     steps (see package fuel). A guest that waits ends after Config.Timeout.
//   - If a request fails after it was charged, the charge is voided before Answer returns.
//   - Each request starts with the memory and globals that the guest had after _initialize
//     (see snapshot for what this requires of the guest's allocator).
//
// Strings pass between guest and host as UTF-8. Those of the guest are validated.
//
// # Files
//
//	engine.go, service.go          the Engine, how it is made, and Answer
//	native.go, screen.go, bill.go  the handler as plain Go; refusals without an instance; what was charged
//	pool.go, instance.go, exchange.go, snapshot.go   instances, and one request in an instance
//	component.go, imports.go       the core module in the component, and the functions that it imports
//	abi.go, handles.go             the canonical ABI: memory, strings, handles
//	types.go, fields.go, outgoing.go, io.go          wasi:http and wasi:io
//	environment.go                 clocks and randomness
//	sqlite.go, meter.go            databases; the meter, which the guest calls by HTTP
package engine
