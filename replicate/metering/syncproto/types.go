package syncproto

import (
	"cmp"

	"regedge/handler/charge"
)

// Limits of one message, so that neither side can exhaust the other's memory. What does not
// fit goes into the next message.
const (
	MaxUsage      = 20_000
	MaxReturns    = 20_000
	MaxUnresolved = 1_000
	MaxWants      = 20_000
	MaxRates      = 20_000
	MaxDeclared   = 20_000
	MaxRows       = 20_000
	// MaxCount bounds the count of one row of usage: 100,000 requests a second for a week. The
	// writer commits at most 512 messages together, whose MaxUsage rows still fit an int64.
	MaxCount = 1 << 36
	// MaxMessage bounds an encoded message in bytes. It has room for every list at its limit,
	// with elements of the greatest length.
	MaxMessage = 8 << 20
)

// Kind is the kind of unit that a lease lets an edge spend. The numbers are stored and never change.
type Kind uint8

// The kinds.
const (
	Credits  Kind = iota + 1 // of an account, without a window
	Volume                   // charged calls of an account in a UTC month
	NotFound                 // not-found lookups of a key on a UTC day
)

// Pool identifies what leases are cut from. Subject is the account, or the key for NotFound.
// Window is 0 for Credits, the month (12 × year + month - 1) for Volume, and the day since
// 1 January 1970 for NotFound.
type Pool struct {
	Kind    Kind
	Subject int64
	Window  int32
}

// Compare orders pools by kind, subject and window.
func (p Pool) Compare(q Pool) int {
	return cmp.Or(cmp.Compare(p.Kind, q.Kind), cmp.Compare(p.Subject, q.Subject), cmp.Compare(p.Window, q.Window))
}

// KeepMonths and KeepDays are how many past windows stay open for late reports.
const KeepMonths, KeepDays = 1, 2

// Closed reports whether the pool's window is so long past at a time, in Unix milliseconds, that the
// writer grants nothing and books no usage in it.
func (p Pool) Closed(nowMillis int64) bool {
	switch p.Kind {
	case Volume:
		return p.Window < Month(nowMillis)-KeepMonths
	case NotFound:
		return p.Window < Day(nowMillis)-KeepDays
	}
	return false
}

// Open reports whether the writer grants units and books usage in the pool's window at a time, in Unix
// milliseconds: from the past ones that are not closed to the next one.
func (p Pool) Open(nowMillis int64) bool {
	switch p.Kind {
	case Volume:
		return !p.Closed(nowMillis) && p.Window <= Month(nowMillis)+1
	case NotFound:
		return !p.Closed(nowMillis) && p.Window <= Day(nowMillis)+1
	}
	return true
}

// Usage counts requests of one key and hour (hours since 1970, UTC). Count is never 0;
// it is negative when more charges were voided than made.
type Usage struct {
	Account, Key int64
	Hour         int32
	Endpoint     charge.Endpoint
	Outcome      charge.Outcome
	Count        int64
}

// Return gives Units of a lease back to the writer. Close ends the lease: the edge forgets it.
type Return struct {
	Pool  Pool
	Units int64
	Close bool
}

// Unresolved is a charge whose verdict may not have reached the component. ID is the request id.
type Unresolved struct {
	ID           string
	Account, Key int64
	AtMillis     int64
}

// Batch is a report of an edge, applied once. Seq counts from 1 within an epoch. Of is the
// epoch whose leases paid for the usage: the current one, or an earlier one that ended before
// all of its usage was reported.
type Batch struct {
	Seq, Of    uint64
	Usage      []Usage
	Returns    []Return
	Unresolved []Unresolved
}

// Empty reports whether the batch has no content.
func (b *Batch) Empty() bool {
	return len(b.Usage) == 0 && len(b.Returns) == 0 && len(b.Unresolved) == 0
}

// Want asks for grants until a lease holds Target units. Urgent says that a request waits.
type Want struct {
	Pool   Pool
	Target int64
	Urgent bool
}

// Rate is a count of requests in a UTC minute (minutes since 1970). Subject is the account, or OfKey of a key
// that has a rate of its own.
type Rate struct {
	Subject int64
	Minute  int64
	Count   int64
}

// keyRates is greater than any account id. A program that does not know keys' rates takes ids above it
// for unknown accounts.
const keyRates = 1 << 52

// OfKey is the subject of a key's rate.
func OfKey(key int64) int64 { return keyRates + key }

// KeyOf returns the key of a rate's subject, 0 for an account.
func KeyOf(subject int64) int64 { return max(subject-keyRates, 0) }

// Declared is a lease that the edge holds, with the sum of its grants.
type Declared struct {
	Pool    Pool
	Granted int64
}

// Hello opens a session.
type Hello struct {
	// Epoch is 0 for an edge with an empty state directory.
	Epoch uint64
	// Boot is random for each start of the edge's process.
	Boot uint64
	// Sealed is the newest batch that the edge made durable; Acked the newest that the writer
	// acknowledged.
	Sealed, Acked uint64
	// Granted is the sum of all grants that the edge received in this epoch.
	Granted int64
	// Generation is the generation of the writer that replied last.
	Generation uint64
	NowMillis  int64
}

// Sync reports a batch and asks for the news after version Seen.
type Sync struct {
	Session uint64
	Seen    uint64
	// HoldMillis is how long the writer may wait for news before it replies; 0 for a reply at
	// once.
	HoldMillis int64
	NowMillis  int64
	Batch      *Batch // nil when there is nothing to report
	Wants      []Want
	Rates      []Rate
	// Declared is a part of all leases, after a reply asked for them; DeclaredLast marks the
	// last part.
	Declared     []Declared
	DeclaredLast bool
}

// Status is the state of an edge and its session, as the writer sees it.
type Status uint8

// The statuses of a reply.
const (
	// OK: continue.
	OK Status = iota + 1
	// Stranger: the session is unknown. Send Hello.
	Stranger
	// Fresh: the epoch in the reply is new. Nothing is held in it.
	Fresh
	// Superseded: this edge was given a newer epoch. Stop spending, report and return
	// everything under the old one, then send Hello without an epoch.
	Superseded
	// Forked: the state directory is older than the batches that the writer applied, such as
	// a restored snapshot. Its leases are void; the epoch in the reply is new.
	Forked
	// Retired: fenced for ever. Late reports are still accepted.
	Retired
)

// Reply answers Hello and Sync.
type Reply struct {
	// Answers is the Number of the message.
	Answers    uint64
	Status     Status
	Session    uint64
	Epoch      uint64
	Generation uint64
	// Applied is the newest batch of the epoch that is durable at the writer.
	Applied uint64
	// Rows are all leases that changed after version Since, up to and including version Upto.
	Since, Upto uint64
	Rows        []Row
	// Others counts the requests of accounts at other edges.
	Others []Rate
	// Live is the number of edges in contact with the writer, at least 1 (this one).
	Live      int64
	NowMillis int64
	// Declare asks the edge to send every batch after Applied again, and then to declare its
	// leases.
	Declare bool
}

// Row is the state of one lease. Granted is the sum of its grants since it was last closed.
type Row struct {
	Version     uint64
	Pool        Pool
	Granted     int64
	UntilMillis int64
	// Recall asks the edge to return what is held.
	Recall bool
	// Dry says that nothing is left to grant and nothing is leased elsewhere.
	Dry bool
	// Balance is the number of credits that the account can still spend, for Credits.
	Balance int64
}
