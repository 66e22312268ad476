package ledger

import (
	"errors"
	"fmt"

	"regedge/replicate/metering/syncproto"
)

// What one node may add to the ledger on one UTC day of the writer's clock. A node in somebody else's hands could
// fill memory and disk otherwise, with rows that are never deleted.
const (
	// maxStrange bounds what no honest node makes many of: charges in doubt, epochs, accounts, keys and usage of
	// keys that the ledger does not know. A component loses at most 100 verdicts a second, and a restored ledger
	// lacks the keys of some days.
	maxStrange = 1 << 17
	// maxHours bounds the hours that usage is of. An edge serves for a day without the writer, and reports seven
	// days again to a restored ledger.
	maxHours = 512
	// leasesEach bounds the leases: beside maxStrange as many for each account and key. A node opens a few a day.
	leasesEach = 64
)

// ErrExcess is what Excess returns, wrapped.
var ErrExcess = errors.New("more than any node should report in a day")

// excess counts what a node added to the ledger. It is not stored.
type excess struct {
	day     int32
	strange int
	leases  int
	hours   map[int32]struct{}
	usage   map[strangeUsage]struct{}
}

// strangeUsage is usage of a key that is not the account's.
type strangeUsage struct {
	account, key int64
	hour         int32
}

// begin starts the count of another day.
func (x *excess) begin(now int64) {
	if day := syncproto.Day(now); day != x.day || x.hours == nil {
		*x = excess{day: day, hours: map[int32]struct{}{}, usage: map[strangeUsage]struct{}{}}
	}
}

// noteUsage counts a row of usage that is new today.
func (l *Ledger) noteUsage(e *Edge, u *syncproto.Usage) {
	e.excess.hours[u.Hour] = struct{}{}
	if l.keys[u.Key] != u.Account {
		e.excess.usage[strangeUsage{u.Account, u.Key, u.Hour}] = struct{}{}
	}
}

// Excess says in which respect an edge has added more to the ledger today than an honest one does: it should be
// fenced. It returns nil as long as it has not.
func (l *Ledger) Excess(e *Edge) error {
	x := &e.excess
	switch {
	case x.strange+len(x.usage) > maxStrange:
		return fmt.Errorf("%w: %d charges in doubt, epochs, and keys and accounts that there are not", ErrExcess, x.strange+len(x.usage))
	case len(x.hours) > maxHours:
		return fmt.Errorf("%w: usage of %d hours", ErrExcess, len(x.hours))
	case x.leases > maxStrange+leasesEach*(len(l.keys)+len(l.accounts)):
		return fmt.Errorf("%w: %d leases", ErrExcess, x.leases)
	}
	return nil
}

// Forgive lets an edge begin anew, as when it gets another token.
func (e *Edge) Forgive() { e.excess = excess{} }

// AddKey notes a key of an account. Keys are never deleted.
func (l *Ledger) AddKey(id, account int64) { l.keys[id] = account }
