package lease

import (
	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// doubtMillis is how long a component has to ask again or to void before a charge whose
// verdict may not have arrived is listed as unresolved.
const doubtMillis = 10_000

// doubt is a charge whose verdict may not have reached the component.
type doubt struct {
	id string
	at int64
}

// Voided is what Void came to.
type Voided struct {
	// Repeated says that the id was voided before.
	Repeated bool
}

// Void takes the charge of id back, if there is one, and lets none stand ever. That
// holds only once the Log's records are durable. ErrForgotten when the id is older than
// those remembered.
func (b *EdgeState) Void(now int64, id string) (Voided, error) {
	sum := b.recent.sum(id)
	e := b.recent.find(sum)
	switch {
	case e == nil && b.recent.tooOld(id):
		return Voided{}, ErrForgotten
	case e == nil:
		b.recent.put(entry{at: now, epoch: b.epoch, state: voided}.named(sum))
		b.logVoid(id, &entry{at: now})
	case e.state == voided:
		return Voided{Repeated: true}, nil
	case e.state == charged:
		b.reverse(e)
		e.state = voided
		delete(b.doubted, sum)
		//mutant:void-not-journalled
		b.logVoid(id, e)
	default:
		e.state = voided
		b.logVoid(id, &entry{at: now})
	}
	return Voided{}, nil
}

// Drop takes back the effect of a charge or a void whose record could not be written.
func (b *EdgeState) Drop(record []byte) {
	d := syncproto.NewDecoder(record)
	switch d.Byte() {
	case recordCharge:
		_, id := readCharge(d)
		sum := b.recent.sum(id)
		if e := b.recent.find(sum); e != nil && e.state == charged {
			b.reverse(e)
			b.recent.forget(sum)
		}
	case recordVoid:
		e, id := readVoid(d)
		b.dropVoid(&e, b.recent.sum(id))
	}
}

// dropVoid lets the charge stand again that a void took back.
func (b *EdgeState) dropVoid(v *entry, id sum) {
	e := b.recent.find(id)
	switch {
	case e == nil || e.state != voided:
	case v.account == 0:
		b.recent.forget(id)
	case e.epoch == b.epoch:
		b.spend(e.use(), 1)
		e.state = charged
	default:
		b.countLate(e.epoch, e.use(), 1)
		e.state = charged
	}
}

// reverse takes the effect of a charge back: in the current epoch its units are held
// again; a charge of an earlier epoch is reported to the writer as one less.
func (b *EdgeState) reverse(e *entry) {
	if e.epoch == b.epoch {
		b.spend(e.use(), -1)
		return
	}
	b.countLate(e.epoch, e.use(), -1)
}

// countLate counts usage of an earlier epoch.
func (b *EdgeState) countLate(epoch uint64, u use, n int64) {
	if epoch == b.dropped {
		return
	}
	tallyOf(b.late, epoch).add(u, n)
	b.owe(u, n)
}

// owe counts usage that the writer's balance does not show yet.
func (b *EdgeState) owe(u use, n int64) {
	if u.outcome == charge.Found {
		b.account(u.account).unreported += n
	}
}

// Doubt notes that the verdict on id may not have reached the component. Unless the id
// is asked again or voided, it is reported as unresolved.
func (b *EdgeState) Doubt(now int64, id string) {
	sum := b.recent.sum(id)
	e := b.recent.find(sum)
	if e == nil || e.state != charged || b.doubted[sum] || len(b.doubts) >= syncproto.MaxUnresolved {
		return
	}
	b.doubted[sum] = true
	b.doubts = append(b.doubts, doubt{id, now})
}

// resolveDoubts moves the doubts that stood long enough to the unresolved charges.
func (b *EdgeState) resolveDoubts(now int64) {
	n := 0
	for _, d := range b.doubts {
		if now-d.at < doubtMillis {
			break
		}
		n++
		sum := b.recent.sum(d.id)
		e, doubted := b.recent.find(sum), b.doubted[sum]
		delete(b.doubted, sum)
		if e != nil && doubted && e.account != 0 && len(b.unresolved) < syncproto.MaxUnresolved {
			b.unresolved = append(b.unresolved, syncproto.Unresolved{ID: d.id, Account: e.account, Key: e.key, AtMillis: e.at})
		}
	}
	b.doubts = b.doubts[n:]
}
