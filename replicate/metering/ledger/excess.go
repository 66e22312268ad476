package ledger

import (
	"errors"
	"fmt"

	"regedge/replicate/metering/syncproto"
)

// What one node may add to the ledger on one UTC day of the writer's clock. Without a bound, a node in the wrong hands
// could fill memory and disk with rows that are never deleted.
const (
	// maxStrange bounds rows that an honest node adds rarely: epochs, accounts, keys, and usage of keys that the ledger
	// does not know. The same number bounds charges in doubt. More of those are dropped, but do not fence the node: a
	// component beside Spin may lose a hundred verdicts a second.
	maxStrange = 1 << 17
	// maxHours bounds how many different hours usage may be from. An edge serves for a day without the writer, and
	// reports seven days again to a restored ledger.
	maxHours = 512
	// leasesEach bounds the leases, for each account and key, beyond maxStrange. An honest node opens a few a day.
	leasesEach = 64
)

// ErrExcess is what Excess returns, wrapped.
var ErrExcess = errors.New("more than any node should report in a day")

// excess counts what a node added to the ledger. It is not stored.
type excess struct {
	day     int32
	strange int
	doubts  int // charges in doubt; those beyond maxStrange are dropped
	dropped bool
	adopted int // epochs while it was retired
	leases  int
	hours   map[int32]struct{}
	usage   map[strangeUsage]struct{}
}

// strangeUsage is usage of a key that is not the account's.
type strangeUsage struct {
	account, key int64
	hour         int32
}

// beginDay starts an edge's count of another day.
func (l *Ledger) beginDay(now int64, e *Edge) {
	day := syncproto.Day(now)
	if l.Restoring {
		l.restoredDay = day
	}
	if day != e.excess.day || e.excess.hours == nil {
		e.excess = excess{day: day, hours: map[int32]struct{}{}, usage: map[strangeUsage]struct{}{}}
	}
}

// noteUsage counts a row of usage that is new today.
func (l *Ledger) noteUsage(e *Edge, u *syncproto.Usage) {
	e.excess.hours[u.Hour] = struct{}{}
	if l.keys[u.Key] != u.Account {
		e.excess.usage[strangeUsage{u.Account, u.Key, u.Hour}] = struct{}{}
	}
}

// Excess says what an edge has added to the ledger today beyond what an honest one adds; it should then be fenced. It
// returns nil within these bounds, and through the day after a restore: edges then report usage of several days at once,
// also for keys that the ledger does not know.
func (l *Ledger) Excess(e *Edge) error {
	x := &e.excess
	switch {
	case x.day <= l.restoredDay+1:
		return nil
	case x.strange+len(x.usage) > maxStrange:
		return fmt.Errorf("%w: %d epochs, and keys and accounts that there are not", ErrExcess, x.strange+len(x.usage))
	case len(x.hours) > maxHours:
		return fmt.Errorf("%w: usage of %d hours", ErrExcess, len(x.hours))
	case x.leases > maxStrange+leasesEach*(len(l.keys)+len(l.accounts)):
		return fmt.Errorf("%w: %d leases", ErrExcess, x.leases)
	}
	return nil
}

// takesDoubt counts a charge in doubt, and reports whether there is room for it today.
func (x *excess) takesDoubt() bool {
	x.doubts++
	return x.doubts <= maxStrange
}

// DropsDoubts reports, once a day, that some of an edge's charges in doubt are dropped.
func (e *Edge) DropsDoubts() bool {
	first := e.excess.doubts > maxStrange && !e.excess.dropped
	e.excess.dropped = e.excess.dropped || first
	return first
}

// Forgive lets an edge begin anew, as when it gets another token.
func (e *Edge) Forgive() { e.excess = excess{} }

// AddKey notes a key of an account. Keys are never deleted.
func (l *Ledger) AddKey(id, account int64) { l.keys[id] = account }
