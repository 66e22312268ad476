// Package ledger is the writer's truth: balances, quotas, leases, epochs and sequences,
// as a state machine without clock, I/O or goroutine. Every change is noted in Changes,
// which Store writes to SQL in one transaction; what was not committed did not happen.
//
// A pool is what leases are cut from: the credits of an account, its calls of a month,
// the not-found lookups of a key on a day. A lease gives one edge, in one epoch, the
// right to spend units of a pool. Three sums describe it, and they only grow but for
// voids: granted, spent, returned. What is outstanding is the rest. What an edge spent
// beyond its lease, on an older copy of its disk, is counted beside them and not debited.
//
// # Invariants
//
// Check holds these after every step:
//
//  1. Of every pool, limit + compensated = left + leased + spent + lost. For credits the
//     limit is what was bought (guarantee G3).
//  2. No credits are spent beyond bought + compensated: left, leased, spent and lost are
//     never negative (guarantee G1).
//  3. Leased is the sum of what is outstanding of the pool's leases; lost the sum of what
//     is outstanding of those that were given up.
//  4. Nothing outstanding is negative, and comes back by the edge's own report only: no
//     clock moves a unit.
//  5. A batch is applied once: the sequence applied of an epoch grows by one with each. Of
//     an epoch that its state directory left no more are applied.
//  6. Grants go to the newest epoch of an edge that is not retired, and none are made
//     while a restored ledger waits for the edges' declarations.
//  7. An account's credit entries sum to its balance plus what is spent and not posted.
package ledger
