package server

import (
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"

	"regedge/handler"
	"regedge/handler/fastbytes"
	"regedge/handler/ident"
)

// shares divides the lookups in flight fairly. While a quarter of the limit is free, anybody may have more
// than their share. Beyond that, nobody gets more than the limit divided by the number of active clients
// plus one, or a few while there is room. Clients are counted by address and, since an account may use
// many addresses, by key. Requests without a live key's form, such as the sandbox's, get a quarter of the
// limit in all: they cost nothing, so customers must not wait for them. Searches leave a quarter of it to
// others. Lookups that wait for a lease are counted apart: an account has few of them, and while they wait
// they make nobody's share smaller.
//
// The counts by address and by key are each a count-min sketch of fixed size: two rows of counters, in
// each of which a hash with a secret seed gives an address or key a slot. The smaller counter is used, so
// only those that collide in both rows share a share.
type shares struct {
	limit      int64
	waiting    func() int
	maxWaiting int64
	inFlight   *atomic.Int64 // including lookups that are refused at once
	// admitted are in flight and not being refused: a refusal must take nobody's place.
	admitted        atomic.Int64
	strangers       atomic.Int64
	searches        atomic.Int64
	seed            maphash.Seed
	addresses, keys parties
}

// slots is the length of a row. Beside 100 busy keys, 1.5 of 1,000 others share a slot in one row, and
// 2 of 1,000,000 in both.
const slots = 1 << 16

// pair is the slots of an address, or a key, in both rows.
type pair [2]uint16

// parties counts the lookups in flight of addresses, or of keys: a count-min sketch.
type parties struct {
	busy  atomic.Int64 // slots of the first row that are not 0
	count [2][slots]atomic.Int64
	// doubt is above zero for suspects (see suspicion), by slot of the first row.
	doubt [slots]atomic.Int32
}

// suspicion is how many requests of an address or key are screened after one was refused. It decides
// what a request costs, never its answer: to screen one that is not refused adds about 5 µs.
const suspicion = 32

// learn marks a refused address or key as a suspect.
func (s *shares) learn(t ticket, status int) {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusTooManyRequests && t.stranger:
		s.addresses.doubt[t.address[0]].Store(suspicion)
	case status == http.StatusTooManyRequests:
		s.keys.doubt[t.key[0]].Store(suspicion)
	}
}

// suspect reports whether a request should be screened.
func (s *shares) suspect(t ticket) bool {
	return s.addresses.doubt[t.address[0]].Load() > 0 || !t.stranger && s.keys.doubt[t.key[0]].Load() > 0
}

// trust notes that a suspect's request was not refused.
func (s *shares) trust(t ticket) {
	s.addresses.doubt[t.address[0]].Add(-1)
	if !t.stranger {
		s.keys.doubt[t.key[0]].Add(-1)
	}
}

// ticket is a lookup in flight, with the slots in which it is counted. A stranger has no key.
type ticket struct {
	address, key pair
	stranger     bool
	search       bool
	admitted     bool
}

func newShares(config Config, inFlight *atomic.Int64) *shares {
	return &shares{
		limit: int64(config.MaxInFlight), waiting: config.Waiting, maxWaiting: int64(config.MaxWaiting),
		inFlight: inFlight, seed: maphash.MakeSeed(),
	}
}

// strangersPart is the part of the limit that strangers get together.
const strangersPart = 4

// othersPart is the part of the limit that searches leave to others: they take tens of times as long, so that those of many keys
// would hold all places.
const othersPart = 4

const searchPath = "/v1/search/companies?"

// enter begins a lookup. Whether it may go on or not, leave has to be called.
func (s *shares) enter(q *handler.Request, client string) (t ticket, may bool) {
	key := keyOf(q)
	t.stranger, t.search = !isLive(key), strings.HasPrefix(q.Target, searchPath)
	t.address = s.pair(network(client))
	all := s.inFlight.Add(1)
	sure := s.sure(all)
	may = s.addresses.enter(t.address, s.limit, sure)
	if t.stranger {
		may = s.strangers.Add(1) <= max(1, s.limit/strangersPart) && may
	} else {
		t.key = s.pair(key)
		may = s.keys.enter(t.key, s.limit, sure) && may
	}
	if t.search {
		may = s.maySearch(s.searches.Add(1), all) && may
	}
	if !may {
		return t, false
	}
	t.admitted = true
	// Waiting lookups are not subtracted here: they resume at any moment.
	return t, s.admitted.Add(1) <= s.limit+s.maxWaiting
}

// sure is how many lookups anybody may have in flight, whatever their share. Lookups that have got
// their lease count again, all at once: a share of one would refuse every client with two.
func (s *shares) sure(all int64) int64 {
	free := s.limit - s.limit/4
	switch room := s.limit + s.maxWaiting; {
	case all <= free || all-int64(s.waiting()) <= free:
		return math.MaxInt64
	case s.admitted.Load() <= room-room/8:
		return max(1, s.limit/32)
	}
	return 1
}

// maySearch reports whether the last of so many searches, of all lookups in flight, leaves others their part. Those that wait
// for a lease are not counted, as far as other lookups are too few to be the ones that wait.
func (s *shares) maySearch(searches, all int64) bool {
	most := max(1, s.limit-s.limit/othersPart)
	return searches <= most || searches-max(0, int64(s.waiting())-(all-searches)) <= most
}

func (s *shares) leave(t ticket) {
	s.inFlight.Add(-1)
	if t.admitted {
		s.admitted.Add(-1)
	}
	if t.search {
		s.searches.Add(-1)
	}
	s.addresses.leave(t.address)
	if t.stranger {
		s.strangers.Add(-1)
		return
	}
	s.keys.leave(t.key)
}

func (s *shares) pair(text string) pair {
	hash := maphash.String(s.seed, text)
	return pair{uint16(hash), uint16(hash >> 16)}
}

// slot returns the slot in the first row.
func (s *shares) slot(text string) uint16 { return s.pair(text)[0] }

func (p *parties) enter(at pair, limit, sure int64) (may bool) {
	first, second := p.count[0][at[0]].Add(1), p.count[1][at[1]].Add(1)
	if first == 1 {
		p.busy.Add(1)
	}
	own := min(first, second)
	return own <= sure || own <= limit/(p.busy.Load()+1)
}

func (p *parties) leave(at pair) {
	p.count[1][at[1]].Add(-1)
	if p.count[0][at[0]].Add(-1) == 0 {
		p.busy.Add(-1)
	}
}

// isLive reports whether a key has the form of a live one. A checksum would cost 150 ns and stop nobody:
// everybody can compute it.
func isLive(key string) bool {
	return len(key) == ident.KeyLength && strings.HasPrefix(key, ident.LivePrefix)
}

// keyOf returns the key that a request carries, or "".
func keyOf(q *handler.Request) string {
	for i := range q.Headers {
		if fastbytes.EqualFold(q.Headers[i].Name, "authorization") {
			_, key, _ := strings.Cut(strings.TrimSpace(q.Headers[i].Value), " ")
			return strings.TrimLeft(key, " ")
		}
	}
	return ""
}

// network returns an IPv4 address, or the network of 64 bits of an IPv6 address: a client has all of it.
func network(address string) string {
	if strings.IndexByte(address, ':') < 0 {
		return address
	}
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	prefix, _ := parsed.Prefix(64)
	return prefix.String()
}
