// Package fuel rewrites a WebAssembly core module so that it counts down its steps and
// traps when none are left.
//
// A guest cannot be stopped from outside: while it computes, Go can neither preempt nor
// end it, and a garbage collection would wait for it with every other goroutine waiting
// too. wazero can check a context at every turn of a loop, but that costs a hundred times
// as much and still does not end a recursion.
//
// Parse reads the outline of a module, [Module.Instrument] returns the rewritten binary.
// Only the instructions of WebAssembly 1.0 with sign extension, saturating conversions and
// memory.copy, fill and init are accepted; a module with others is refused. Among those
// refused on purpose are the ones that change tables or drop data segments: a host that
// restores memory and globals after a request could not undo them.
package fuel
