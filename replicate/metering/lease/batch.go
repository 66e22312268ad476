package lease

import (
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// seal makes the next batch of what is unreported, unless one is under way or there is
// nothing to say. The batch may leave the edge once the Log's records are durable.
func (b *EdgeState) seal(now int64) {
	if b.abandoned() {
		b.dropUsage() // failed requests and voids since
		return
	}
	if b.inflight != nil || !b.accepted {
		return
	}
	b.resolveDoubts(now)
	batch := &syncproto.Batch{Seq: b.sealed + 1, Of: b.epoch}
	if epoch := b.oldestLate(); epoch != 0 {
		batch.Of = epoch
		batch.Usage = b.late[epoch].rows(syncproto.MaxUsage)
	} else {
		batch.Usage = b.pending.rows(syncproto.MaxUsage)
	}
	// Units come home with all of their usage reported: those that a void brought back the
	// writer takes for spent until it has the void.
	whole := batch.Of == b.epoch && len(batch.Usage) == len(b.pending)
	switch {
	case !whole:
	case b.standing == syncproto.OK:
		batch.Returns = b.someReturns(now)
	case b.standing == syncproto.Superseded:
		batch.Returns = b.allReturns()
	}
	batch.Unresolved = slices.Clone(b.unresolved)
	if batch.Empty() {
		return
	}
	b.logSeal(batch)
	b.applySeal(batch)
}

// oldestLate is the earliest epoch with usage that is unreported, 0 for none.
func (b *EdgeState) oldestLate() uint64 {
	oldest := uint64(0)
	for epoch, t := range b.late {
		if len(t) == 0 {
			delete(b.late, epoch)
		} else if oldest == 0 || epoch < oldest {
			oldest = epoch
		}
	}
	return oldest
}

// returning gathers the returns of one batch, one for each lease.
type returning struct {
	list   []syncproto.Return
	places map[syncproto.Pool]int
}

// put notes a return. A close takes the place of an earlier return of the same lease.
func (r *returning) put(n syncproto.Return) {
	if i, ok := r.places[n.Pool]; ok {
		if n.Close {
			r.list[i] = n
		}
		return
	}
	if len(r.list) < syncproto.MaxReturns {
		r.places[n.Pool] = len(r.list)
		r.list = append(r.list, n)
	}
}

// someReturns lists what was recalled, what idles above its floor, and what is closed.
func (b *EdgeState) someReturns(now int64) []syncproto.Return {
	r := returning{places: map[syncproto.Pool]int{}}
	for _, p := range b.recalls {
		b.putExcess(&r, p, 0)
	}
	for _, p := range b.trims {
		b.putExcess(&r, p, floorUnits)
	}
	for _, id := range b.closing {
		if a := b.accounts[id]; a != nil && now-a.lastUsed >= idleMillis {
			b.putClose(&r, id, a)
		}
	}
	b.recalls, b.trims, b.closing = b.recalls[:0], b.trims[:0], b.closing[:0]
	return r.list
}

// putExcess returns what a lease holds above keep.
func (b *EdgeState) putExcess(r *returning, p syncproto.Pool, keep int64) {
	h := b.holding(p)
	if h != nil && h.window == p.Window && h.held() > keep {
		r.put(syncproto.Return{Pool: p, Units: h.held() - keep})
	}
}

// putClose returns both leases of an account and ends them. Both or none: there is
// always room for two.
func (b *EdgeState) putClose(r *returning, id int64, a *account) {
	if len(r.list) > syncproto.MaxReturns-2 {
		return
	}
	for _, p := range [2]syncproto.Pool{
		{Kind: syncproto.Credits, Subject: id},
		{Kind: syncproto.Volume, Subject: id, Window: a.volume.window},
	} {
		if h := b.holding(p); h.known || h.held() > 0 {
			r.put(syncproto.Return{Pool: p, Units: max(h.held(), 0), Close: true})
		}
	}
}

// allReturns closes every account and returns what keys hold, as far as a batch reaches.
func (b *EdgeState) allReturns() []syncproto.Return {
	r := returning{places: map[syncproto.Pool]int{}}
	for _, id := range b.order {
		b.putClose(&r, id, b.accounts[id])
	}
	for _, id := range b.keyOrder {
		b.putExcess(&r, syncproto.Pool{Kind: syncproto.NotFound, Subject: id, Window: b.keys[id].notFound.window}, 0)
	}
	return r.list
}

// applySeal is the effect of a sealed batch on the book, now and on replay.
func (b *EdgeState) applySeal(batch *syncproto.Batch) {
	b.sealed, b.inflight = batch.Seq, batch
	for i := range batch.Usage {
		b.unpend(batch.Of, useOf(&batch.Usage[i]))
	}
	if len(b.pending) == 0 {
		b.pending = tally{} // a map never shrinks
	}
	for _, r := range batch.Returns {
		h := b.holding(r.Pool)
		if h == nil || h.window != r.Pool.Window {
			continue
		}
		//mutant:returned-units-still-spent
		h.returned += r.Units
		h.dry = h.dry && r.Units == 0 // what goes back is to be had again
		if r.Close {
			*h = holding{window: h.window}
			b.accounts[r.Pool.Subject].closeSeq = batch.Seq
		}
	}
	b.unresolved = slices.DeleteFunc(b.unresolved, func(u syncproto.Unresolved) bool {
		return slices.Contains(batch.Unresolved, u)
	})
}

// unpend takes a reported row off what is unreported. A batch has the whole of it.
func (b *EdgeState) unpend(of uint64, u use) {
	if of != b.epoch {
		delete(tallyOf(b.late, of), u)
	} else {
		delete(b.pending, u)
	}
}

// acknowledge folds a batch that the writer applied into the balances.
func (b *EdgeState) acknowledge(applied uint64) *Reported {
	b.applied = applied
	b.acked = max(b.acked, applied)
	batch := b.inflight
	if batch == nil || batch.Seq > applied {
		return nil
	}
	b.inflight = nil
	for i := range batch.Usage {
		u := &batch.Usage[i]
		if u.Outcome != charge.Found {
			continue
		}
		a := b.account(u.Account)
		a.unreported -= u.Count
		a.balance -= u.Count
	}
	return &Reported{b.epoch, batch}
}
