package lease

import (
	"maps"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

const minuteMillis = 60_000

func endOfMinute(now int64) int64 { return (syncproto.Minute(now) + 1) * minuteMillis }

// secondsUntil is how long until end, rounded up, at least 1.
func secondsUntil(now, end int64) int64 { return max((end-now+999)/1000, 1) }

// rate counts the requests of one account, or of a key with a rate of its own, in a UTC minute.
type rate struct {
	minute       int64 // of count
	othersMinute int64 // of others
	limit        int32 // requests per minute
	count        int32 // at this edge
	others       int32 // at other edges, as the writer said last
	reported     int32 // the part of count that the writer knows
	listed       bool  // in rates
}

// advance begins another minute when now is in one.
func (r *rate) advance(now int64) {
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

// left is the number of requests still allowed in the minute.
func (r *rate) left() int64 { return max(int64(r.limit)-r.total(), 0) }

func (r *rate) exceeded() bool { return r.left() == 0 }

// rateVerdict starts the verdict on a request with the RateLimit values before it.
// Remaining and reset are not sent while the counts of other edges can't be learned.
func (s *EdgeState) rateVerdict(r *rate, now int64) charge.Verdict {
	v := charge.Verdict{
		RateLimit: int64(r.limit), RateRemaining: charge.Unsent, RateReset: charge.Unsent,
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent,
	}
	if s.Connected(now) {
		v.RateRemaining = r.left()
		v.RateReset = secondsUntil(now, endOfMinute(now))
	}
	return v
}

// limits are the rates that a request counts to: its account's, and its key's or nil.
type limits struct{ account, key *rate }

// startRates prepares the rates of a request, and starts its verdict with the values
// of the one that has fewer left.
func (s *EdgeState) startRates(now int64, r *charge.Request, a *account) (limits, charge.Verdict) {
	a.rate.limit, a.lastUsed = int32(min(r.PerMinute, 1<<30)), now
	a.rate.advance(now)
	of := limits{account: &a.rate}
	if r.KeyPerMinute == 0 {
		return of, s.rateVerdict(of.account, now)
	}
	of.key = s.rates.ofKey(r.Key, now)
	of.key.limit = int32(min(r.KeyPerMinute, r.PerMinute, 1<<30))
	if of.key.left() <= of.account.left() {
		return of, s.rateVerdict(of.key, now)
	}
	return of, s.rateVerdict(of.account, now)
}

func (of limits) exceeded() bool { return of.account.exceeded() || of.key != nil && of.key.exceeded() }

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
	of, v := s.startRates(now, r, a)
	return exceededRate(v, now), of.exceeded()
}

// rates lists the subjects with requests that the writer does not know of, and has the counts of keys
// with rates of their own.
type rates struct {
	listed []int64 // subjects
	keys   map[int64]*rate
	minute int64 // in which idle keys were last dropped
}

// ofKey returns the rate of a key for the minute of now. It drops the keys without requests in this minute
// and the last.
func (all *rates) ofKey(key, now int64) *rate {
	if m := syncproto.Minute(now); m != all.minute {
		all.minute = m
		maps.DeleteFunc(all.keys, func(_ int64, r *rate) bool { return r.minute != m-1 && r.minute != m })
	}
	r := all.keys[key]
	if r == nil {
		r = &rate{}
		all.keys[key] = r
	}
	r.advance(now)
	return r
}

// rateOf returns the rate of a subject, nil if it is not known.
func (s *EdgeState) rateOf(subject int64) *rate {
	if key := syncproto.KeyOf(subject); key != 0 {
		return s.rates.keys[key]
	}
	if a := s.leases.accounts.get(subject); a != nil {
		return &a.rate
	}
	return nil
}

// countRates counts a request.
func (s *EdgeState) countRates(r *charge.Request, of limits) {
	s.countRate(r.Account, of.account)
	if of.key != nil {
		s.countRate(syncproto.OfKey(r.Key), of.key)
	}
}

// countRate counts a request. Other edges, if there are any, learn of it from the writer.
func (s *EdgeState) countRate(subject int64, r *rate) {
	r.count++
	if !r.listed && s.session.live > 1 {
		r.listed = true
		s.rates.listed = append(s.rates.listed, subject)
	}
}

// takeRates lists the counts of this minute that the writer does not know, as many as fit
// into a message.
func (s *EdgeState) takeRates(now int64) []syncproto.Rate {
	minute := syncproto.Minute(now)
	listed := s.rates.listed
	n := min(len(listed), syncproto.MaxRates)
	var rates []syncproto.Rate
	for _, subject := range listed[:n] {
		r := s.rateOf(subject)
		if r == nil {
			continue
		}
		r.listed = false
		if r.minute == minute && r.count != r.reported {
			r.reported = r.count
			rates = append(rates, syncproto.Rate{Subject: subject, Minute: minute, Count: int64(r.count)})
		}
	}
	s.rates.listed = append(listed[:0], listed[n:]...)
	return rates
}

// noteOthers takes the counts of other edges. For a key that this edge serves they are noted even before its
// first request of the minute: the writer sends them once.
func (s *EdgeState) noteOthers(now int64, rates []syncproto.Rate) {
	for _, o := range rates {
		if key := syncproto.KeyOf(o.Subject); key != 0 && s.leases.keys.get(key) != nil {
			s.rates.ofKey(key, now)
		}
		if r := s.rateOf(o.Subject); r != nil {
			r.othersMinute, r.others = o.Minute, int32(min(o.Count, 1<<30))
		}
	}
}
