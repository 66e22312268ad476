// Package lease decides on the requests of one edge: it spends the leases that the writer
// granted, counts what was spent, and exchanges usage, wants and returns with the writer.
// It is a state machine without clock, I/O or goroutine: times are arguments, and what
// must survive a crash is appended to a Log.
//
// # Parts
//
// EdgeState (state.go) joins parts that can be understood one at a time. Each is a small
// type in its own file:
//
//	session         the conversation with the writer in this run of the process
//	standing        the epoch, and whether the edge may still spend in it
//	leases          what may be spent, by account and key
//	usage           requests that no batch has reported yet
//	outbox          batches that were sealed, up to the acknowledged one
//	returns         leases to give back in the next batch
//	wants           units to ask the writer for
//	rates           request counts of this minute that the writer does not know
//	declaration     progress in listing all leases to a restored ledger
//	doubts          charges whose verdict may not have reached the component
//	recentIDs       the verdicts on recent request ids, for retries and voids
//	keyedCharges    charges with an Idempotency-Key, for requests that come again
//	sandboxClients  request counts of the sandbox key, by client address
//
// The methods of EdgeState cut across the parts, by what they do: Charge (charge.go), Void
// (void.go), Sync and its reply (sync.go, apply.go), a new epoch (standing.go), and the
// records and snapshots from which a restart rebuilds the state (record.go, snapshot.go).
//
// # Invariants
//
// Check verifies these between any two calls of an EdgeState:
//
//  1. For every lease, granted = held + spent + returned, and held is never negative: an
//     edge spends and returns only what it was granted.
//  2. The sum of all grants of the epoch is at least the sum over the leases held.
//  3. Batches are numbered from 1 within an epoch, without gaps. At most one batch is
//     sealed and not acknowledged, and it is the newest.
//  4. An account's unreported charges are the sum of its found requests in the usage that
//     the writer has not acknowledged.
//  5. Once the writer has confirmed the state directory, no usage is carried over from
//     earlier runs.
//
// And these hold between an EdgeState and its Log:
//
//  6. Replaying the records gives the same leases, usage and request ids as the EdgeState
//     that wrote them, wherever the Log ends: every record is one whole change.
//  7. A batch leaves the edge only when it and all batches before it are durable. So a
//     sealed sequence below the one that the writer applied can only come from an older
//     copy of the state directory.
package lease
