package ledger

import (
	"strconv"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// The kinds of a credit entry.
const (
	EntryBought      = "bought"
	EntryCompensated = "compensated"
	EntrySpent       = "spent"
	EntryLost        = "lost"
)

// Entry is a row of the append-only credit journal.
type Entry struct {
	Account, Amount int64
	Kind, Note      string
}

// UnresolvedRow is an unresolved charge, with the edge that reported it.
type UnresolvedRow struct {
	syncproto.Unresolved
	Edge string
}

// usageKey is the key of a row of usage.
type usageKey struct {
	account, key int64
	hour         int32
	endpoint     charge.Endpoint
	outcome      charge.Outcome
}

// Changes are the changes that are not in the database yet. Flush writes rows in their state at that
// time; it adds usage to the rows in the database.
type Changes struct {
	Restoring  *bool
	leapIDs    bool // a restore began
	Entries    []Entry
	Unresolved []UnresolvedRow
	plans      map[string]bool
	accounts   map[int64]bool
	pools      map[syncproto.Pool]*Pool
	past       map[syncproto.Pool]bool // pools whose window is over
	edges      map[string]*Edge
	epochs     map[*Epoch]*Edge
	leases     map[*Lease]bool
	removed    map[*Lease]bool
	used       map[usageKey]int64
	keys       map[int64]int64 // until when edges refuse a key for its limit
	keyMonths  map[keyMonth]int64
	pastMonths map[keyMonth]bool // of keys, not counted any more
}

func newChanges() *Changes {
	return &Changes{
		plans: map[string]bool{}, accounts: map[int64]bool{}, pools: map[syncproto.Pool]*Pool{},
		past:  map[syncproto.Pool]bool{},
		edges: map[string]*Edge{}, epochs: map[*Epoch]*Edge{}, leases: map[*Lease]bool{},
		removed: map[*Lease]bool{}, used: map[usageKey]int64{}, keys: map[int64]int64{},
		keyMonths: map[keyMonth]int64{}, pastMonths: map[keyMonth]bool{},
	}
}

// Empty reports whether there is nothing to write.
func (c *Changes) Empty() bool {
	return c.Restoring == nil && len(c.Entries)+len(c.Unresolved)+len(c.plans)+len(c.accounts)+len(c.pools)+len(c.past)+
		len(c.edges)+len(c.epochs)+len(c.leases)+len(c.removed)+len(c.used)+len(c.keys)+len(c.keyMonths)+len(c.pastMonths) == 0
}

// pool notes a pool. Credits are part of their account's row.
func (c *Changes) pool(p *Pool) {
	if p.ID.Kind == syncproto.Credits {
		c.accounts[p.ID.Subject] = true
	} else {
		c.pools[p.ID] = p
	}
}

func (c *Changes) lease(h *Lease) { c.leases[h] = true }

func (c *Changes) removeLease(h *Lease) {
	delete(c.leases, h)
	c.removed[h] = true
}

func (c *Changes) edge(e *Edge)                { c.edges[e.Name] = e }
func (c *Changes) epoch(e *Edge, epoch *Epoch) { c.epochs[epoch] = e }

func (c *Changes) usage(u *syncproto.Usage) {
	c.used[usageKey{u.Account, u.Key, u.Hour, u.Endpoint, u.Outcome}] += u.Count
}

// Changed reports whether there is something to commit.
func (l *Ledger) Changed() bool { return !l.changes.Empty() }

// addEntry adds a credit entry. Pools other than credits have none.
func (l *Ledger) addEntry(p *Pool, kind string, amount int64, note string) {
	if p.ID.Kind == syncproto.Credits {
		l.changes.Entries = append(l.changes.Entries, Entry{p.ID.Subject, amount, kind, note})
	}
}

// post adds an entry of what the account spent since the last one, once an hour.
func (l *Ledger) post(a *Account, hour int32) {
	if a.postedHour == hour {
		return
	}
	a.postedHour = hour
	if unposted := a.credits.Spent - a.posted; unposted != 0 {
		l.addEntry(a.credits, EntrySpent, -unposted, "")
		a.posted = a.credits.Spent
	}
	l.changes.accounts[a.ID] = true
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
