// Package meter is the edge's side of metering: it decides from the leases that this edge
// holds whether a request may be answered, journals the charge before the answer is sent,
// and exchanges messages with the writer.
//
// It is a thin shell. Package lease decides what is held, spent, wanted and reported; it has
// no clock, no I/O and no goroutine. Package journal makes that durable, and package
// syncproto encodes the messages. The locks of meter and journal are listed in the comment of
// package journal.
package meter
