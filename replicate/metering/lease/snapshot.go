package lease

import (
	"slices"

	"regedge/replicate/metering/syncproto"
)

// Snapshot gives records that rebuild the book to write, except for the request ids:
// the records before the snapshot keep those. A journal that begins with a snapshot
// needs nothing older but for ReplayID.
func (b *EdgeState) Snapshot(write func(record []byte)) {
	var e syncproto.Encoder
	flush := func() {
		write(e.Bytes)
		e.Bytes = e.Bytes[:0]
	}
	b.encodeHead(&e)
	flush()
	for _, id := range b.order {
		encodeAccount(&e, id, b.accounts[id])
		flush()
	}
	for _, id := range b.keyOrder {
		e.Byte(recordKey)
		e.Int(id)
		b.keys[id].notFound.encode(&e)
		flush()
	}
	b.snapshotUsage(&e, flush)
	//mutant:snapshot-without-batch-in-flight
	if b.inflight != nil {
		e.Byte(recordInflight)
		b.inflight.Encode(&e)
		flush()
	}
}

// snapshotUsage writes what is unreported, of this epoch and of earlier ones: since the run
// began, and before it.
func (b *EdgeState) snapshotUsage(e *syncproto.Encoder, flush func()) {
	write := func(of uint64, carried bool, t tally) {
		for rows := range slices.Chunk(t.durable(), syncproto.MaxUsage) {
			e.Byte(recordUsage)
			e.Uint(of)
			e.Bool(carried)
			e.Uint(uint64(len(rows)))
			for i := range rows {
				rows[i].Encode(e)
			}
			flush()
		}
	}
	write(b.epoch, false, b.pending)
	for epoch, t := range b.late {
		write(epoch, false, t)
	}
	for epoch, t := range b.carried {
		write(epoch, true, t)
	}
}

func (b *EdgeState) encodeHead(e *syncproto.Encoder) {
	e.Byte(recordHead)
	for _, n := range []uint64{b.epoch, b.generation, b.sealed, b.applied, b.acked} {
		e.Uint(n)
	}
	e.Int(b.granted)
	e.Byte(byte(b.standing))
	e.Bool(b.accepted)
	e.Uint(uint64(len(b.unresolved)))
	for i := range b.unresolved {
		b.unresolved[i].Encode(e)
	}
	e.Uint(b.dropped)
}

func encodeAccount(e *syncproto.Encoder, id int64, a *account) {
	e.Byte(recordAccount)
	e.Int(id)
	a.credits.encode(e)
	a.volume.encode(e)
	e.Int(a.balance)
	e.Int(a.unreported)
	e.Int(a.lastUsed)
	e.Uint(a.closeSeq)
}

const (
	holdingKnown = 1 << iota
	holdingDry
	holdingRecalled
)

func (h *holding) encode(e *syncproto.Encoder) {
	flags := byte(0)
	if h.known {
		flags |= holdingKnown
	}
	if h.dry {
		flags |= holdingDry
	}
	if h.recalled {
		flags |= holdingRecalled
	}
	e.Byte(flags)
	e.Int(h.granted)
	e.Int(h.spent)
	e.Int(h.returned)
	e.Int(h.until)
	e.Int(int64(h.window))
}

func decodeHolding(d *syncproto.Decoder) holding {
	flags := d.Byte()
	h := holding{granted: d.Int(), spent: d.Int(), returned: d.Int(), until: d.Int(), window: int32(d.Int())}
	h.known, h.dry, h.recalled = flags&holdingKnown != 0, flags&holdingDry != 0, flags&holdingRecalled != 0
	return h
}

// replaySnapshot reads a record of a snapshot and returns its effect.
func (b *EdgeState) replaySnapshot(tag byte, d *syncproto.Decoder) func() {
	switch tag {
	case recordHead:
		return b.readHead(d)
	case recordAccount:
		id := d.Int()
		a := account{credits: decodeHolding(d), volume: decodeHolding(d), balance: d.Int(),
			unreported: d.Int(), lastUsed: d.Int(), closeSeq: d.Uint()}
		return func() {
			to := b.account(id)
			a.index = to.index
			*to = a
		}
	case recordKey:
		id, h := d.Int(), decodeHolding(d)
		return func() { b.key(id).notFound = h }
	case recordUsage:
		return b.readUsage(d)
	case recordInflight:
		batch := syncproto.DecodeBatch(d)
		return func() { b.inflight = batch }
	}
	d.Fail()
	return nil
}

func (b *EdgeState) readHead(d *syncproto.Decoder) func() {
	fresh := New(b.log)
	fresh.recent, fresh.boot = b.recent, b.boot
	for _, n := range []*uint64{&fresh.epoch, &fresh.generation, &fresh.sealed, &fresh.applied, &fresh.acked} {
		*n = d.Uint()
	}
	fresh.granted, fresh.standing, fresh.accepted = d.Int(), syncproto.Status(d.Byte()), d.Bool()
	for range d.Count(syncproto.MaxUnresolved) {
		fresh.unresolved = append(fresh.unresolved, syncproto.DecodeUnresolved(d))
	}
	if d.More() {
		fresh.dropped = d.Uint()
	}
	return func() { *b = *fresh }
}

func (b *EdgeState) readUsage(d *syncproto.Decoder) func() {
	of, carried := d.Uint(), d.Bool()
	var rows []syncproto.Usage
	for range d.Count(syncproto.MaxUsage) {
		rows = append(rows, syncproto.DecodeUsage(d))
		if d.Failed() {
			return nil
		}
	}
	return func() {
		to := b.pending
		if carried {
			to = tallyOf(b.carried, of)
		} else if of != b.epoch {
			to = tallyOf(b.late, of)
		}
		for i := range rows {
			to.add(useOf(&rows[i]), rows[i].Count)
		}
	}
}
