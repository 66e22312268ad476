// Package lease is what one edge holds and does: it decides on requests from the leases
// that the writer granted, counts what was spent, says what it wants and returns, and
// follows the writer's replies. It is a state machine without clock, I/O or goroutine:
// times come as arguments, and what must survive a crash is given to a Log before it
// counts.
//
// # Invariants
//
// Check holds these at every moment between two calls of a EdgeState:
//
//  1. Of every lease, granted = held + spent + returned, and held is never negative: an
//     edge spends and returns only what it was granted.
//  2. A batch is numbered by the batch before it plus one, within an epoch. At most one
//     batch is sealed and not acknowledged.
//  3. What an account's unreported charges come to is the sum of the found requests in
//     the usage that the writer has not acknowledged.
//  4. The sum of all grants of the epoch is at least the sum over the leases held.
//
// And these hold between a EdgeState and its Log:
//
//  5. Replaying the Log's records gives the same leases, usage and request ids as the
//     EdgeState that wrote them, whatever the point at which the Log ends: every record is
//     the whole of one change.
//  6. A batch leaves the edge only when it and all before it is durable. So a sequence
//     below the one that the writer applied can only come from an older copy of the
//     state directory.
package lease
