package ledger

import (
	"cmp"
	"slices"

	"regedge/replicate/metering/syncproto"
)

// tables lists the rows to write, in an order that satisfies foreign keys. Rows are sorted by
// key, so that every page is written once, and the same steps write the same pages.
func (l *Ledger) tables(c *Changes, now int64) []table {
	return []table{
		l.planRows(c), l.accountRows(c, now), poolRows(c), edgeRows(c), epochRows(c),
		leaseRows(c), removedRows(c), pastRows(c), usageRows(c), keyRows(c), keyMonthRows(c), pastMonthRows(c), entryRows(c, now), unresolvedRows(c),
	}
}

// newTable makes a table with room for a number of rows.
func newTable(name, statement string, columns, rows int) table {
	return table{name: name, statement: statement, columns: columns, args: make([]any, 0, columns*rows)}
}

func (l *Ledger) planRows(c *Changes) table {
	t := newTable("plans", writePlans, 6, len(c.plans))
	for _, id := range sortedKeys(c.plans) {
		p := l.plans[id]
		t.put(p.ID, bit(p.APIAccess), p.PerMinute, p.MonthlyVolume, bit(p.Email), bit(p.Phone))
	}
	return t
}

func (l *Ledger) accountRows(c *Changes, now int64) table {
	t := newTable("accounts", writeAccounts, 14, len(c.accounts))
	for _, id := range sortedKeys(c.accounts) {
		a := l.accounts[id]
		p := a.credits
		t.put(id, "", "", a.Plan, bit(a.Suspended), now, p.Limit, p.Compensated, p.Spent, p.Lost,
			p.Leased, p.Deducting, a.posted, a.postedHour)
	}
	return t
}

func poolRows(c *Changes) table {
	t := newTable("pools", writePools, 6, len(c.pools))
	for _, id := range sortedPools(c.pools) {
		p := c.pools[id]
		t.put(int64(id.Kind), id.Subject, id.Window, p.Compensated, p.Spent, p.Lost)
	}
	return t
}

func pastRows(c *Changes) table {
	t := newTable("past pools", deletePools, 3, len(c.past))
	for _, id := range sortedPools(c.past) {
		t.put(int64(id.Kind), id.Subject, id.Window)
	}
	return t
}

func edgeRows(c *Changes) table {
	t := newTable("nodes", writeEdges, 4, len(c.edges))
	for _, name := range sortedKeys(c.edges) {
		e := c.edges[name]
		t.put(name, bit(e.Retired), e.Epoch, bit(e.Declared))
	}
	return t
}

func epochRows(c *Changes) table {
	t := newTable("epochs", writeEpochs, 7, len(c.epochs))
	for epoch, e := range c.epochs {
		t.put(e.Name, epoch.Number, int64(epoch.Boot),
			//mutant:applied-sequence-not-stored
			epoch.Applied, epoch.Granted, bit(epoch.Forked), bit(epoch.Ended))
	}
	return t
}

func leaseRows(c *Changes) table {
	t := newTable("leases", writeLeases, 11, len(c.leases))
	for _, h := range sortedLeases(c.leases) {
		id := h.pool.ID
		t.put(h.edge.Name, h.epoch.Number, int64(id.Kind), id.Subject, id.Window,
			h.Granted, h.Spent, h.Returned, h.Beyond, h.Until, bit(h.Lost))
	}
	return t
}

func removedRows(c *Changes) table {
	t := newTable("closed leases", deleteLeases, 5, len(c.removed))
	for _, h := range sortedLeases(c.removed) {
		id := h.pool.ID
		// A lease that was opened again after it was closed is written, not deleted.
		if again := h.epoch.leases[id]; again == nil {
			t.put(h.edge.Name, h.epoch.Number, int64(id.Kind), id.Subject, id.Window)
		}
	}
	return t
}

func usageRows(c *Changes) table {
	t := newTable("usage", writeUsage, 6, len(c.used))
	for _, u := range sortedUsage(c.used) {
		if n := c.used[u]; n != 0 {
			t.put(u.account, u.key, u.hour, int64(u.endpoint), int64(u.outcome), n)
		}
	}
	return t
}

func entryRows(c *Changes, now int64) table {
	t := newTable("credit entries", writeEntries, 5, len(c.Entries))
	for _, e := range c.Entries {
		t.put(e.Account, now, e.Kind, e.Amount, e.Note)
	}
	return t
}

func unresolvedRows(c *Changes) table {
	t := newTable("unresolved charges", writeUnresolved, 5, len(c.Unresolved))
	for _, u := range c.Unresolved {
		t.put(u.ID, u.Account, u.Key, u.Edge, u.AtMillis)
	}
	return t
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func keysOf[K comparable, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := keysOf(m)
	slices.Sort(keys)
	return keys
}

func sortedPools[V any](m map[syncproto.Pool]V) []syncproto.Pool {
	pools := keysOf(m)
	slices.SortFunc(pools, syncproto.Pool.Compare)
	return pools
}

func sortedLeases(leases map[*Lease]bool) []*Lease {
	sorted := keysOf(leases)
	slices.SortFunc(sorted, func(g, h *Lease) int {
		return cmp.Or(cmp.Compare(g.edge.Name, h.edge.Name), cmp.Compare(g.epoch.Number, h.epoch.Number),
			g.pool.ID.Compare(h.pool.ID))
	})
	return sorted
}

func sortedUsage(used map[usageKey]int64) []usageKey {
	sorted := keysOf(used)
	slices.SortFunc(sorted, func(u, v usageKey) int {
		return cmp.Or(cmp.Compare(u.account, v.account), cmp.Compare(u.hour, v.hour), cmp.Compare(u.key, v.key),
			cmp.Compare(u.endpoint, v.endpoint), cmp.Compare(u.outcome, v.outcome))
	})
	return sorted
}
