package lease

import (
	"cmp"
	"slices"

	"regedge/replicate/metering/syncproto"
)

// sweepParts is in how many syncs the sweep comes round to every account: about ten
// minutes at one sync a second.
const sweepParts = 600

// Greeting reports whether the edge has to say Hello before it can sync.
func (b *EdgeState) Greeting() bool { return b.session == 0 || b.settled() }

// Hello is the message that opens a session. A new epoch is asked for only in a session
// in which the writer took everything of the old one: to another, whose ledger may have
// come back from a backup, the old one has to be shown first.
func (b *EdgeState) Hello(now int64) *syncproto.Hello {
	h := &syncproto.Hello{Boot: b.boot, Generation: b.generation, NowMillis: now}
	if b.session != 0 && b.settled() {
		h.Boot += b.epoch * oddStep // each epoch's successor is asked for by another number
		return h
	}
	h.Epoch, h.Sealed, h.Acked, h.Granted = b.epoch, b.sealed, b.acked, b.granted
	return h
}

// oddStep spreads consecutive numbers over all 64 bits: 2^64 by the golden ratio.
const oddStep = 0x9E3779B97F4A7C15

// settled reports whether a superseded epoch has nothing left to report or return.
func (b *EdgeState) settled() bool {
	if b.standing != syncproto.Superseded || b.session != 0 && !b.told {
		return false
	}
	if b.inflight != nil || b.applied < b.sealed || len(b.pending)+len(b.carried[b.epoch]) > 0 {
		return false
	}
	for _, a := range b.accounts {
		for _, h := range []*holding{&a.credits, &a.volume} {
			if h.known || h.held() > 0 {
				return false
			}
		}
	}
	return true
}

// Sync is the next message of the lane that is answered at once. It carries a batch when
// there is something to report: then it may leave the edge only once the Log's records
// are durable. Exactly one of Apply and Lost follows before the next.
func (b *EdgeState) Sync(now int64) *syncproto.Sync {
	s := &syncproto.Sync{Session: b.session, Seen: b.seen, NowMillis: now}
	if next := b.applied + 1; next <= b.sealed {
		s.Batch = b.sealedBatch(next)
	} else {
		b.sweep(now)
		b.seal(now)
		s.Batch = b.inflight
		b.declare(s)
	}
	s.Wants = b.takeWants()
	s.Rates = b.takeRates(now)
	return s
}

// Watch is the message of the lane that is held open, at most hold milliseconds.
func (b *EdgeState) Watch(now, hold int64) *syncproto.Sync {
	return &syncproto.Sync{Session: b.session, Seen: b.seen, HoldMillis: hold, NowMillis: now}
}

// Idle reports whether a Sync now would tell the writer nothing but that the edge lives.
func (b *EdgeState) Idle() bool {
	return b.inflight == nil && b.applied == b.sealed && !b.declaring && len(b.rates) == 0 &&
		len(b.pending)+len(b.late)+len(b.wants)+len(b.recalls)+len(b.trims)+len(b.closing)+len(b.doubts)+len(b.unresolved) == 0
}

// sealedBatch is a batch that was made before. One that is not kept any more is sent
// without content, so that the ones after it can follow: its charges are lost to the
// writer, at the service's cost. One that can't be read just now is nil, and waits.
func (b *EdgeState) sealedBatch(seq uint64) *syncproto.Batch {
	if b.inflight != nil && b.inflight.Seq == seq {
		return b.inflight
	}
	batch, err := b.log.Batch(b.epoch, seq)
	if b.unread = err != nil; b.unread || batch != nil {
		return batch
	}
	return &syncproto.Batch{Seq: seq, Of: b.epoch}
}

// takeWants moves the wants into the message under way.
func (b *EdgeState) takeWants() []syncproto.Want {
	if !b.Serving() || len(b.wants) == 0 {
		return nil
	}
	wants := make([]syncproto.Want, 0, len(b.wants))
	for _, w := range b.wants {
		wants = append(wants, w)
	}
	slices.SortFunc(wants, func(x, y syncproto.Want) int { return comparePools(x.Pool, y.Pool) })
	wants = wants[:min(len(wants), syncproto.MaxWants)]
	for _, w := range wants {
		b.asked[w.Pool] = w
		delete(b.wants, w.Pool)
	}
	if len(b.wants) == 0 {
		b.wants = map[syncproto.Pool]syncproto.Want{} // a map never shrinks
	}
	return wants
}

