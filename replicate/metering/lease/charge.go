package lease

import (
	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// Answer is what Charge came to.
type Answer struct {
	Verdict charge.Verdict
	// Wait says that the verdict is not known yet: a want was noted, and Charge can be
	// asked again, with Again set, when the writer has replied. Verdict is then what to
	// say when it does not.
	Wait bool
	// Logged says that the verdict holds only once the Log's records are written.
	Logged bool
	// Repeated says that the id was answered before.
	Repeated bool
}

// Charge decides on a request at now and charges it. Asked again with the same id it
// gives the same verdict and charges nothing. again says that this is the same call
// after a wait: it was counted to the rate already.
func (b *EdgeState) Charge(now int64, r *charge.Request, again bool) Answer {
	id := b.recent.sum(r.ID)
	if e := b.recent.find(id); e != nil {
		return b.repeat(e)
	}
	if r.Sandbox {
		return b.chargeSandbox(now, r, id)
	}
	a := b.account(r.Account)
	a.perMinute, a.lastUsed = int32(min(r.PerMinute, 1<<30)), now
	v := b.rate(a, now)
	if !again {
		if b.rateExceeded(a) {
			v.Code, v.RetryAfter = charge.RateLimitExceeded, secondsUntil(now, endOfMinute(now))
			return Answer{Verdict: v}
		}
		b.countRate(r.Account, a)
		if v.RateRemaining != charge.Unsent {
			v.RateRemaining = max(v.RateRemaining-1, 0)
		}
	}
	if r.Outcome == charge.Failed {
		b.pending.add(use{r.Account, r.Key, hourOf(now), r.Endpoint, r.Outcome}, 1)
		return b.answer(now, r, id, v, answered)
	}
	return b.chargeLive(now, r, id, a, v)
}

// chargeLive decides by the leases of account and key.
func (b *EdgeState) chargeLive(now int64, r *charge.Request, id sum, a *account, v charge.Verdict) Answer {
	v.Code, v.RetryAfter = charge.MeteringUnavailable, 1
	if !b.Serving() {
		return Answer{Verdict: v, Wait: b.epoch == 0} // the first Hello may be under way
	}
	gates := b.gates(now, r, a)
	unknown := false
	for i := range gates {
		g := &gates[i]
		switch b.judge(g, now) {
		case have:
		case exhausted:
			if unknown {
				continue
			}
			v.Code, v.RetryAfter = g.code, g.retryAfter(now)
			return b.answer(now, r, id, v, answered)
		case ask:
			unknown = true
			b.want(syncproto.Want{Pool: g.pool, Target: g.target, Urgent: true})
		}
	}
	if unknown {
		return Answer{Verdict: v, Wait: true}
	}
	v.Code, v.RetryAfter = "", charge.Unsent
	return b.commit(now, r, id, a, v)
}

// commit charges a request that all gates let through.
func (b *EdgeState) commit(now int64, r *charge.Request, id sum, a *account, v charge.Verdict) Answer {
	u := use{r.Account, r.Key, hourOf(now), r.Endpoint, r.Outcome}
	b.spend(u, 1)
	a.used(now)
	v.CreditsRemaining = max(a.balance-a.unreported, 0)
	answer := b.answer(now, r, id, v, charged)
	answer.Logged = true
	//mutant:charge-not-journalled
	b.logCharge(now, r, &v)
	b.renew(now, r, a)
	return answer
}

// gate is one thing that a request needs: a unit of a lease, or that the pool is not
// known to be exhausted.
type gate struct {
	pool    syncproto.Pool
	holding *holding
	target  int64
	spends  bool
	code    string
}

// gates lists what a request needs, in the order in which its lack is told.
func (b *EdgeState) gates(now int64, r *charge.Request, a *account) [3]gate {
	month, day := syncproto.Month(now), syncproto.Day(now)
	if a.volume.window < month {
		a.volume = holding{window: month}
	}
	k := b.key(r.Key)
	if k.notFound.window < day {
		k.notFound = holding{window: day}
	}
	target := a.target()
	return [3]gate{
		{syncproto.Pool{Kind: syncproto.Volume, Subject: r.Account, Window: month}, &a.volume, target, true, charge.MonthlyVolumeExceeded},
		{syncproto.Pool{Kind: syncproto.NotFound, Subject: r.Key, Window: day}, &k.notFound, notFoundUnits, r.Outcome == charge.NotFound, charge.NotFoundCapExceeded},
		{syncproto.Pool{Kind: syncproto.Credits, Subject: r.Account}, &a.credits, target, true, charge.InsufficientCredits},
	}
}

// retryAfter is the time until the gate's window ends, Unsent for credits.
func (g *gate) retryAfter(now int64) int64 {
	switch g.pool.Kind {
	case syncproto.Volume:
		return secondsUntil(now, syncproto.EndOfMonth(g.pool.Window))
	case syncproto.NotFound:
		return secondsUntil(now, syncproto.EndOfDay(g.pool.Window))
	}
	return charge.Unsent
}

type judgement uint8

const (
	have judgement = iota
	exhausted
	ask
)

// judge says whether a gate lets the request through. That nothing is left is believed
// only while the writer is heard of, except for the not-found cap: a day's lookups don't
// come back.
func (b *EdgeState) judge(g *gate, now int64) judgement {
	h := g.holding
	if h.usable(now, g.pool.Window) || !g.spends && h.held() > 0 {
		return have
	}
	//mutant:old-refusal-believed
	if h.known && h.dry && h.held() <= 0 && (g.pool.Kind == syncproto.NotFound || b.Connected(now)) {
		return exhausted
	}
	if !g.spends && h.known {
		return have
	}
	return ask
}

// answer remembers a verdict under its id.
func (b *EdgeState) answer(now int64, r *charge.Request, id sum, v charge.Verdict, s state) Answer {
	b.recent.put(entry{
		high: id.high, low: id.low, account: r.Account, key: r.Key, at: now, credits: v.CreditsRemaining,
		epoch: b.epoch, limit: int32(v.RateLimit), remaining: int32(v.RateRemaining),
		code: codeIndex(v.Code), state: s, endpoint: r.Endpoint, outcome: r.Outcome,
	})
	return Answer{Verdict: v}
}

// repeat answers an id that was answered before.
func (b *EdgeState) repeat(e *entry) Answer {
	delete(b.doubted, e.sum())
	v := e.verdict()
	if e.state == voided {
		v.Code, v.RetryAfter, v.CreditsRemaining = charge.MeteringUnavailable, 1, charge.Unsent
	}
	return Answer{Verdict: v, Logged: e.state != answered, Repeated: true}
}

// renew asks early for more of what runs low.
func (b *EdgeState) renew(now int64, r *charge.Request, a *account) {
	if r.Outcome == charge.NotFound {
		k := b.keys[r.Key]
		b.renewOne(now, syncproto.Pool{Kind: syncproto.NotFound, Subject: r.Key, Window: k.notFound.window}, &k.notFound, notFoundUnits)
		return
	}
	target := a.target()
	b.renewOne(now, syncproto.Pool{Kind: syncproto.Credits, Subject: r.Account}, &a.credits, target)
	b.renewOne(now, syncproto.Pool{Kind: syncproto.Volume, Subject: r.Account, Window: a.volume.window}, &a.volume, target)
}

func (b *EdgeState) renewOne(now int64, p syncproto.Pool, h *holding, target int64) {
	low := h.held()*2 < target && !h.dry && !h.recalled
	if low || p.Kind == syncproto.Credits && h.until-now < renewMillis {
		b.want(syncproto.Want{Pool: p, Target: target})
	}
}

// want notes what to ask the writer for.
func (b *EdgeState) want(w syncproto.Want) {
	old := b.wants[w.Pool]
	b.wants[w.Pool] = syncproto.Want{Pool: w.Pool, Target: max(old.Target, w.Target), Urgent: old.Urgent || w.Urgent}
}

// Urgent reports whether the writer should hear of this edge now: a request waits for a
// lease, or a lease was recalled.
func (b *EdgeState) Urgent() bool {
	if !b.Serving() {
		return false
	}
	for _, w := range b.wants {
		if w.Urgent {
			return true
		}
	}
	return len(b.recalls) > 0
}

// Unavailable is the verdict on a request whose charge could not be made durable.
func Unavailable(v charge.Verdict) charge.Verdict {
	v.Code, v.RetryAfter, v.CreditsRemaining = charge.MeteringUnavailable, 1, charge.Unsent
	return v
}
