package lease

import (
	"errors"
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// ErrForgotten is returned by Void for a request id that is older than those remembered.
var ErrForgotten = errors.New("the request id is too old to be voided")

// ErrReported is returned by Void for a charge that was reported as unresolved: it is refunded by an operator, and
// must not be given back twice.
var ErrReported = errors.New("the charge was reported as unresolved")

// Voided is the result of Void.
type Voided struct {
	// Repeated says that the id was voided before.
	Repeated bool
}

// Void takes back the charge of id, if there is one, and makes sure that there never will
// be one. That holds only once the Log's records are durable. It returns ErrForgotten when
// the id is older than those remembered, and ErrReported when its charge can't be taken back any more.
func (s *EdgeState) Void(now int64, id string) (Voided, error) {
	sum := s.recent.sum(id)
	e := s.recent.find(sum)
	switch {
	case e == nil && s.recent.tooOld(id):
		return Voided{}, ErrForgotten
	case e == nil:
		s.recent.put(entry{at: now, epoch: s.standing.epoch, fate: voided}.named(sum))
		s.logVoid(id, &entry{at: now})
	case e.fate == voided:
		return Voided{Repeated: true}, nil
	case e.fate == reported:
		return Voided{}, ErrReported
	case e.fate == charged:
		s.unspend(e)
		e.fate = voided
		s.doubts.dispel(sum)
		//mutant:voided-charge-not-charged-again
		s.keyed.void(id, true)
		//mutant:void-not-journalled
		s.logVoid(id, e)
	default:
		e.fate = voided
		s.logVoid(id, &entry{at: now})
	}
	return Voided{}, nil
}

// Drop takes back the effect of a charge or a void whose record could not be written.
func (s *EdgeState) Drop(record []byte) {
	d := syncproto.NewDecoder(record)
	switch tag := d.Byte(); tag {
	case recordCharge:
		_, id := readCharge(d, tag)
		s.dropCharge(id)
	case recordKeyed:
		_, k := readKeyed(d, tag)
		s.dropCharge(k.id)
		s.keyed.void(k.id, true)
	case recordVoid:
		e, id := readVoid(d)
		s.dropVoid(&e, s.recent.sum(id))
		if e.account != 0 {
			s.keyed.void(id, false)
		}
	}
}

func (s *EdgeState) dropCharge(id string) {
	sum := s.recent.sum(id)
	if e := s.recent.find(sum); e != nil && e.fate == charged {
		s.unspend(e)
		s.recent.forget(sum)
	}
}

// dropVoid restores the charge that a void took back.
func (s *EdgeState) dropVoid(v *entry, id sum) {
	e := s.recent.find(id)
	switch {
	case e == nil || e.fate != voided:
	case v.account == 0:
		s.recent.forget(id)
	case e.epoch == s.standing.epoch:
		s.spend(e.use(), 1)
		e.fate = charged
	default:
		s.countLate(e.epoch, e.use(), 1)
		e.fate = charged
	}
}

// doubtMillis is how long a component has to repeat or void a request before its charge is
// reported as unresolved.
const doubtMillis = 10_000

// doubt is a charge whose verdict may not have reached the component.
type doubt struct {
	id string
	at int64 // Unix milliseconds
}

// doubts are the charges in doubt: first waiting for the component to repeat or void the
// request, then unresolved until a batch has reported them.
type doubts struct {
	waiting    []doubt       // oldest first
	open       map[sum]int64 // those of waiting that were neither repeated nor voided since, with their times
	unresolved []syncproto.Unresolved
	// delivered has the charges whose verdict arrived at a second attempt, since the time in since; before has those of
	// the period before. The failure of a first attempt may be noticed only after that.
	delivered, before map[sum]struct{}
	since             int64
}

func newDoubts() doubts { return doubts{open: map[sum]int64{}, delivered: map[sum]struct{}{}} }

// Doubt notes that the verdict on id may not have reached the component. Unless the id is
// charged again or voided, it is reported as unresolved. A not-found lookup is not: it cost nothing.
func (s *EdgeState) Doubt(now int64, id string) {
	sum := s.recent.sum(id)
	e := s.recent.find(sum)
	d := &s.doubts
	if e == nil || e.fate != charged || e.outcome != charge.Found || d.has(sum) || len(d.waiting) >= syncproto.MaxUnresolved {
		return
	}
	if d.arrived(sum) {
		return
	}
	d.open[sum] = now
	d.waiting = append(d.waiting, doubt{id, now})
}

// DoubtReplayed is Doubt for a request that was answered Replayed. Its charge is under another id, and is in doubt only
// if it was so before: otherwise its client has received the lookup already.
func (s *EdgeState) DoubtReplayed(now int64, r *charge.Request) {
	if k := s.keyed.last(nameOf(r)); s.Replays(r) && k.doubted {
		s.Doubt(now, k.id)
	}
}

// Delivered notes that the verdict on a repeated request, or on one that was answered Replayed, reached the component.
// Its charge is then not in doubt, even if earlier attempts are found to have failed later.
func (s *EdgeState) Delivered(now int64, r *charge.Request, replayed bool) {
	id := r.ID
	if replayed {
		k := s.keyed.last(nameOf(r))
		if !s.Replays(r) {
			return
		}
		id, k.doubted = k.id, false
	}
	sum := s.recent.sum(id)
	s.doubts.dispel(sum)
	s.doubts.arrive(now, sum)
}

// arrive notes a delivered verdict, for at least as long as an attempt may last.
func (d *doubts) arrive(now int64, id sum) {
	if now-d.since >= doubtMillis || now < d.since {
		d.delivered, d.before, d.since = map[sum]struct{}{}, d.delivered, now
	}
	if len(d.delivered) < syncproto.MaxUnresolved {
		d.delivered[id] = struct{}{}
	}
}

func (d *doubts) arrived(id sum) bool {
	_, now := d.delivered[id]
	_, before := d.before[id]
	return now || before
}

// dispel ends the doubt about an id: the component has repeated or voided the request, or the client has received the
// lookup by a retry under its Idempotency-Key.
func (d *doubts) dispel(id sum) { delete(d.open, id) }

func (d *doubts) has(id sum) bool {
	_, open := d.open[id]
	return open
}

// resolve moves the doubts that have waited long enough to the unresolved charges.
func (d *doubts) resolve(now int64, recent *recentIDs) {
	n := 0
	for _, w := range d.waiting {
		if age := now - w.at; age >= 0 && age < doubtMillis { // else it is due, or the clock was ahead
			break
		}
		n++
		sum := recent.sum(w.id)
		if at, open := d.open[sum]; !open || at != w.at { // another doubt about it may wait behind this one
			continue
		}
		delete(d.open, sum)
		if e := recent.find(sum); e != nil && e.account != 0 && len(d.unresolved) < syncproto.MaxUnresolved {
			d.unresolved = append(d.unresolved, syncproto.Unresolved{ID: w.id, Account: e.account, Key: e.key, AtMillis: e.at})
		}
	}
	d.waiting = d.waiting[n:]
}

// report removes what a sealed batch reports.
func (d *doubts) report(list []syncproto.Unresolved) {
	d.unresolved = slices.DeleteFunc(d.unresolved, func(u syncproto.Unresolved) bool {
		return slices.Contains(list, u)
	})
}

func (d *doubts) len() int { return len(d.waiting) + len(d.unresolved) }

// Unresolved is how many charges are in doubt and not yet reported.
func (s *EdgeState) Unresolved() int { return s.doubts.len() }
