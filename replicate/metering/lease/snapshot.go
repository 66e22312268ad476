package lease

import (
	"slices"

	"regedge/replicate/metering/syncproto"
)

// Snapshot calls write with records that rebuild the state, except for the request ids:
// those are in the records before the snapshot. A journal that begins with a snapshot needs
// the records before it only for ReplayID. write must not keep the record.
func (s *EdgeState) Snapshot(write func(record []byte)) {
	var e syncproto.Encoder
	flush := func() {
		write(e.Bytes)
		e.Bytes = e.Bytes[:0]
	}
	parked := func(p syncproto.Pool, l *lease) {
		e.Byte(recordParked)
		e.Byte(byte(p.Kind))
		e.Int(p.Subject)
		l.encode(&e)
		flush()
	}
	s.encodeHead(&e)
	flush()
	for id, a := range s.leases.accounts.all() {
		encodeAccount(&e, id, a)
		flush()
		s.leases.eachParked(volumePool(id, 0), parked)
	}
	for id, l := range s.leases.keys.all() {
		e.Byte(recordKey)
		e.Int(id)
		l.encode(&e)
		flush()
		s.leases.eachParked(notFoundPool(id, 0), parked)
	}
	s.snapshotUsage(&e, flush)
	//mutant:snapshot-without-idempotency-keys
	for i := range s.keyed.queue {
		s.keyed.queue[i].encodeKept(&e, s.clock)
		flush()
	}
	//mutant:snapshot-without-batch-in-flight
	if s.outbox.inflight != nil {
		e.Byte(recordInflight)
		s.outbox.inflight.Encode(&e)
		flush()
	}
}

// snapshotUsage writes the usage that no batch has reported.
func (s *EdgeState) snapshotUsage(e *syncproto.Encoder, flush func()) {
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
	write(s.standing.epoch, false, s.usage.current)
	for epoch, t := range s.usage.late {
		write(epoch, false, t)
	}
	for epoch, t := range s.usage.carried {
		write(epoch, true, t)
	}
}

func (s *EdgeState) encodeHead(e *syncproto.Encoder) {
	e.Byte(recordHead)
	for _, n := range []uint64{s.standing.epoch, s.standing.generation, s.outbox.sealed, s.outbox.applied, s.outbox.acked} {
		e.Uint(n)
	}
	e.Int(s.leases.granted)
	e.Byte(byte(s.standing.status))
	e.Bool(s.usage.confirmed)
	e.Uint(uint64(len(s.doubts.unresolved)))
	for i := range s.doubts.unresolved {
		s.doubts.unresolved[i].Encode(e)
	}
	e.Uint(s.standing.dropped)
	e.Bool(s.standing.damaged)
}

func encodeAccount(e *syncproto.Encoder, id int64, a *account) {
	e.Byte(recordAccount)
	e.Int(id)
	a.credits.encode(e)
	a.volume.encode(e)
	e.Int(a.balance)
	e.Int(a.unreported)
	e.Int(a.lastUsed)
	e.Uint(0) // formerly since, of both leases
}

// Flags of an encoded lease.
const (
	leaseKnown = 1 << iota
	leaseDry
	leaseRecalled
	leaseSince
)

func (l *lease) encode(e *syncproto.Encoder) {
	flags := byte(0)
	if l.known {
		flags |= leaseKnown
	}
	if l.dry {
		flags |= leaseDry
	}
	if l.recalled {
		flags |= leaseRecalled
	}
	if l.since > 0 {
		flags |= leaseSince
	}
	e.Byte(flags)
	e.Int(l.granted)
	e.Int(l.spent)
	e.Int(l.returned)
	e.Int(l.until)
	e.Int(int64(l.window))
	if l.since > 0 {
		e.Uint(l.since)
	}
}

func decodeLease(d *syncproto.Decoder) lease {
	flags := d.Byte()
	l := lease{granted: d.Int(), spent: d.Int(), returned: d.Int(), until: d.Int(), window: int32(d.Int())}
	l.known, l.dry, l.recalled = flags&leaseKnown != 0, flags&leaseDry != 0, flags&leaseRecalled != 0
	if flags&leaseSince != 0 {
		l.since = d.Uint()
	}
	return l
}

// replaySnapshot reads a record of a snapshot and returns its effect.
func (s *EdgeState) replaySnapshot(tag byte, d *syncproto.Decoder) func() {
	switch tag {
	case recordHead:
		return s.readHead(d)
	case recordAccount:
		id := d.Int()
		a := account{credits: decodeLease(d), volume: decodeLease(d), balance: d.Int(),
			unreported: d.Int(), lastUsed: d.Int()}
		since := d.Uint()
		a.credits.since, a.volume.since = max(a.credits.since, since), max(a.volume.since, since)
		return func() { *s.leases.accounts.ensure(id) = a }
	case recordKey:
		id, l := d.Int(), decodeLease(d)
		return func() { *s.leases.keys.ensure(id) = l }
	case recordParked:
		p, l := syncproto.Pool{Kind: syncproto.Kind(d.Byte()), Subject: d.Int()}, decodeLease(d)
		return func() { s.leases.park(p, l) }
	case recordUsage:
		return s.readUsage(d)
	case recordKept:
		k := decodeKept(d)
		return func() { s.keyed.put(k) }
	case recordInflight:
		batch := syncproto.DecodeBatch(d)
		return func() { s.outbox.inflight = batch }
	}
	d.Fail()
	return nil
}

// readHead reads the head of a snapshot. It replaces all state but the request ids.
func (s *EdgeState) readHead(d *syncproto.Decoder) func() {
	fresh := New(s.log)
	fresh.recent, fresh.session.boot = s.recent, s.session.boot
	for _, n := range []*uint64{&fresh.standing.epoch, &fresh.standing.generation,
		&fresh.outbox.sealed, &fresh.outbox.applied, &fresh.outbox.acked} {
		*n = d.Uint()
	}
	fresh.leases.granted, fresh.standing.status, fresh.usage.confirmed = d.Int(), syncproto.Status(d.Byte()), d.Bool()
	for range d.Count(syncproto.MaxUnresolved) {
		fresh.doubts.unresolved = append(fresh.doubts.unresolved, syncproto.DecodeUnresolved(d))
	}
	fresh.standing.dropped, fresh.standing.damaged = d.Uint(), d.Bool()
	return func() { *s = *fresh }
}

func (s *EdgeState) readUsage(d *syncproto.Decoder) func() {
	of, carried := d.Uint(), d.Bool()
	var rows []syncproto.Usage
	for range d.Count(syncproto.MaxUsage) {
		rows = append(rows, syncproto.DecodeUsage(d))
		if d.Failed() {
			return nil
		}
	}
	return func() {
		var to tally
		if carried {
			to = tallyOf(s.usage.carried, of)
		} else {
			to = s.usage.of(of, s.standing.epoch)
		}
		for i := range rows {
			to.add(useOf(&rows[i]), rows[i].Count)
		}
	}
}
