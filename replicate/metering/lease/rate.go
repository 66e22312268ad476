package lease

import (
	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

const minuteMillis = 60_000

func endOfMinute(now int64) int64 { return (syncproto.Minute(now) + 1) * minuteMillis }

// secondsUntil is how long until end, rounded up, at least 1.
func secondsUntil(now, end int64) int64 { return max((end-now+999)/1000, 1) }

// rate counts the requests of one account in a UTC minute.
type rate struct {
	minute       int64 // of count
	othersMinute int64 // of others
	limit        int32 // requests per minute
	count        int32 // at this edge
	others       int32 // at other edges, as the writer said last
	reported     int32 // the part of count that the writer knows
	listed       bool  // in rates
}

// turn begins another minute when now is in one.
func (r *rate) turn(now int64) {
	if m := syncproto.Minute(now); r.minute != m {
		r.minute, r.count, r.reported = m, 0, 0
	}
}

// total is the count of the minute at all edges, as far as it is known.
func (r *rate) total() int64 {
	if r.othersMinute == r.minute {
		return int64(r.count) + int64(r.others)
	}
	return int64(r.count)
}

func (r *rate) exceeded() bool { return r.total() >= int64(r.limit) }

// rateVerdict starts the verdict on a request with the RateLimit values before it.
// Remaining and reset are not sent while the counts of other edges can't be learned.
func (s *EdgeState) rateVerdict(r *rate, now int64) charge.Verdict {
	v := charge.Verdict{
		RateLimit: int64(r.limit), RateRemaining: charge.Unsent, RateReset: charge.Unsent,
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent,
	}
	if s.Connected(now) {
		v.RateRemaining = max(int64(r.limit)-r.total(), 0)
		v.RateReset = secondsUntil(now, endOfMinute(now))
	}
	return v
}

// turnRate prepares an account's rate for a request, and starts its verdict.
func (s *EdgeState) turnRate(now int64, r *charge.Request, a *account) charge.Verdict {
	a.rate.limit, a.lastUsed = int32(min(r.PerMinute, 1<<30)), now
	a.rate.turn(now)
	return s.rateVerdict(&a.rate, now)
}

func exceededRate(v charge.Verdict, now int64) charge.Verdict {
	v.Code, v.RetryAfter = charge.RateLimitExceeded, secondsUntil(now, endOfMinute(now))
	return v
}

// Exceeded tells whether Charge would refuse a new request at now for its rate, and with which
// verdict. It counts nothing.
func (s *EdgeState) Exceeded(now int64, r *charge.Request) (v charge.Verdict, exceeded bool) {
	s.session.noteTime(now)
	if r.Sandbox {
		v = s.sandbox.at(r.Client, now).rateVerdict(now, r)
		return v, v.Code != ""
	}
	a := s.leases.accounts.get(r.Account)
	if a == nil {
		return v, false
	}
	v = s.turnRate(now, r, a)
	return exceededRate(v, now), a.rate.exceeded()
}

// rates lists the accounts with requests that the writer does not know of.
type rates struct{ accounts []int64 }

// countRate counts a request. Other edges, if there are any, learn of it from the writer.
func (s *EdgeState) countRate(id int64, r *rate) {
	r.count++
	if !r.listed && s.session.live > 1 {
		r.listed = true
		s.rates.accounts = append(s.rates.accounts, id)
	}
}

// takeRates lists the counts of this minute that the writer does not know, as many as fit
// into a message.
func (s *EdgeState) takeRates(now int64) []syncproto.Rate {
	minute := syncproto.Minute(now)
	listed := s.rates.accounts
	n := min(len(listed), syncproto.MaxRates)
	var rates []syncproto.Rate
	for _, id := range listed[:n] {
		a := s.leases.accounts.get(id)
		if a == nil {
			continue
		}
		r := &a.rate
		r.listed = false
		if r.minute == minute && r.count != r.reported {
			r.reported = r.count
			rates = append(rates, syncproto.Rate{Account: id, Minute: minute, Count: int64(r.count)})
		}
	}
	s.rates.accounts = append(listed[:0], listed[n:]...)
	return rates
}

// noteOthers takes the counts of other edges.
func (s *EdgeState) noteOthers(rates []syncproto.Rate) {
	for _, o := range rates {
		if a := s.leases.accounts.get(o.Account); a != nil {
			a.rate.othersMinute, a.rate.others = o.Minute, int32(min(o.Count, 1<<30))
		}
	}
}
