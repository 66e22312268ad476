package syncproto

import (
	"cmp"

	"regedge/handler/charge"
)

// Limits of one message, so that neither side can be made to hold without bound. What
// does not fit goes into the next message.
const (
	MaxUsage      = 20_000
	MaxReturns    = 20_000
	MaxUnresolved = 1_000
	MaxWants      = 20_000
	MaxRates      = 20_000
	MaxDeclared   = 20_000
	MaxRows       = 20_000
	// MaxMessage bounds an encoded message in bytes: every list full, each element at
	// its longest.
	MaxMessage = 8 << 20
)

// Kind says what a lease lets an edge spend. Its numbers are stored and never change.
type Kind uint8

// The kinds.
const (
	Credits  Kind = iota + 1 // of an account, without a window
	Volume                   // charged calls of an account in a UTC month
	NotFound                 // not-found lookups of a key on a UTC day
)

// Pool names what leases are cut from. Subject is the account, or the key for NotFound.
// Window is 0, the month (12 × year + month - 1) or the day (since 1 January 1970).
type Pool struct {
	Kind    Kind
	Subject int64
	Window  int32
}

// Compare orders pools by kind, subject and window.
func (p Pool) Compare(q Pool) int {
	return cmp.Or(cmp.Compare(p.Kind, q.Kind), cmp.Compare(p.Subject, q.Subject), cmp.Compare(p.Window, q.Window))
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

// Return gives Units of a lease back. Close ends the lease: the edge forgets it.
type Return struct {
	Pool  Pool
	Units int64
	Close bool
}

// Unresolved names a charge whose verdict may not have reached the component.
type Unresolved struct {
	ID           string
	Account, Key int64
	AtMillis     int64
}

// Batch is what an edge reports, applied once. Seq counts from 1 within an epoch. Of is
// the epoch whose leases the usage was spent from: the current one, or an earlier one
// whose usage was still unreported when it ended.
type Batch struct {
	Seq, Of    uint64
	Usage      []Usage
	Returns    []Return
	Unresolved []Unresolved
}

// Empty reports whether the batch says nothing.
func (b *Batch) Empty() bool {
	return len(b.Usage) == 0 && len(b.Returns) == 0 && len(b.Unresolved) == 0
}

// Want asks that a lease hold Target units. Urgent says that a request is waiting.
type Want struct {
	Pool   Pool
	Target int64
	Urgent bool
}

// Rate is a count of one account's requests in a UTC minute (minutes since 1970).
type Rate struct {
	Account int64
	Minute  int64
	Count   int64
}

// Declared tells the writer of a lease that the edge holds: everything granted to it.
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
	// Sealed is the newest batch that the edge made durable; Acked the newest of which
	// it knows that the writer applied it.
	Sealed, Acked uint64
	// Granted is the sum of all grants that the edge received in this epoch.
	Granted int64
	// Generation is the newest generation of the writer that the edge spoke to.
	Generation uint64
	NowMillis  int64
}

// Sync carries a batch up, and asks for the news after Seen.
type Sync struct {
	Session uint64
	Seen    uint64
	// HoldMillis is how long the writer may hold the answer back while there is no
	// news; 0 for an answer at once.
	HoldMillis int64
	NowMillis  int64
	Batch      *Batch // nil when there is nothing to report
	Wants      []Want
	Rates      []Rate
	// Declared lists leases after a reply asked for them; the last part says so.
	Declared     []Declared
	DeclaredLast bool
}

// Status tells an edge where it stands.
type Status uint8

// The states in which a reply can leave an edge.
const (
	// OK: go on.
	OK Status = iota + 1
	// Stranger: the session is unknown; say Hello.
	Stranger
	// Fresh: the epoch in the reply is new, nothing is held in it.
	Fresh
	// Superseded: a newer epoch was given to this edge since. Spend no more, report and
	// return everything under the old one, then say Hello without an epoch.
	Superseded
	// Forked: the state directory is older than what the writer applied (a restored
	// snapshot). What is held is void; the epoch in the reply is new.
	Forked
	// Retired: fenced for ever. Late reports are still taken.
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
	// Since and Upto bound the news in Rows: all changes after version Since, up to and
	// with version Upto.
	Since, Upto uint64
	Rows        []Row
	// Others counts the requests at other edges.
	Others []Rate
	// Live is the number of edges in contact, this one included, at least 1.
	Live      int64
	NowMillis int64
	// Declare asks the edge to resend every batch after Applied and then to declare its
	// leases.
	Declare bool
}

// Row is the state of one lease. Granted is the sum of all grants to it since it was
// last closed.
type Row struct {
	Version     uint64
	Pool        Pool
	Granted     int64
	UntilMillis int64
	// Recall asks for all that is held and unspent.
	Recall bool
	// Dry says that nothing is left to grant and nothing is leased elsewhere.
	Dry bool
	// Balance is what the account's owner has left, for Credits.
	Balance int64
}
