// Package engine runs the service's Wasm component on wazero.
//
// wazero runs core modules, so the engine takes the core module out of the component
// and serves its imports and its one export itself, by the canonical ABI of the
// component model, for exactly the interfaces of wasm/wit.
//
// What holds, whatever the guest does:
//
//   - A guest reaches only what it was given: the named databases, the variables, the
//     clock, randomness and the meter. Every other outgoing request is denied.
//   - A handle is good only in the request that made it, only as the resource that it
//     is, and only until it was dropped or moved. Anything else traps.
//   - A trap, an exhausted limit or an incomplete answer fails that request alone. The
//     instance is thrown away; the next request gets another.
//   - A guest that computes ends by itself: its loops and calls count down a number of
//     steps (see package fuel). A guest that waits ends with Config.Timeout.
//   - A charge that was made in a request that then failed is voided before Serve
//     returns.
//   - A request starts from the memory and globals that the guest had after
//     _initialize (see snapshot for what this asks of the guest's allocator).
//
// Text passes between guest and host as UTF-8, and is checked on the way in.
package engine
