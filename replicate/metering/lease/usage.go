package lease

import (
	"cmp"
	"maps"
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// use is the key of one row of usage.
type use struct {
	account, key int64
	hour         int32
	endpoint     charge.Endpoint
	outcome      charge.Outcome
}

func useOf(u *syncproto.Usage) use { return use{u.Account, u.Key, u.Hour, u.Endpoint, u.Outcome} }

// tally counts requests by row. Rows at zero are removed.
type tally map[use]int64

func (t tally) add(u use, n int64) {
	if sum := t[u] + n; sum != 0 {
		t[u] = sum
	} else {
		delete(t, u)
	}
}

// merge adds the counts of from.
func (t tally) merge(from tally) {
	for u, n := range from {
		t.add(u, n)
	}
}

// rows lists at most limit rows, sorted. Negative counts come first: the units that they
// give back may have been spent again since.
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
		return cmp.Or(cmp.Compare(min(a.Count, 0), min(b.Count, 0)), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Outcome, b.Outcome))
	})
	return rows[:min(limit, len(rows))]
}

// durable lists the rows that the journal can rebuild: failed requests are counted in
// memory only.
func (t tally) durable() []syncproto.Usage {
	return slices.DeleteFunc(t.rows(len(t)), func(u syncproto.Usage) bool { return u.Outcome == charge.Failed })
}

// tallyOf returns the tally of an epoch, and makes it when there is none.
func tallyOf(byEpoch map[uint64]tally, epoch uint64) tally {
	t := byEpoch[epoch]
	if t == nil {
		t = tally{}
		byEpoch[epoch] = t
	}
	return t
}

// usage counts the requests that no batch has reported yet, by the epoch whose leases they
// were spent from.
//
// At a restart all of it is set aside in carried: if the state directory is an older copy, its
// original may have reported that usage, and it must not be reported a second time. When the
// writer has confirmed the directory, carried is merged back and stays empty until the next
// restart.
type usage struct {
	confirmed bool             // the writer found the state directory current since the restart
	current   tally            // of the current epoch
	late      map[uint64]tally // of earlier epochs
	carried   map[uint64]tally // from before the restart, of any epoch
}

func newUsage() usage {
	return usage{current: tally{}, late: map[uint64]tally{}, carried: map[uint64]tally{}}
}

// separate makes everything carried. epoch is the current one.
func (u *usage) separate(epoch uint64) {
	tallyOf(u.carried, epoch).merge(u.current)
	for of, t := range u.late {
		tallyOf(u.carried, of).merge(t)
	}
	u.current, u.late, u.confirmed = tally{}, map[uint64]tally{}, false
}

// confirm notes that the writer found the state directory current.
func (u *usage) confirm(epoch uint64) {
	u.join(epoch)
	u.confirmed = true
}

// join undoes separate: what is carried is to be reported again.
func (u *usage) join(epoch uint64) {
	for of, t := range u.carried {
		u.of(of, epoch).merge(t)
	}
	u.dropCarried()
}

func (u *usage) dropCarried() { u.carried = map[uint64]tally{} }

// dropEarlier forgets the usage of all epochs but the current one.
func (u *usage) dropEarlier(current uint64) {
	u.late = map[uint64]tally{}
	maps.DeleteFunc(u.carried, func(of uint64, _ tally) bool { return of != current })
}

// clear forgets all usage.
func (u *usage) clear() {
	u.current, u.late = tally{}, map[uint64]tally{}
	u.dropCarried()
}

// of returns the tally of an epoch that is not carried.
func (u *usage) of(epoch, current uint64) tally {
	if epoch == current {
		return u.current
	}
	return tallyOf(u.late, epoch)
}

// oldestLate is the earliest of the earlier epochs with unreported usage, 0 for none.
func (u *usage) oldestLate() uint64 {
	oldest := uint64(0)
	for epoch, t := range u.late {
		if len(t) == 0 {
			delete(u.late, epoch)
		} else if oldest == 0 || epoch < oldest {
			oldest = epoch
		}
	}
	return oldest
}

// remove takes the rows of a sealed batch out. A batch reports the whole count of a row.
func (u *usage) remove(b *syncproto.Batch, current uint64) {
	for i := range b.Usage {
		delete(u.of(b.Of, current), useOf(&b.Usage[i]))
	}
	if len(u.current) == 0 {
		u.current = tally{} // a map never shrinks
	}
}

// each calls visit for every row.
func (u *usage) each(visit func(u use, n int64)) {
	for row, n := range u.current {
		visit(row, n)
	}
	for _, part := range []map[uint64]tally{u.late, u.carried} {
		for _, t := range part {
			for row, n := range t {
				visit(row, n)
			}
		}
	}
}
