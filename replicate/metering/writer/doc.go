// Package writer is the centre of metering: the one process that changes balances. It
// keeps the ledger, cuts leases for the edges, applies what they report, projects who
// may ask into the access database, and serves operators an HTTP API in JSON.
//
// It is a thin shell: what may be granted, spent and lost is decided in package ledger,
// which knows no clock, no I/O and no goroutine. The writer takes what has arrived,
// applies it to the ledger in memory, writes every changed row in one transaction and
// only then answers. An error of that transaction leaves its outcome unknown: the
// memory is thrown away and read again, and the edges' sequences tell what was applied.
package writer
