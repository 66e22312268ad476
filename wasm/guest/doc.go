// Package main is the component: it serves wasi:http/incoming-handler by asking
// handler.Handler, and gives the handler its databases, meter, clock and randomness
// through the imports of wasm/wit. It is built by TinyGo only; see wasm/build.sh.
//
// One instance answers one request at a time and keeps nothing from one to the next:
// the host starts each from fresh or pristine memory. Hence memory is never freed, by
// the allocator or by hand, and handles are dropped only where the interface demands it
// (a stream before its body); the host drops the rest with the instance.
//
// # What a host may rely on
//
//   - _initialize runs the packages' initialisers and calls no import.
//   - cabi_realloc is a bump allocator on the heap that the guest itself uses. It
//     returns rising addresses, aligned to 16 bytes, never inside what it returned before,
//     and it never frees. So a host may ask once, also before the first request, for one
//     large block and lay out all results in it.
//   - cabi_realloc(0, 0, 1, 1) returns the end of the heap so far: every byte at or
//     above that address is as it was after _initialize.
//   - The memory has 256 KiB from the start, so that no request of the service makes it
//     grow: the pristine state takes the lowest eighth of it, and the hungriest request,
//     a search for 200 ampersands, 160 KiB.
//   - The stack is the lowest 8 KiB and grows down to address 0: an overflow traps,
//     because it would leave the memory. No request needs 2 KiB. The data lies above it
//     and the heap above that.
//   - A panic is a trap (unreachable).
package main
