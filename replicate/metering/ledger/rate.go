package ledger

import "regedge/replicate/metering/syncproto"

// rate counts the requests of an account in a minute, by edge. It is not stored: the rate
// limit is approximate.
type rate struct {
	minute int64
	total  int64
	counts map[*Edge]int64
}

// maxRate bounds the requests of an account at one edge in a minute. No edge serves as many, and
// the sum over all edges must fit into a reply.
const maxRate = 1 << 32

// takeRates notes an edge's counts, and lists the accounts for the other edges that hold
// credits of them.
func (l *Ledger) takeRates(now int64, e *Edge, rates []syncproto.Rate) {
	l.forgetRates(syncproto.Minute(now))
	for _, r := range rates {
		a := l.accounts[r.Account]
		if a == nil || r.Minute < l.rateMinute-1 || r.Minute > l.rateMinute+1 {
			continue
		}
		known := l.rates[r.Account]
		if known == nil {
			known = &rate{minute: r.Minute, counts: map[*Edge]int64{}}
			l.rates[r.Account] = known
		}
		if r.Minute > known.minute {
			known.minute, known.total = r.Minute, 0
			clear(known.counts)
		}
		if count := min(r.Count, maxRate); r.Minute == known.minute && count > known.counts[e] {
			known.total += count - known.counts[e]
			known.counts[e] = count
			l.listRate(a, e)
		}
	}
}

// listRate lists the account for every other edge that may get requests of it.
func (l *Ledger) listRate(a *Account, from *Edge) {
	for _, h := range a.credits.leases {
		to := h.edge
		if to == from || to.current != h.epoch || to.listed[a.ID] {
			continue
		}
		to.listed[a.ID] = true
		to.rates = append(to.rates, a.ID)
	}
}

// otherRates lists the counts of all other edges, for accounts where they changed.
func (l *Ledger) otherRates(e *Edge) []syncproto.Rate {
	n := min(len(e.rates), syncproto.MaxRates)
	var told []syncproto.Rate
	for _, id := range e.rates[:n] {
		delete(e.listed, id)
		if r := l.rates[id]; r != nil {
			told = append(told, syncproto.Rate{Account: id, Minute: r.minute, Count: r.total - r.counts[e]})
		}
	}
	e.rates = append(e.rates[:0], e.rates[n:]...)
	return told
}

// forgetRates drops the counts of other minutes.
func (l *Ledger) forgetRates(minute int64) {
	if minute == l.rateMinute {
		return
	}
	l.rateMinute = minute
	for id, r := range l.rates {
		if r.minute < minute-1 || r.minute > minute+1 { // or the clock was ahead
			delete(l.rates, id)
		}
	}
}
