package lease

import (
	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// Answer is the result of Charge.
type Answer struct {
	Verdict charge.Verdict
	// Wait says that the verdict is not known yet: a want was noted, and Charge can be
	// called again, with again set, when the writer has replied. Verdict is then the one to
	// give up with.
	Wait bool
	// Logged says that the verdict holds only once the Log's records are written.
	Logged bool
	// Repeated says that the id was answered before.
	Repeated bool
}

// Charge decides on a request at now and charges it. A second call with the same id gives
// the same verdict and charges nothing; one with another id, and the Idempotency-Key of a
// charge of the last ten minutes, charges nothing either. again says that this is the same call after a
// wait: it is in the rate already.
func (s *EdgeState) Charge(now int64, r *charge.Request, again bool) Answer {
	s.session.noteTime(now)
	id := s.recent.sum(r.ID)
	if e := s.recent.find(id); e != nil {
		return s.repeat(e)
	}
	if r.Sandbox {
		return s.chargeSandbox(now, r, id)
	}
	a := s.leases.accounts.ensure(r.Account)
	of, v := s.startRates(now, r, a)
	if !again {
		if of.exceeded() {
			return Answer{Verdict: exceededRate(v, now)}
		}
		s.countRates(r, of)
		if v.RateRemaining != charge.Unsent {
			v.RateRemaining = max(v.RateRemaining-1, 0)
		}
	}
	if r.Outcome == charge.Failed {
		s.usage.current.add(useOfRequest(now, r), 1)
		return s.answer(now, r, id, v, answered)
	}
	if r.IdempotencyHash != "" {
		if answer, decided := s.chargedBefore(now, r, id, a, v); decided {
			return answer
		}
	}
	if r.LimitedUntil > now {
		v.Code, v.RetryAfter = charge.KeyCreditsExceeded, secondsUntil(now, r.LimitedUntil)
		return s.answer(now, r, id, v, answered)
	}
	return s.chargeLive(now, r, id, a, v)
}

func useOfRequest(now int64, r *charge.Request) use {
	return use{r.Account, r.Key, syncproto.Hour(now), r.Endpoint, r.Outcome}
}

// chargeLive decides by the leases of account and key.
func (s *EdgeState) chargeLive(now int64, r *charge.Request, id sum, a *account, v charge.Verdict) Answer {
	v.Code, v.RetryAfter = charge.MeteringUnavailable, 1
	if !s.Serving() {
		return Answer{Verdict: v, Wait: s.standing.epoch == 0} // the first Hello may be under way
	}
	gates := s.gates(now, r, a)
	unknown := false
	for i := range gates {
		g := &gates[i]
		switch s.check(g, now, a) {
		case pass:
		case exhausted:
			if unknown {
				continue
			}
			v.Code, v.RetryAfter = g.code, g.retryAfter(now)
			return s.answer(now, r, id, v, answered)
		case ask:
			unknown = true
			s.wants.add(syncproto.Want{Pool: g.pool, Target: g.target, Urgent: true})
		}
	}
	if unknown {
		return Answer{Verdict: v, Wait: true}
	}
	v.Code, v.RetryAfter = "", charge.Unsent
	return s.commit(now, r, id, a, v)
}

// commit charges a request that passed all gates.
func (s *EdgeState) commit(now int64, r *charge.Request, id sum, a *account, v charge.Verdict) Answer {
	s.spend(useOfRequest(now, r), 1)
	a.used(now)
	a.lastTaken = s.session.syncs
	v.CreditsRemaining = max(a.balance-a.unreported, 0)
	answer := s.answer(now, r, id, v, charged)
	answer.Logged = true
	//mutant:charge-not-journalled
	s.logCharge(now, r, &v)
	if r.IdempotencyHash != "" {
		s.keep(now, r)
	}
	s.renew(now, r, a)
	return answer
}

// gate is one condition of a request: it spends a unit of a lease, or needs a pool that is
// not exhausted.
type gate struct {
	pool   syncproto.Pool
	lease  *lease
	target int64
	spends bool
	code   string
}

// gates lists the conditions of a request, in the order of precedence of their codes
// (docs/contract.md, "Which answer wins").
func (s *EdgeState) gates(now int64, r *charge.Request, a *account) [3]gate {
	month, day := syncproto.Month(now), syncproto.Day(now)
	notFound := s.leases.keys.ensure(r.Key)
	s.leases.switchTo(volumePool(r.Account, month), &a.volume)
	s.leases.switchTo(notFoundPool(r.Key, day), notFound)
	target := a.target()
	return [3]gate{
		{volumePool(r.Account, month), &a.volume, target, true, charge.MonthlyVolumeExceeded},
		{notFoundPool(r.Key, day), notFound, notFoundUnits, r.Outcome == charge.NotFound, charge.NotFoundCapExceeded},
		{creditsPool(r.Account), &a.credits, target, true, charge.InsufficientCredits},
	}
}

// retryAfter is the time until the gate's window ends, in seconds, Unsent for credits.
func (g *gate) retryAfter(now int64) int64 {
	switch g.pool.Kind {
	case syncproto.Volume:
		return secondsUntil(now, syncproto.EndOfMonth(g.pool.Window))
	case syncproto.NotFound:
		return secondsUntil(now, syncproto.EndOfDay(g.pool.Window))
	}
	return charge.Unsent
}

// decision is the result of one gate.
type decision uint8

const (
	pass      decision = iota
	exhausted          // nothing is left
	ask                // only the writer knows
)

// check decides whether a gate lets the request pass. It believes that nothing is left only if the
// writer said so just now, and after the last unit was spent here. The not-found cap is the exception,
// since a day's lookups don't come back. This holds as long as the cap is a constant; if it could be
// raised during a day, an edge without contact would go on refusing.
func (s *EdgeState) check(g *gate, now int64, a *account) decision {
	l := g.lease
	if l.usable(now, g.pool.Window) || !g.spends && l.held() > 0 {
		return pass
	}
	//mutant:old-refusal-believed
	if l.known && l.dry && l.held() <= 0 && (g.pool.Kind == syncproto.NotFound || s.mayRefuse(now, a)) {
		return exhausted
	}
	if !g.spends && l.known {
		return pass
	}
	return ask
}

// answer remembers a verdict under its id.
func (s *EdgeState) answer(now int64, r *charge.Request, id sum, v charge.Verdict, f fate) Answer {
	s.recent.put(entry{
		high: id.high, low: id.low, account: r.Account, key: r.Key, at: now, credits: v.CreditsRemaining,
		epoch: s.standing.epoch, limit: int32(v.RateLimit), remaining: int32(v.RateRemaining),
		code: codeIndex(v.Code), fate: f, endpoint: r.Endpoint, outcome: r.Outcome,
	})
	return Answer{Verdict: v}
}

// repeat answers an id that was answered before.
func (s *EdgeState) repeat(e *entry) Answer {
	s.doubts.dispel(e.sum())
	v := e.verdict()
	if e.fate == voided {
		v = Unavailable(v)
	}
	return Answer{Verdict: v, Logged: e.fate != answered, Repeated: true}
}

// Unavailable turns a verdict into the 503 of a request whose charge could not be written
// to the journal.
func Unavailable(v charge.Verdict) charge.Verdict {
	v.Code, v.RetryAfter, v.CreditsRemaining = charge.MeteringUnavailable, 1, charge.Unsent
	return v
}

// UnavailableAtOnce is that 503 for a request of which nothing was counted.
func UnavailableAtOnce(r *charge.Request) charge.Verdict {
	return Unavailable(charge.Verdict{RateLimit: r.PerMinute, RateRemaining: charge.Unsent, RateReset: charge.Unsent})
}
