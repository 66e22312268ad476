// Package ledger decides what the writer grants, books and compensates: balances, quotas,
// leases, epochs and sequences, as a state machine without clock, I/O or goroutine. Every
// step notes what it changed in Changes; Flush writes those rows to SQL in one transaction.
// What was not committed did not happen.
//
// A pool is what leases are cut from: the credits of an account, its calls of a month, the
// not-found lookups of a key on a day. A lease gives one edge, in one epoch, the right to
// spend units of a pool. It has three sums, granted, spent and returned, which only voids
// make smaller; what is left of the grants is outstanding. Units that an edge spent beyond
// its lease, from an older copy of its disk, are counted separately and not debited.
//
// # Files
//
//	ledger.go    the types: plan, account, pool, lease, epoch, edge
//	hello.go     an edge opens a session: which epoch it gets
//	sync.go      an edge reports: batches, wants, and the news in reply
//	settle.go    the end of every step: grants, recalls and news
//	units.go     the arithmetic of units between pool and lease
//	restore.go   after the ledger was restored from a backup
//	rate.go      request counts that edges tell one another
//	keylimit.go  the credits that a key may spend in a month
//	excess.go    what one node may add in a day
//	admin.go     what operators change
//	check.go     the invariants below
//	changes.go, rows.go, prepared.go, store.go, load.go, holder.go   the way to SQL and back
//
// # Invariants
//
// Check verifies 1 to 4 after every step:
//
//  1. For every pool, limit + compensated = left + leased + spent + lost. The limit of
//     credits is what was bought (docs/design.md, "Guarantees", G3).
//  2. No credits are spent beyond bought + compensated: left, leased, spent and lost are
//     never negative (G1). Only while a restored ledger waits for its edges may left be: it
//     may know of a grant, and not yet of the return at another edge that made it possible.
//  3. Leased is the sum of what is outstanding over the pool's leases; lost the same over
//     leases that were written off.
//  4. Nothing outstanding is negative. Units come back only by the edge's own report: no
//     clock returns them.
//  5. A batch is applied once: the applied sequence of an epoch grows by one with each
//     batch. No batch is applied in an epoch that its state directory has left.
//  6. Only the newest epoch of an edge that is not retired gets grants, and no edge does
//     while a restored ledger waits for declarations.
//  7. An account's credit entries sum to its balance plus what is spent and not yet posted.
package ledger
