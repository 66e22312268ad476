// Package main is the component: it serves wasi:http/incoming-handler with a handler.Handler,
// whose databases, meter, clock and randomness are the imports of wasm/wit. It is built by
// TinyGo only; see wasm/build.sh.
//
// An instance serves one request at a time and keeps no state between requests: the host starts
// each with new or restored memory. So memory is never freed, and handles are dropped only where
// the interface requires it (a stream before its body); the host drops the others with the
// instance.
//
// # Guarantees for a host
//
//   - _initialize runs the packages' initialisers and calls no import.
//   - cabi_realloc is a bump allocator on the guest's own heap. It returns increasing addresses,
//     aligned to 16 bytes, which never overlap, and it never frees. So a host may allocate one
//     large block, also before the first request, and lay out all results in it.
//   - cabi_realloc(0, 0, 1, 1) returns the current end of the heap: every byte from that address
//     on is as it was after _initialize.
//   - The memory has 256 KiB from the start, so that no request makes it grow: the initial state
//     takes the lowest eighth, and the largest request, a search for 200 ampersands, 160 KiB.
//   - The stack is the lowest 8 KiB and grows down to address 0, so an overflow leaves the memory
//     and traps. No request needs 2 KiB. The data is above the stack, the heap above the data.
//   - A panic is a trap (unreachable).
package main
