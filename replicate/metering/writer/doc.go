// Package writer changes balances: it is the only process that does, and the centre of
// metering. It keeps the ledger, grants leases to the edges, applies what they report,
// projects plans, accounts and keys into the access database, and serves operators an HTTP
// API in JSON (docs/design.md, "The writer's API").
//
// It is a thin shell around package ledger, which decides what is granted, spent and lost,
// without clock, I/O or goroutine. The writer takes the messages that have arrived, applies
// them to the ledger in memory, writes every changed row in one transaction and only then
// answers. After an error of that transaction its outcome is unknown: the ledger in memory
// is thrown away and loaded again, and the edges' sequences tell what was applied.
package writer
