package simulation

import (
	"context"
	"fmt"

	"regedge/handler/charge"
)

// rememberedMillis is for how long an edge does not charge a request again that has the
// Idempotency-Key of a charge.
const rememberedMillis = 10 * 60 * 1000

// hashOf is a hash of a request's Idempotency-Key or target.
func hashOf[N int | int64](n N) string { return fmt.Sprintf("%0*x", charge.HashLength, n) }

// retry sends a request again under its Idempotency-Key, as a client does that got no answer, and
// reports whether there was one to send. It is charged only if no charge of the first stands.
func (s *sim) retry(e *edge) bool {
	if len(e.requests) == 0 || e.disk.everCopied {
		return false
	}
	first := e.requests[s.random.IntN(len(e.requests))]
	if first.IdempotencyHash == "" || first.disk != e.disk || first.Outcome == charge.Failed {
		return false
	}
	s.count(retried)
	r := s.requestNow(e)
	id := r.ID
	r.Request = first.Request
	r.ID = id
	p := e.process
	v := p.meter.Charge(context.Background(), r.Request)
	r.verdict = v
	died := p.dead
	e.checkProcess(p)
	s.detail("%s %s retries %s, state %d: %q, replayed %v, died %v", e.name, r.ID, first.ID, first.state, v.Code, v.Replayed, died)
	latest := r.at + r.setBack - first.setBack // the edge's clock has shown no later time since the first
	// The clock may have been set back by more in between, and the edge has forgotten what lay far ahead then.
	remembered := latest-first.at < rememberedMillis && r.setBack-first.setBack < rememberedMillis ||
		first.process == p && s.clock.Load()-first.madeAt < rememberedMillis
	switch {
	case v.Code == charge.IdempotencyKeyReused:
		s.fail("%s: the target of %s is that of %s", e.name, r.ID, first.ID)
	case died:
		s.cutOff(r)
		if first.state != served { // a charge of the retry may stand: it is the one to ask for now
			first.IdempotencyHash = ""
		}
	case v.Code != "":
		s.refused(e, r)
	case v.Replayed:
		s.replayed(e, first, r)
	case first.state == served && remembered:
		s.fail("%s: %s was charged, and its retry %s again", e.name, first.ID, r.ID)
	default:
		first.IdempotencyHash = "" // it stands for the new charge
		if r.Outcome == charge.NotFound {
			s.asked[r.Key]++
		}
		s.keep(e, r)
		s.answered(e, r)
	}
	if died && r.Outcome == charge.NotFound {
		s.asked[r.Key]++
	}
	return true
}

// replayed checks that what was not charged was charged before.
func (s *sim) replayed(e *edge, first, r *request) {
	switch first.state {
	case undone:
		s.fail("%s: %s was voided, and its retry %s is not charged", e.name, first.ID, r.ID)
	case cut:
		s.learned(e, first)
	}
}
