package lease

import (
	"hash/maphash"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// recentLimit is how many request ids are remembered: at 20,000 requests a second six
// seconds, twice the time in which a component asks, asks again and voids.
const recentLimit = 1 << 17

// state is what became of a request id.
type state uint8

const (
	answered state = iota // a verdict without a charge
	charged               // a charge, or a not-found lookup, that stands
	voided                // nothing of this id stands or ever will
)

// sum names a request id in 96 bits, under seeds that no client knows. In a year at full
// load (2^39 ids, each held against 2^17) one is taken for another with odds of 2^-40.
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
	state        state
	endpoint     charge.Endpoint
	outcome      charge.Outcome
}

func (e *entry) sum() sum { return sum{e.high, e.low} }

// named is the entry under another name.
func (e entry) named(s sum) entry {
	e.high, e.low = s.high, s.low
	return e
}

// codes are the codes that an entry can hold.
var codes = [...]string{
	"", charge.RateLimitExceeded, charge.MonthlyVolumeExceeded,
	charge.NotFoundCapExceeded, charge.InsufficientCredits, charge.MeteringUnavailable,
}

func codeIndex(code string) uint8 {
	for i, c := range codes {
		if c == code {
			return uint8(i)
		}
	}
	return uint8(len(codes) - 1)
}

// verdict is the verdict that the entry was answered with. Its times follow from when.
func (e *entry) verdict() charge.Verdict {
	v := charge.Verdict{
		Code: codes[e.code], RateLimit: int64(e.limit), RateRemaining: int64(e.remaining),
		RateReset: charge.Unsent, CreditsRemaining: e.credits, RetryAfter: charge.Unsent,
	}
	if e.remaining != charge.Unsent {
		v.RateReset = secondsUntil(e.at, endOfMinute(e.at))
	}
	switch v.Code {
	case charge.MonthlyVolumeExceeded:
		v.RetryAfter = secondsUntil(e.at, syncproto.EndOfMonth(syncproto.Month(e.at)))
	case charge.NotFoundCapExceeded:
		v.RetryAfter = secondsUntil(e.at, syncproto.EndOfDay(syncproto.Day(e.at)))
	}
	return v
}

func (e *entry) use() use {
	return use{e.account, e.key, hourOf(e.at), e.endpoint, e.outcome}
}

// pageEntries is how many entries are made room for at once.
const pageEntries = 1 << 12

// slot is where the index holds an entry.
type slot struct {
	place int32 // plus one; 0 where it is empty
	// sum is the lower half of the entry's high one, so that most entries that are not the one
	// sought are passed over without a look at them: they lie all over the memory.
	sum uint32
}

// recent remembers the newest request ids, in a ring of pages, and finds them by an open
// hash table of their places.
type recent struct {
	seeds [2]maphash.Seed
	pages [][]entry
	count int
	next  int // place of the oldest, once the ring is full
	// index has a length that is a power of two and at least twice the count.
	index []slot
	// forgotten is the time of the newest id that was dropped, 0 while none was.
	forgotten int64
}

func newRecent() recent {
	return recent{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

func (r *recent) sum(id string) sum {
	return sum{maphash.String(r.seeds[0], id), uint32(maphash.String(r.seeds[1], id))}
}

func (r *recent) at(place int) *entry { return &r.pages[place/pageEntries][place%pageEntries] }

// slot is where the index holds the sum, or else the empty slot where it belongs.
func (r *recent) slot(s sum) int {
	mask := len(r.index) - 1
	for i := int(uint32(s.high)) & mask; ; i = (i + 1) & mask {
		held := r.index[i]
		if held.place == 0 || held.sum == uint32(s.high) && r.at(int(held.place-1)).sum() == s {
			return i
		}
	}
}

// find returns the entry of an id, or nil. It is valid until the next put.
func (r *recent) find(s sum) *entry {
	if len(r.index) == 0 {
		return nil
	}
	if held := r.index[r.slot(s)]; held.place != 0 {
		return r.at(int(held.place - 1))
	}
	return nil
}

// put remembers e, dropping the oldest entry when the ring is full.
func (r *recent) put(e entry) {
	place := r.count
	if r.count < recentLimit {
		r.grow()
	} else {
		place = r.next
		old := r.at(place)
		if i := r.slot(old.sum()); int(r.index[i].place) == place+1 {
			r.empty(i)
		}
		r.forgotten = max(r.forgotten, old.at)
		r.next = (r.next + 1) % recentLimit
	}
	*r.at(place) = e
	r.index[r.slot(e.sum())] = slot{int32(place + 1), uint32(e.high)}
}

// grow makes room for one more entry.
func (r *recent) grow() {
	if r.count%pageEntries == 0 {
		r.pages = append(r.pages, make([]entry, pageEntries))
	}
	r.count++
	if 2*r.count <= len(r.index) {
		return
	}
	old := r.index
	r.index = make([]slot, max(2*len(old), 2*pageEntries))
	for _, held := range old {
		if held.place != 0 {
			r.index[r.slot(r.at(int(held.place-1)).sum())] = held
		}
	}
}

// empty empties a slot of the index and moves up those after it that it parted from
// their own.
func (r *recent) empty(hole int) {
	mask := len(r.index) - 1
	for i := (hole + 1) & mask; r.index[i].place != 0; i = (i + 1) & mask {
		home := int(r.index[i].sum) & mask
		if (i-home)&mask >= (i-hole)&mask {
			r.index[hole], hole = r.index[i], i
		}
	}
	r.index[hole] = slot{}
}

// forget takes an entry out, so that its id can come again.
func (r *recent) forget(s sum) {
	if len(r.index) != 0 {
		if i := r.slot(s); r.index[i].place != 0 {
			r.empty(i)
		}
	}
}

// tooOld reports whether an id that is not remembered may have been dropped. Ids that
// carry their time (26 characters of Crockford's base 32, the first 10 the milliseconds)
// are judged by it; others are taken as new.
func (r *recent) tooOld(id string) bool {
	if r.forgotten == 0 || len(id) != 26 {
		return false
	}
	var millis int64
	for i := 0; i < 10; i++ {
		digit := crockford(id[i])
		if digit < 0 {
			return false
		}
		millis = millis<<5 | digit
	}
	return millis <= r.forgotten
}

func crockford(c byte) int64 {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	for i := range len(digits) {
		if digits[i] == c {
			return int64(i)
		}
	}
	return -1
}