func comparePools(p, q syncproto.Pool) int {
	return cmp.Or(cmp.Compare(p.Kind, q.Kind), cmp.Compare(p.Subject, q.Subject), cmp.Compare(p.Window, q.Window))
}

// takeRates lists the counts of this minute that the writer does not know.
func (b *EdgeState) takeRates(now int64) []syncproto.Rate {
	minute := syncproto.Minute(now)
	n := min(len(b.rates), syncproto.MaxRates)
	var rates []syncproto.Rate
	for _, id := range b.rates[:n] {
		a := b.accounts[id]
		if a == nil {
			continue
		}
		a.rateListed = false
		if a.minute == minute && a.count != a.rateTold {
			a.rateTold = a.count
			rates = append(rates, syncproto.Rate{Account: id, Minute: minute, Count: int64(a.count)})
		}
	}
	b.rates = append(b.rates[:0], b.rates[n:]...)
	return rates
}

// declare adds the next part of the leases' declaration to a message.
func (b *EdgeState) declare(s *syncproto.Sync) {
	b.declared = 0
	if !b.declaring {
		return
	}
	accounts, total := len(b.order), len(b.order)+len(b.keyOrder)
	for i := b.declaredTo; i < total && len(s.Declared) <= syncproto.MaxDeclared-2; i++ {
		if i < accounts {
			id := b.order[i]
			a := b.accounts[id]
			addDeclared(s, syncproto.Pool{Kind: syncproto.Credits, Subject: id}, &a.credits)
			addDeclared(s, syncproto.Pool{Kind: syncproto.Volume, Subject: id, Window: a.volume.window}, &a.volume)
		} else {
			k := b.keys[b.keyOrder[i-accounts]]
			addDeclared(s, syncproto.Pool{Kind: syncproto.NotFound, Subject: b.keyOrder[i-accounts], Window: k.notFound.window}, &k.notFound)
		}
		b.declared++
	}
	s.DeclaredLast = b.declaredTo+b.declared == total
}

func addDeclared(s *syncproto.Sync, p syncproto.Pool, h *holding) {
	if h.known && h.granted > 0 {
		s.Declared = append(s.Declared, syncproto.Declared{Pool: p, Granted: h.granted})
	}
}

// Lost says that the message under way was not answered: what it asked for is asked
// again.
func (b *EdgeState) Lost() {
	for _, w := range b.asked {
		b.want(w)
	}
	b.asked = map[syncproto.Pool]syncproto.Want{}
	b.declared = 0
}

// sweep looks at some accounts and keys: what idles is brought to its floor or closed,
// what belongs to a past window is dropped.
func (b *EdgeState) sweep(now int64) {
	if b.declaring || !b.Serving() {
		return
	}
	for range min(len(b.order)/sweepParts+8, len(b.order)) {
		if b.sweepAt >= len(b.order) {
			b.sweepAt = 0
		}
		b.sweepAccount(b.order[b.sweepAt], now)
		b.sweepAt++
	}
	yesterday := syncproto.Day(now) - 1 // a clock may be set back a little
	for range min(len(b.keyOrder)/sweepParts+8, len(b.keyOrder)) {
		if b.keyAt >= len(b.keyOrder) {
			b.keyAt = 0
		}
		if id := b.keyOrder[b.keyAt]; b.keys[id].notFound.window < yesterday {
			b.dropKey(id)
		}
		b.keyAt++
		if len(b.keyOrder) == 0 {
			break
		}
	}
}

func (b *EdgeState) sweepAccount(id, now int64) {
	a := b.accounts[id]
	idle := now - a.lastUsed
	open := a.credits.known || a.volume.known || a.credits.held() > 0 // by a void, of which no row came yet
	switch {
	case !open && a.unreported == 0 && idle > idleMillis && b.applied >= a.closeSeq:
		b.dropAccount(id)
	case open && idle >= idleMillis:
		b.closing = append(b.closing, id)
	case open && idle >= slotMillis:
		b.trims = append(b.trims, syncproto.Pool{Kind: syncproto.Credits, Subject: id},
			syncproto.Pool{Kind: syncproto.Volume, Subject: id, Window: a.volume.window})
	}
}
