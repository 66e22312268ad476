package ledger

import "regedge/replicate/metering/syncproto"

// rate counts the requests of an account, or of a key with a rate of its own, in a minute, by edge. It is not
// stored: the rate limit is approximate.
type rate struct {
	minute int64
	total  int64
	counts map[*Edge]int64
}

// maxRate bounds the requests of an account at one edge in a minute. No edge serves as many, and
// the sum over all edges must fit into a reply.
const maxRate = 1 << 32

// takeRates notes an edge's counts, and lists their subjects for the other edges that may serve them. A retired edge's
// counts are ignored: its machine may be in other hands.
func (l *Ledger) takeRates(now int64, e *Edge, rates []syncproto.Rate) {
	l.forgetRates(syncproto.Minute(now))
	if e.Retired {
		return
	}
	for _, r := range rates {
		if r.Minute < l.rateMinute-1 || r.Minute > l.rateMinute+1 {
			continue
		}
		holders, ok := l.holders(r)
		if !ok {
			continue
		}
		known := l.rates[r.Subject]
		if known == nil {
			known = &rate{minute: r.Minute, counts: map[*Edge]int64{}}
			l.rates[r.Subject] = known
		}
		if r.Minute > known.minute {
			known.minute, known.total = r.Minute, 0
			clear(known.counts)
		}
		if count := min(r.Count, maxRate); r.Minute == known.minute && count > known.counts[e] {
			known.total += count - known.counts[e]
			known.counts[e] = count
			listRate(r.Subject, holders, e)
		}
	}
}

// holders are the leases of the edges that may serve a rate's subject: leases of the account's credits, or of the key's
// not-found lookups, which every edge needs before it serves a key. ok is false for an unknown subject.
func (l *Ledger) holders(r syncproto.Rate) (leases []*Lease, ok bool) {
	if key := syncproto.KeyOf(r.Subject); key != 0 {
		p := l.pools[syncproto.Pool{Kind: syncproto.NotFound, Subject: key, Window: syncproto.Day(60_000 * r.Minute)}]
		if p == nil {
			return nil, false
		}
		return p.leases, len(p.leases) > 0
	}
	a := l.accounts[r.Subject]
	if a == nil {
		return nil, false
	}
	return a.credits.leases, true
}

// listRate lists a subject for every other edge that may serve it.
func listRate(subject int64, holders []*Lease, from *Edge) {
	for _, h := range holders {
		if h.edge != from && h.edge.current == h.epoch {
			h.edge.listRate(subject)
		}
	}
}

func (e *Edge) listRate(subject int64) {
	if !e.listed[subject] {
		e.listed[subject] = true
		e.rates = append(e.rates, subject)
	}
}

// tellRate lists the rate of a pool's subject for an edge that gets a lease of it, or a session: from then
// on the edge may serve it, and others have counted requests of this minute.
func (l *Ledger) tellRate(e *Edge, of syncproto.Pool) {
	subject := of.Subject
	switch of.Kind {
	case syncproto.NotFound:
		subject = syncproto.OfKey(subject)
	case syncproto.Volume:
		return // credits are of the same account
	}
	if r := l.rates[subject]; r != nil && r.total > r.counts[e] {
		e.listRate(subject)
	}
}

// otherRates lists the counts of all other edges, for subjects where they changed.
func (l *Ledger) otherRates(e *Edge) []syncproto.Rate {
	n := min(len(e.rates), syncproto.MaxRates)
	var told []syncproto.Rate
	for _, id := range e.rates[:n] {
		delete(e.listed, id)
		if r := l.rates[id]; r != nil {
			told = append(told, syncproto.Rate{Subject: id, Minute: r.minute, Count: r.total - r.counts[e]})
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
