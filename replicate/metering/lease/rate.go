package lease

import (
	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

const minuteMillis = 60_000

func endOfMinute(now int64) int64 { return (syncproto.Minute(now) + 1) * minuteMillis }

// secondsUntil is how long until end, rounded up, at least 1.
func secondsUntil(now, end int64) int64 { return max((end-now+999)/1000, 1) }

// rate gives the RateLimit numbers before this request. Remaining and reset are unsent
// while the others' counts can't be learned.
func (b *EdgeState) rate(a *account, now int64) charge.Verdict {
	if m := syncproto.Minute(now); a.minute != m {
		a.minute, a.count, a.rateTold = m, 0, 0
	}
	v := charge.Verdict{
		RateLimit: int64(a.perMinute), RateRemaining: charge.Unsent, RateReset: charge.Unsent,
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent,
	}
	if b.Connected(now) {
		v.RateRemaining = max(int64(a.perMinute)-a.inMinute(), 0)
		v.RateReset = secondsUntil(now, endOfMinute(now))
	}
	return v
}

// inMinute is the count of the account's minute, at all edges as far as it is known.
func (a *account) inMinute() int64 {
	if a.othersMinute == a.minute {
		return int64(a.count) + int64(a.others)
	}
	return int64(a.count)
}

func (b *EdgeState) rateExceeded(a *account) bool { return a.inMinute() >= int64(a.perMinute) }

// countRate counts a request, and notes that the writer does not know of it.
func (b *EdgeState) countRate(id int64, a *account) {
	a.count++
	if !a.rateListed && b.live > 1 {
		a.rateListed = true
		b.rates = append(b.rates, id)
	}
}

// chargeSandbox counts a request of the sandbox key by its client's address. It needs
// no writer and costs nothing.
func (b *EdgeState) chargeSandbox(now int64, r *charge.Request, id sum) Answer {
	c := b.clients.at(r.Client, now)
	v := charge.Verdict{
		RateLimit: r.PerMinute, RateRemaining: 0, RateReset: secondsUntil(now, endOfMinute(now)),
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent,
	}
	if int64(c.count) >= r.PerMinute {
		v.Code, v.RetryAfter = charge.RateLimitExceeded, v.RateReset
		return Answer{Verdict: v}
	}
	c.count++
	v.RateRemaining = r.PerMinute - int64(c.count)
	switch {
	case r.Outcome == charge.Failed:
	case c.notFound >= sandboxNotFoundCap:
		v.Code, v.RetryAfter = charge.NotFoundCapExceeded, secondsUntil(now, syncproto.EndOfDay(c.day))
	case r.Outcome == charge.NotFound:
		c.notFound++
	}
	return b.answer(now, r, id, v, answered)
}
