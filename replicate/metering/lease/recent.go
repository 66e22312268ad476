package lease

import (
	"hash/maphash"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// recentLimit is how many request ids are remembered: six seconds' worth at 20,000
// requests a second, twice the time in which a component charges, retries and voids.
const recentLimit = 1 << 17

// fate is the outcome of a request id.
type fate uint8

const (
	answered fate = iota // a verdict without a charge
	charged              // a charge, or a not-found lookup, that stands
	reported             // a charge that was reported as unresolved: an operator refunds it, a void does not
	voided               // nothing of this id stands or ever will
)

// sum identifies a request id in 96 bits, under seeds that no client knows. In a year at
// full load (2^39 ids, each compared with 2^17) two ids are confused with odds of 2^-40.
type sum struct {
	high uint64
	low  uint32
}

// entry remembers one request id, in 64 bytes: there are many.
type entry struct {
	high         uint64 // of the id's sum
	account, key int64
	at           int64
	credits      int64
	epoch        uint64
	low          uint32 // of the id's sum
	limit        int32
	remaining    int32
	code         uint8 // index into codes
	fate         fate
	endpoint     charge.Endpoint
	outcome      charge.Outcome
}

func (e *entry) sum() sum { return sum{e.high, e.low} }

// named is the entry with the sum of its id set.
func (e entry) named(s sum) entry {
	e.high, e.low = s.high, s.low
	return e
}

// codes are the codes that an entry can hold.
var codes = [...]string{
	"", charge.RateLimitExceeded, charge.MonthlyVolumeExceeded,
	charge.KeyCreditsExceeded, charge.NotFoundCapExceeded, charge.InsufficientCredits, charge.IdempotencyKeyReused, charge.MeteringUnavailable,
}

func codeIndex(code string) uint8 {
	for i, c := range codes {
		if c == code {
			return uint8(i)
		}
	}
	return uint8(len(codes) - 1)
}

// verdict is the verdict that was given on the id. Its times follow from at.
func (e *entry) verdict() charge.Verdict {
	v := charge.Verdict{
		Code: codes[e.code], RateLimit: int64(e.limit), RateRemaining: int64(e.remaining),
		RateReset: charge.Unsent, CreditsRemaining: e.credits, RetryAfter: charge.Unsent,
	}
	if e.remaining != charge.Unsent {
		v.RateReset = secondsUntil(e.at, endOfMinute(e.at))
	}
	switch v.Code {
	case charge.MonthlyVolumeExceeded, charge.KeyCreditsExceeded:
		v.RetryAfter = secondsUntil(e.at, syncproto.EndOfMonth(syncproto.Month(e.at)))
	case charge.NotFoundCapExceeded:
		v.RetryAfter = secondsUntil(e.at, syncproto.EndOfDay(syncproto.Day(e.at)))
	}
	return v
}

func (e *entry) use() use {
	return use{e.account, e.key, syncproto.Hour(e.at), e.endpoint, e.outcome}
}

// pageEntries is how many entries are allocated at once.
const pageEntries = 1 << 8

// recentIDs remembers the newest request ids, in a ring that grows by pages, with an index
// from an id's sum to its slot in the ring.
type recentIDs struct {
	seeds [2]maphash.Seed
	pages [][]entry
	count int
	next  int // slot of the oldest entry, once the ring is full
	index map[sum]int32
	// forgotten is the time of the newest id that was dropped, 0 while none was.
	forgotten   int64
	replayEpoch uint64 // epoch of the records that ReplayID reads
}

func newRecentIDs() recentIDs {
	return recentIDs{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		index: map[sum]int32{},
	}
}

func (r *recentIDs) sum(id string) sum {
	return sum{maphash.String(r.seeds[0], id), uint32(maphash.String(r.seeds[1], id))}
}

func (r *recentIDs) at(slot int) *entry { return &r.pages[slot/pageEntries][slot%pageEntries] }

// find returns the entry of an id, or nil. It is valid until the next put.
func (r *recentIDs) find(s sum) *entry {
	if slot, ok := r.index[s]; ok {
		return r.at(int(slot))
	}
	return nil
}

// put remembers e, and drops the oldest entry when the ring is full.
func (r *recentIDs) put(e entry) {
	slot := r.count
	if r.count < recentLimit {
		if r.count%pageEntries == 0 {
			r.pages = append(r.pages, make([]entry, pageEntries))
		}
		r.count++
	} else {
		slot = r.next
		old := r.at(slot)
		if r.index[old.sum()] == int32(slot) { // else the id came again, in a newer entry
			delete(r.index, old.sum())
		}
		r.forgotten = max(r.forgotten, old.at)
		r.next = (r.next + 1) % recentLimit
	}
	*r.at(slot) = e
	r.index[e.sum()] = int32(slot)
}

// report notes charges that a batch reports as unresolved.
func (r *recentIDs) report(list []syncproto.Unresolved) {
	for i := range list {
		if e := r.find(r.sum(list[i].ID)); e != nil && e.fate == charged {
			e.fate = reported
		}
	}
}

// forget removes an entry, so that its id can be charged again.
func (r *recentIDs) forget(s sum) { delete(r.index, s) }

// tooOld reports whether an id that is not remembered may have been dropped. Ids that
// carry their time are judged by it; others are taken as new.
func (r *recentIDs) tooOld(id string) bool {
	if r.forgotten == 0 {
		return false
	}
	millis, ok := syncproto.RequestMillis(id)
	return ok && millis <= r.forgotten
}
