package lease

import (
	"cmp"
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// use names one row of usage.
type use struct {
	account, key int64
	hour         int32
	endpoint     charge.Endpoint
	outcome      charge.Outcome
}

func hourOf(millis int64) int32 { return syncproto.Hour(millis) }

// tally counts requests by row. A row at zero is not kept.
type tally map[use]int64

func (t tally) add(u use, n int64) {
	if sum := t[u] + n; sum != 0 {
		t[u] = sum
	} else {
		delete(t, u)
	}
}

// merge adds what is in from to t.
func merge(t, from tally) {
	for u, n := range from {
		t.add(u, n)
	}
}

// tallyOf is the tally of an epoch, made when there is none.
func tallyOf(all map[uint64]tally, epoch uint64) tally {
	t := all[epoch]
	if t == nil {
		t = tally{}
		all[epoch] = t
	}
	return t
}

// rows lists at most limit rows, in order. What was taken back comes first, for the units
// may have been spent again since.
func (t tally) rows(limit int) []syncproto.Usage {
	if len(t) == 0 {
		return nil
	}
	rows := make([]syncproto.Usage, 0, len(t))
	for u, n := range t {
		rows = append(rows, syncproto.Usage{
			Account: u.account, Key: u.key, Hour: u.hour, Endpoint: u.endpoint, Outcome: u.outcome, Count: n,
		})
	}
	slices.SortFunc(rows, func(a, b syncproto.Usage) int {
		return cmp.Or(cmp.Compare(min(a.Count, 0), min(b.Count, 0)), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Hour, b.Hour),
			cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Outcome, b.Outcome))
	})
	return rows[:min(limit, len(rows))]
}

// durable lists the rows that the journal can rebuild: failed requests are counted in
// memory only.
func (t tally) durable() []syncproto.Usage {
	return slices.DeleteFunc(t.rows(len(t)), func(u syncproto.Usage) bool { return u.Outcome == charge.Failed })
}

func useOf(u *syncproto.Usage) use { return use{u.Account, u.Key, u.Hour, u.Endpoint, u.Outcome} }
