package lease

import (
	"encoding/hex"
	"fmt"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

const (
	// keyedMillis is how long a charge with an Idempotency-Key is remembered
	// (docs/contract.md, "A retry is not charged twice").
	keyedMillis = 10 * 60 * 1000
	// keyedLimit is how many such charges are remembered: about 13 MB. Beyond it the oldest is forgotten.
	keyedLimit = 1 << 16
)

// shortHash is a hash of a charge.Request.
type shortHash [charge.HashLength / 2]byte

func parseHash(text string) (h shortHash) {
	hex.Decode(h[:], []byte(text)) // the contract's decoder has checked it; in other text, decodes what it can
	return h
}

// keyedName is the key of a charge that is remembered: the caller's API key, and the hash of its
// Idempotency-Key.
type keyedName struct {
	key  int64
	hash shortHash
}

// keyed is a charge that was made with an Idempotency-Key.
type keyed struct {
	name   keyedName
	target shortHash
	id     string // of the charge
	moment
	outcome charge.Outcome
	voided  bool
	doubted bool // it was in doubt until a retry delivered its answer; not stored
}

// moment is a point in time by two clocks.
type moment struct {
	at      int64 // Unix milliseconds
	elapsed int64 // milliseconds by NoteClock; 0 for a charge of an earlier run, or if nobody calls NoteClock
}

// after is what the clock would show now if nobody had set it since an earlier moment.
func (m moment) after(earlier moment) int64 { return earlier.at + m.elapsed - earlier.elapsed }

// keyedCharges remembers the charges of the last ten minutes that were made with an
// Idempotency-Key, oldest first.
type keyedCharges struct {
	queue []keyed
	first int // queue[0]'s number, counting all charges ever put
	index map[keyedName]int
}

func newKeyedCharges() keyedCharges { return keyedCharges{index: map[keyedName]int{}} }

// live reports whether a charge is still remembered at now: by the clock or, if that was set since, by the monotonic
// one. A charge of an earlier run whose time is far in the future, because the clock was set back, is not.
func (k *keyed) live(now moment) bool {
	if now.at-k.at < keyedMillis && k.at-now.at < keyedMillis {
		return true
	}
	return k.elapsed != 0 && now.elapsed-k.elapsed < keyedMillis
}

// follow makes the charges of earlier runs end by the monotonic clock, which begins now.
func (c *keyedCharges) follow(now moment) {
	for i := range c.queue {
		if k := &c.queue[i]; k.elapsed == 0 && k.live(now) {
			k.elapsed = now.elapsed - max(now.at-k.at, 0)
		}
	}
}

// shift moves the charges along with the clock, which was set by jump milliseconds.
func (c *keyedCharges) shift(jump int64) {
	for i := range c.queue {
		c.queue[i].at += jump
	}
}

// find returns a name's charge if it is live and not voided, or nil. It is valid until the next put.
func (c *keyedCharges) find(name keyedName, now moment) *keyed {
	if k := c.last(name); k != nil && k.live(now) && !k.voided {
		return k
	}
	return nil
}

// last returns a name's newest charge that was not forgotten, or nil. It is valid until the next put.
func (c *keyedCharges) last(name keyedName) *keyed {
	place, ok := c.index[name]
	if !ok {
		return nil
	}
	return &c.queue[place-c.first]
}

// put remembers a charge, replacing an earlier one of its name, and forgets old ones.
func (c *keyedCharges) put(k keyed) {
	for len(c.queue) > 0 && (len(c.queue) >= keyedLimit || !c.queue[0].live(k.moment)) {
		c.forget(c.first)
		c.queue[0] = keyed{} // releases its text
		c.queue = c.queue[1:]
		c.first++
	}
	c.index[k.name] = c.first + len(c.queue)
	c.queue = append(c.queue, k)
}

// forget drops a place's name from the index, unless a newer charge has it.
func (c *keyedCharges) forget(place int) {
	if name := c.queue[place-c.first].name; c.index[name] == place {
		delete(c.index, name)
	}
}

// void notes that a charge was taken back, could not be written, or stands again. That is rare, so a
// linear search will do.
func (c *keyedCharges) void(id string, voided bool) {
	for i := len(c.queue) - 1; i >= 0; i-- {
		if c.queue[i].id == id {
			c.queue[i].voided = voided
			return
		}
	}
}

func (c *keyedCharges) check() error {
	if len(c.queue) > keyedLimit {
		return fmt.Errorf("%d charges with an Idempotency-Key are remembered", len(c.queue))
	}
	for name, place := range c.index {
		if at := place - c.first; at < 0 || at >= len(c.queue) || c.queue[at].name != name {
			return fmt.Errorf("a name of key %d is at place %d of %d", name.key, at, len(c.queue))
		}
	}
	return nil
}

func nameOf(r *charge.Request) keyedName { return keyedName{r.Key, parseHash(r.IdempotencyHash)} }

// chargedBefore decides on a request whose Idempotency-Key was charged for already. decided is false if it
// must be charged: a not-found lookup was free, so a record found since then is not paid for.
func (s *EdgeState) chargedBefore(now int64, r *charge.Request, id sum, a *account, v charge.Verdict) (_ Answer, decided bool) {
	k := s.keyed.find(nameOf(r), moment{now, s.clock.elapsed})
	switch {
	case k == nil:
		return Answer{}, false
	case k.target != parseHash(r.TargetHash):
		v.Code = charge.IdempotencyKeyReused
		return s.answer(now, r, id, v, answered), true
	case k.outcome == charge.NotFound && r.Outcome == charge.Found:
		return Answer{}, false
	}
	if id := s.recent.sum(k.id); s.doubts.has(id) {
		s.doubts.dispel(id)
		k.doubted = true
	}
	v.Replayed = true
	v.CreditsRemaining = max(a.balance-a.unreported, 0)
	// Logged and Repeated: the charge may be in a group that is not written yet, and may fail. The id
	// is not remembered, or the second look would not see that.
	return Answer{Verdict: v, Logged: true, Repeated: true}, true
}

// Replays reports whether the charge for which a request was answered Replayed still stands, even if it has since
// become too old to be found.
func (s *EdgeState) Replays(r *charge.Request) bool {
	k := s.keyed.last(nameOf(r))
	return k != nil && !k.voided && k.target == parseHash(r.TargetHash)
}

// keep remembers a charge with an Idempotency-Key.
func (s *EdgeState) keep(now int64, r *charge.Request) {
	//mutant:idempotency-key-forgotten
	s.keyed.put(keyed{name: nameOf(r), target: parseHash(r.TargetHash), id: r.ID, moment: moment{now, s.clock.elapsed}, outcome: r.Outcome})
}

// encode appends the Idempotency-Key fields, which a charge's record lacks.
func (k *keyed) encode(e *syncproto.Encoder) {
	e.Text(string(k.name.hash[:]))
	e.Text(string(k.target[:]))
}

func (k *keyed) decode(d *syncproto.Decoder) {
	hash, target := d.Text(len(k.name.hash)), d.Text(len(k.target))
	if len(hash) != len(k.name.hash) || len(target) != len(k.target) {
		d.Fail()
	}
	copy(k.name.hash[:], hash)
	copy(k.target[:], target)
}

// encodeKept appends a record of a snapshot. If the clock was set since the charge, its time is moved with it: the
// next run knows no other clock.
func (k *keyed) encodeKept(e *syncproto.Encoder, now moment) {
	at := k.at
	if jump := now.at - now.after(k.moment); k.elapsed != 0 && max(jump, -jump) > jumpMillis {
		at += jump
	}
	e.Byte(recordKept)
	e.Text(k.id)
	e.Int(k.name.key)
	e.Int(at)
	e.Byte(byte(k.outcome))
	e.Bool(k.voided)
	k.encode(e)
}

func decodeKept(d *syncproto.Decoder) keyed {
	k := keyed{id: d.Text(charge.MaxID), name: keyedName{key: d.Int()}, moment: moment{at: d.Int()}, outcome: charge.Outcome(d.Byte()), voided: d.Bool()}
	k.decode(d)
	if k.name.key < 1 || k.outcome < charge.Found || k.outcome > charge.NotFound {
		d.Fail()
	}
	return k
}
