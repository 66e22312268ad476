package lease

import (
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// outbox numbers the batches of an epoch and follows them until the writer has them.
// Sequences count from 1. inflight, if there is one, is the newest.
type outbox struct {
	sealed     uint64           // newest batch made
	applied    uint64           // newest batch that the writer of this session has
	acked      uint64           // newest batch that any writer ever had
	inflight   *syncproto.Batch // sealed and not acknowledged
	unreadable bool             // a sealed batch could not be read the last time
	replayed   []Reported       // acknowledged in replayed records
}

// clear begins the numbering of another epoch.
func (o *outbox) clear() { o.sealed, o.applied, o.acked, o.inflight = 0, 0, 0, nil }

// empty reports whether the writer has every batch.
func (o *outbox) empty() bool { return o.inflight == nil && o.applied >= o.sealed }

// behind reports whether the writer lacks batches that can be sent now.
func (o *outbox) behind() bool { return o.applied < o.sealed && !o.unreadable }

// abandoned reports whether the writer has batches that were never made here: it takes no
// others under their numbers.
func (o *outbox) abandoned() bool { return o.acked > o.sealed }

// news reports whether the writer has applied more than is known here.
func (o *outbox) news(applied uint64) bool {
	return applied > o.applied || o.inflight != nil && applied >= o.inflight.Seq
}

// returning lists the leases with units on their way back: the writer does not know yet that it can
// grant these again.
func (o *outbox) returning() (of map[syncproto.Pool]bool) {
	if o.inflight == nil {
		return nil
	}
	for _, r := range o.inflight.Returns {
		if r.Units == 0 {
			continue
		}
		if of == nil {
			of = map[syncproto.Pool]bool{}
		}
		of[r.Pool] = true
	}
	return of
}

// Reported is a batch that the writer has applied, and the epoch in which it is numbered.
type Reported struct {
	Epoch uint64
	Batch *syncproto.Batch
}

// Behind reports whether there is more to send at once: batches that the writer lacks, or
// leases to declare.
func (s *EdgeState) Behind() bool { return s.outbox.behind() || s.declaration.active }

// TakeReplayed lists the batches whose acknowledgement was replayed. They may not have been
// archived before the crash.
func (s *EdgeState) TakeReplayed() []Reported {
	taken := s.outbox.replayed
	s.outbox.replayed = nil
	return taken
}

// seal makes the next batch of what is unreported, unless one is in flight or there is
// nothing to say. The batch may leave the edge once the Log's records are durable.
func (s *EdgeState) seal(now int64) {
	if s.outbox.abandoned() {
		if s.HasUnreported() { // voids since: a replay must drop them too
			s.logAbandon()
		}
		s.dropUsage()
		return
	}
	if s.outbox.inflight != nil || !s.usage.confirmed {
		return
	}
	s.doubts.resolve(now, &s.recent)
	batch := &syncproto.Batch{Seq: s.outbox.sealed + 1, Of: s.standing.epoch}
	if epoch := s.usage.oldestLate(); epoch != 0 {
		batch.Of = epoch
	}
	batch.Usage = s.usage.of(batch.Of, s.standing.epoch).rows(syncproto.MaxUsage)
	// Units are returned only together with all usage: to the writer, units that a void
	// brought back are spent until it has the void.
	whole := batch.Of == s.standing.epoch && len(batch.Usage) == len(s.usage.current)
	switch {
	case !whole:
	case s.standing.status == syncproto.OK:
		batch.Returns = s.dueReturns(now)
	case s.standing.status == syncproto.Superseded:
		batch.Returns = s.allReturns()
	}
	batch.Unresolved = slices.Clone(s.doubts.unresolved)
	if batch.Empty() {
		return
	}
	s.logSeal(batch)
	s.applySeal(batch)
}

// applySeal is the effect of a sealed batch, now and on replay.
func (s *EdgeState) applySeal(batch *syncproto.Batch) {
	s.outbox.sealed, s.outbox.inflight = batch.Seq, batch
	s.usage.remove(batch, s.standing.epoch)
	for _, r := range batch.Returns {
		s.applyReturn(r, batch.Seq)
	}
	s.doubts.report(batch.Unresolved)
	s.recent.report(batch.Unresolved)
}

// acknowledge marks the batches up to applied as reported, and settles the one in flight in the
// balances. It returns that batch, nil when it is not among them.
func (s *EdgeState) acknowledge(applied uint64) *Reported {
	o := &s.outbox
	o.applied = applied
	o.acked = max(o.acked, applied)
	batch := o.inflight
	if batch == nil || batch.Seq > applied {
		return nil
	}
	o.inflight = nil
	for i := range batch.Usage {
		u := &batch.Usage[i]
		if u.Outcome != charge.Found {
			continue
		}
		a := s.leases.accounts.ensure(u.Account)
		a.unreported -= u.Count
		a.balance -= u.Count
	}
	return &Reported{s.standing.epoch, batch}
}

// sealedBatch returns a batch that was made before. One that is no longer kept is sent
// without content, so that the next ones can follow: its charges are lost to the writer,
// at the service's cost. One that can't be read now is nil and tried again later.
func (s *EdgeState) sealedBatch(seq uint64) *syncproto.Batch {
	if s.outbox.inflight != nil && s.outbox.inflight.Seq == seq {
		return s.outbox.inflight
	}
	batch, err := s.log.Batch(s.standing.epoch, seq)
	s.outbox.unreadable = err != nil
	if err != nil || batch != nil {
		return batch
	}
	return &syncproto.Batch{Seq: seq, Of: s.standing.epoch}
}

// Lacking is the batch that the next Sync looks for in the Log, if there is one.
func (s *EdgeState) Lacking() (epoch, seq uint64, ok bool) {
	next := s.outbox.applied + 1
	inflight := s.outbox.inflight
	return s.standing.epoch, next, next <= s.outbox.sealed && (inflight == nil || inflight.Seq != next)
}
