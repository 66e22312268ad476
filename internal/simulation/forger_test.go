package simulation

import (
	"math"

	"regedge/replicate/metering/syncproto"
)

// forged answers an edge's message as somebody does who passes for its writer, under TLS and
// with what the message says: a stranger at the writer's address, or a damaged centre. The
// writer may have got the message, too.
//
// It is not done to an edge on an older copy of its disk: a forged reply that confirms the copy has it report
// again what the original reported.
func (e *edge) forged(message []byte) []byte {
	s := e.sim
	m, err := syncproto.DecodeMessage(message)
	s.must(err, "read the edge's message")
	r := s.forgery(e, &m)
	if e.standsForCopy(&m) {
		r.Status = syncproto.Stranger
	}
	answer := r.Encode()
	if s.random.IntN(8) == 0 {
		for range 1 + s.random.IntN(3) {
			answer[s.random.IntN(len(answer))] ^= 1 << s.random.IntN(8)
		}
		if s.random.IntN(3) == 0 {
			answer = answer[:s.random.IntN(len(answer))]
		}
	}
	if r, err = syncproto.DecodeReply(answer); err == nil && r.Answers == m.Number {
		s.count(forgedReply)
		s.detail("%s gets a forged reply: %+v", e.name, *r)
		e.noteForged(&m, r)
	}
	return answer
}

// forgery makes a reply that may be right in part.
func (s *sim) forgery(e *edge, m *syncproto.Message) *syncproto.Reply {
	if other := s.edges[s.random.IntN(len(s.edges))]; s.random.IntN(6) == 0 && len(other.replies) > 0 { // of another node, mostly
		r, err := syncproto.DecodeReply(other.replies[s.random.IntN(len(other.replies))])
		s.must(err, "read the writer's reply")
		r.Answers = m.Number
		return r
	}
	r := &syncproto.Reply{Answers: m.Number, Status: syncproto.OK, Session: 1 + s.random.Uint64N(1<<60), Epoch: e.epoch,
		Generation: e.generation(), Live: 1 + s.random.Int64N(3), NowMillis: max(s.clock.Load()+s.jump()*s.random.Int64N(2), 0),
		Declare: s.random.IntN(6) == 0}
	if m.Hello != nil {
		if r.Applied = m.Hello.Sealed; e.epoch == 0 {
			r.Status, r.Epoch = syncproto.Fresh, 1+s.random.Uint64N(1<<s.random.IntN(48))
		}
	} else {
		r.Session, r.Since = m.Sync.Session, m.Sync.Seen
		r.Upto = r.Since + s.random.Uint64N(1<<s.random.IntN(24))
		if m.Sync.Batch != nil {
			r.Applied = m.Sync.Batch.Seq - s.random.Uint64N(2)
		}
		for range s.random.IntN(4) {
			r.Upto++
			r.Rows = append(r.Rows, s.forgedRow(r.Upto))
		}
	}
	switch s.random.IntN(12) {
	case 0:
		r.Status = syncproto.Status(1 + s.random.IntN(int(syncproto.Retired)))
	case 1:
		r.Status, r.Epoch = syncproto.Forked, r.Epoch+s.random.Uint64N(1<<s.random.IntN(48))
	case 2:
		r.Generation = s.random.Uint64N(1 << s.random.IntN(48))
	case 3:
		r.Applied += s.random.Uint64N(1 << s.random.IntN(48))
	case 4:
		r.Epoch = s.edges[s.random.IntN(len(s.edges))].epoch
	}
	return r
}

// generation is the generation of a writer that replied not long ago, 0 for none.
func (e *edge) generation() uint64 {
	if len(e.replies) == 0 {
		return 0
	}
	r, err := syncproto.DecodeReply(e.replies[len(e.replies)-1])
	e.sim.must(err, "read the writer's reply")
	return r.Generation
}

// forgedRow grants what nobody granted, recalls it, or says that nothing is left, for any account and window.
func (s *sim) forgedRow(version uint64) syncproto.Row {
	now, most := s.clock.Load(), int64(fewClaimed)
	if s.random.IntN(16) == 0 {
		most = mostClaimed
	}
	row := syncproto.Row{Version: version, Pool: syncproto.Pool{Kind: syncproto.Kind(1 + s.random.IntN(3)), Subject: 1 + s.random.Int64N(accounts)},
		Granted: s.random.Int64N(most), UntilMillis: now + s.random.Int64N(3*dayMillis) - dayMillis, Recall: s.random.IntN(4) == 0,
		Dry: s.random.IntN(4) == 0, Balance: s.random.Int64() - 1<<62}
	switch row.Pool.Kind {
	case syncproto.Volume:
		row.Pool.Window = syncproto.Month(now) + int32(s.random.IntN(3)) - 1
	case syncproto.NotFound:
		row.Pool.Subject = row.Pool.Subject*keysOfAccount + sharedKeys
		row.Pool.Window = syncproto.Day(now) + int32(s.random.IntN(3)) - 1
	}
	return row
}

// noteForged records what a forged reply allows an edge: to spend what it grants, to refuse
// accounts that it calls empty, to forget batches that it acknowledges, and when it ends the epoch,
// or says so, what is not reported.
func (e *edge) noteForged(m *syncproto.Message, r *syncproto.Reply) {
	s := e.sim
	s.forged, e.misled, e.mayExceed = true, true, true
	s.disturbed++
	for _, row := range r.Rows {
		s.noteClaim(row.Pool, row.Granted)
	}
	if r.Status == syncproto.Fresh && m.Hello != nil {
		e.disk.forgedEpoch = r.Epoch
	}
	if r.Status == syncproto.Retired && m.Hello != nil && r.Applied > m.Hello.Sealed {
		s.excuseUnreported(e)
		e.disk.abandoned = true
	}
	e.forgedUpto, e.forgedApplied = min(e.forgedUpto, r.Upto), min(e.forgedApplied, r.Applied)
}

// noteTrue notices, after forged replies, what a true one tells the edge: a Hello has the writer say everything
// again, and one that takes back what was forged has the edge say Hello. When the writer's numbers have
// grown past those that were forged, the edge can't see it: then what was forged may stand until its
// process ends, or the writer's.
func (e *edge) noteTrue(message, reply []byte) {
	if !e.misled {
		return
	}
	m, err := syncproto.DecodeMessage(message)
	e.sim.must(err, "read the edge's message")
	r, err := syncproto.DecodeReply(reply)
	e.sim.must(err, "read the writer's reply")
	switch {
	case m.Hello != nil && r.Status != syncproto.Stranger:
		e.greeted = true
	case m.Sync != nil && r.Status != syncproto.Stranger && r.Upto >= e.forgedUpto && r.Applied >= e.forgedApplied:
		e.unseen = true
	}
}

// noteGreeted is called when a reply to the edge's message was applied.
func (e *edge) noteGreeted() {
	if e.greeted {
		e.misled, e.unseen, e.greeted = false, false, false
		e.forgedUpto, e.forgedApplied = math.MaxUint64, math.MaxUint64
	}
}

// forgeOnce has a forged reply come to each edge, when all else is well.
func (s *sim) forgeOnce() {
	for _, e := range s.edges {
		e.forgeNext = s.forges
	}
	s.settle()
}

// restartMisled restarts the edges that can't see that they were misled, as an operator would.
func (s *sim) restartMisled() {
	for _, e := range s.edges {
		if e.unseen {
			e.kill()
			e.boot()
		}
	}
}
