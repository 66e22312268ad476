// Package meter is the edge's side of metering: it decides from the leases that this
// edge holds whether a request may be answered, journals the charge before the answer
// goes out, and keeps in touch with the writer.
//
// It is a thin shell. What is held, spent, wanted and reported is decided in package
// lease, which knows no clock, no I/O and no goroutine; package journal makes it
// durable; package wire carries it to the writer and back.
package meter
