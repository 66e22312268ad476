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
//
// # Files
//
//	writer.go                             configuration; Open, Run and Close
//	commit.go                             how messages and changes become one transaction, and its outcome
//	offenders.go, refusals.go             messages that the database refuses; a log of failures that is not flooded
//	holder.go, ledgerfile.go              who holds the ledger; a ledger whose file is gone
//	sync.go, reports.go, requestlog.go    what edges send: usage and wants, their state, the last requests
//	inflight.go                           how many messages of a node are answered at once
//	projector.go, projection.go           the access database: when it is written, and what
//
//	routes.go                             the API: all calls, and who may make each
//	roles.go, tokens.go                   operators' tokens and what each may do
//	ownaccount.go, ownergate.go, ownertoken.go   the API of owners, its limits and its tokens
//	edit.go, change.go, idempotency.go    a call that changes something: once, with a row of the audit log
//	input.go, list.go                     reading what callers send; lists in pages
//	accounts.go, credits.go, keys.go, keychange.go, allowed.go, invitations.go, nodes.go, audit.go
//	                                      the calls by subject (plans are in accounts.go)
//	usage.go, usagesum.go, sumturns.go    usage, its sums, and how many sums at once
//	api.go, errors.go, document.go        the API's types, errors and OpenAPI document
//	client.go, attempt.go                 its client, and what the client repeats
//	health.go, nodeclocks.go, metrics.go, trace.go   readiness, nodes' clocks, metrics, spans
package writer
