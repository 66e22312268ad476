package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// lent is a ledger whose edge one holds credits of account 1 in its epoch.
func lent(t *testing.T) (*Ledger, *Lease) {
	const now = 1_790_000_000_000
	l := New(1)
	l.SetPlan(now, Plan{ID: "scale", MonthlyVolume: 1000})
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(now, 1, 100, EntryBought, ""))
	require.NoError(t, l.AddEdge("one"))
	e := l.Edge("one")
	session := l.Hello(now, e, &syncproto.Hello{Boot: 1}).Session
	credits := syncproto.Pool{Kind: syncproto.Credits, Subject: 1}
	l.Sync(now, e, &syncproto.Sync{Session: session, Wants: []syncproto.Want{{Pool: credits, Target: 10}}})
	h := e.current.leases[credits]
	require.EqualValues(t, 10, h.Outstanding())
	require.NoError(t, l.Check())
	return l, h
}

func TestCheckFindsEveryBrokenInvariant(t *testing.T) {
	for name, damage := range map[string]func(l *Ledger, h *Lease){
		"an epoch beyond the newest": func(l *Ledger, h *Lease) { h.edge.Epoch = h.epoch.Number - 1 },
		"a lease of another pool":    func(l *Ledger, h *Lease) { other := *h.pool; h.pool = &other },
		"a lease of another epoch":   func(l *Ledger, h *Lease) { other := *h.epoch; h.epoch = &other },
		"a lease of another edge":    func(l *Ledger, h *Lease) { other := *h.edge; h.edge = &other },
		"more spent than granted":    func(l *Ledger, h *Lease) { h.Spent += 11; h.pool.Leased -= 11; h.pool.Spent += 11 },
		"a negative count beyond":    func(l *Ledger, h *Lease) { h.Beyond = -1 },
		"leased is not the sum":      func(l *Ledger, h *Lease) { h.pool.Leased++ },
		"lost is not the sum":        func(l *Ledger, h *Lease) { h.pool.Lost++ },
		"a negative limit":           func(l *Ledger, h *Lease) { h.pool.Limit, h.pool.Compensated = -1, 200 },
		"negative compensation":      func(l *Ledger, h *Lease) { h.pool.Compensated = -1 },
		"negative spending":          func(l *Ledger, h *Lease) { h.pool.Spent = -1 },
		"a negative deduction":       func(l *Ledger, h *Lease) { h.pool.Deducting = -1 },
		"more out than was bought":   func(l *Ledger, h *Lease) { h.pool.Limit = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			l, h := lent(t)
			damage(l, h)
			require.Error(t, l.Check())
		})
	}
	l, h := lent(t)
	h.pool.Limit = 10
	require.NoError(t, l.Check(), "all of it is leased")
	h.pool.Limit, l.Restoring = 9, true
	require.NoError(t, l.Check(), "a restored ledger knows less than its edges")
}

// TestEveryKindOfChangeIsSomethingToWrite has two kinds at a time: their numbers are added up.
func TestEveryKindOfChangeIsSomethingToWrite(t *testing.T) {
	pool := syncproto.Pool{Kind: syncproto.NotFound, Subject: 1}
	kinds := []func(c *Changes){
		func(c *Changes) { c.Restoring = new(bool) },
		func(c *Changes) { c.Entries = make([]Entry, 1) },
		func(c *Changes) { c.Unresolved = make([]UnresolvedRow, 1) },
		func(c *Changes) { c.plans["scale"] = true },
		func(c *Changes) { c.accounts[1] = true },
		func(c *Changes) { c.pools[pool] = &Pool{} },
		func(c *Changes) { c.past[pool] = true },
		func(c *Changes) { c.edge(&Edge{Name: "one"}) },
		func(c *Changes) { c.epoch(&Edge{}, &Epoch{}) },
		func(c *Changes) { c.lease(&Lease{}) },
		func(c *Changes) { c.removeLease(&Lease{}) },
		func(c *Changes) { c.usage(&syncproto.Usage{Count: 1}) },
	}
	require.True(t, newChanges().Empty())
	for _, one := range kinds {
		for _, other := range kinds {
			c := newChanges()
			one(c)
			other(c)
			require.False(t, c.Empty())
		}
	}
}

// TestPoolsAreSweptOnceADay: a sweep takes a look at every pool and account, and messages come many times a second.
func TestPoolsAreSweptOnceADay(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	l, _ := lent(t)
	now := int64(1_790_000_000_000)
	past := syncproto.Pool{Kind: syncproto.NotFound, Subject: 1, Window: 1}
	l.sweep(now, now)
	l.pools[past] = &Pool{}
	l.sweep(now+1, now+1)
	require.Contains(t, l.pools, past)
	l.sweep(now+day, now+day)
	require.NotContains(t, l.pools, past)
}

// TestADayWritesNoAccountThatSpentNothing: of a million accounts most spend nothing, and no message is answered meanwhile.
func TestADayWritesNoAccountThatSpentNothing(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	now := int64(1_790_000_000_000)
	l, h := lent(t)
	l.changes = newChanges()
	l.sweep(now, now)
	require.Empty(t, l.changes.accounts)
	h.Spent, h.pool.Spent, h.pool.Leased = 1, 1, h.pool.Leased-1
	l.sweep(now+day, now+day)
	require.Len(t, l.changes.accounts, 1)
	require.Equal(t, []Entry{{1, -1, EntrySpent, ""}}, l.changes.Entries)
}
