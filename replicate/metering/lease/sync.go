package lease

import "regedge/replicate/metering/syncproto"

// Sync is the next message on the lane that is answered at once. When there is something
// to report it carries a batch, and may leave the edge only once the Log's records are
// durable. Exactly one of Apply and Lost follows before the next Sync.
func (s *EdgeState) Sync(now int64) *syncproto.Sync {
	s.session.noteTime(now)
	s.session.sent, s.session.sentSeen, s.session.sentApplied = now, s.session.seen, s.outbox.applied
	m := &syncproto.Sync{Session: s.session.id, Seen: s.session.seen, NowMillis: now}
	if next := s.outbox.applied + 1; next <= s.outbox.sealed {
		m.Batch = s.sealedBatch(next)
	} else {
		s.sweep(now)
		s.seal(now)
		m.Batch = s.outbox.inflight
		s.declare(m)
	}
	if s.Serving() {
		m.Wants = s.wants.take()
	}
	m.Rates = s.takeRates(now)
	s.session.syncs++
	return m
}

// Watch is the message on the lane that the writer holds open, for at most hold
// milliseconds.
func (s *EdgeState) Watch(now, hold int64) *syncproto.Sync {
	return &syncproto.Sync{Session: s.session.id, Seen: s.session.seen, HoldMillis: hold, NowMillis: now}
}

// Idle reports whether a Sync now would have no content, and only show that the edge is alive.
func (s *EdgeState) Idle() bool {
	return s.outbox.inflight == nil && s.outbox.applied == s.outbox.sealed && !s.declaration.active &&
		len(s.rates.listed)+len(s.usage.current)+len(s.usage.late)+len(s.wants.pending)+s.returns.len()+s.doubts.len() == 0
}

// Lost says that the message under way was not answered: what it asked for is asked for
// again.
func (s *EdgeState) Lost() {
	s.wants.lost()
	s.declaration.pending = 0
}
