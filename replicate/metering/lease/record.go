package lease

import (
	"fmt"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// The first byte of each record. The numbers are stored and never change. What follows them does not
// change either, except for a lease in a snapshot: its flags say which fields it has beyond the first
// version.
const (
	recordBoot      byte = 1  // a run of the process began
	recordConfirm   byte = 2  // the writer found the state directory current
	recordEpoch     byte = 3  // a new epoch
	recordStanding  byte = 4  // generation and status
	recordOldCharge byte = 5  // recordCharge without its epoch, as it was written before; only read
	recordVoid      byte = 6  // no charge of an id stands
	recordSeal      byte = 7  // a batch was made
	recordNews      byte = 8  // the writer's acknowledgement and rows
	recordHead      byte = 9  // a snapshot begins: all state before is replaced
	recordAccount   byte = 10 // of a snapshot
	recordKey       byte = 11 // of a snapshot
	recordUsage     byte = 12 // of a snapshot
	recordInflight  byte = 13 // of a snapshot
	recordAbandon   byte = 14 // what was unreported can never be reported
	recordParked    byte = 15 // of a snapshot
	recordOldKeyed  byte = 16 // recordKeyed without its epoch, as it was written before; only read
	recordKept      byte = 17 // of a snapshot
	recordCharge    byte = 18 // a charge or a not-found lookup
	recordKeyed     byte = 19 // a charge or a not-found lookup with an Idempotency-Key
	recordJump      byte = 20 // the clock was set
)

func (s *EdgeState) append(write func(e *syncproto.Encoder)) {
	s.scratch.Bytes = s.scratch.Bytes[:0]
	write(&s.scratch)
	s.log.Append(s.scratch.Bytes, false)
}

func (s *EdgeState) logConfirm() {
	s.append(func(e *syncproto.Encoder) { e.Byte(recordConfirm) })
}

func (s *EdgeState) logAbandon() {
	s.append(func(e *syncproto.Encoder) {
		e.Byte(recordAbandon)
		e.Uint(s.outbox.acked)
	})
}

func (s *EdgeState) logEpoch(forked bool) {
	s.append(func(e *syncproto.Encoder) {
		e.Byte(recordEpoch)
		e.Uint(s.standing.epoch)
		e.Uint(s.standing.generation)
		e.Bool(forked)
	})
}

func (s *EdgeState) logStanding() {
	s.append(func(e *syncproto.Encoder) {
		e.Byte(recordStanding)
		e.Uint(s.standing.generation)
		e.Byte(byte(s.standing.status))
	})
}

func (s *EdgeState) logJump(millis int64) {
	s.append(func(e *syncproto.Encoder) {
		e.Byte(recordJump)
		e.Int(millis)
	})
}

// logCharge is on the hot path: no closure, no allocation.
func (s *EdgeState) logCharge(now int64, r *charge.Request, v *charge.Verdict) {
	e := &s.scratch
	tag := recordCharge
	if r.IdempotencyHash != "" {
		tag = recordKeyed
	}
	e.Bytes = append(e.Bytes[:0], tag)
	e.Text(r.ID)
	e.Int(r.Account)
	e.Int(r.Key)
	e.Int(now)
	e.Byte(byte(r.Endpoint))
	e.Byte(byte(r.Outcome))
	e.Int(v.RateLimit)
	e.Int(v.RateRemaining)
	e.Int(v.CreditsRemaining)
	e.Uint(s.standing.epoch)
	if tag == recordKeyed {
		k := keyed{name: nameOf(r), target: parseHash(r.TargetHash)}
		k.encode(e)
	}
	s.log.Append(e.Bytes, true)
}

// logVoid writes the void of an id, with the charge that it took back; of an id without a
// charge only the time is set.
func (s *EdgeState) logVoid(id string, charged *entry) {
	e := &s.scratch
	e.Bytes = append(e.Bytes[:0], recordVoid)
	e.Text(id)
	e.Int(charged.at)
	e.Int(charged.account)
	if charged.account != 0 {
		e.Int(charged.key)
		e.Uint(charged.epoch)
		e.Byte(byte(charged.endpoint))
		e.Byte(byte(charged.outcome))
	}
	s.log.Append(e.Bytes, true)
}

func (s *EdgeState) logSeal(batch *syncproto.Batch) {
	s.append(func(e *syncproto.Encoder) {
		e.Byte(recordSeal)
		e.Uint(s.standing.epoch)
		batch.Encode(e)
	})
}

func (s *EdgeState) logNews(applied uint64, rows []syncproto.Row) {
	s.append(func(e *syncproto.Encoder) {
		e.Byte(recordNews)
		e.Uint(applied)
		e.Uint(uint64(len(rows)))
		for i := range rows {
			rows[i].Encode(e)
		}
	})
}

// Replay applies a record that a former run wrote. Records have to come in their order. An empty record
// means that some were lost at this place: see Damaged. A malformed record has no effect and returns
// syncproto.ErrMalformed, wrapped.
func (s *EdgeState) Replay(record []byte) error {
	if len(record) == 0 {
		s.separate() // the process may have ended there
		return nil
	}
	d := syncproto.NewDecoder(record)
	tag := d.Byte()
	apply := s.replay(tag, d)
	if err := d.Err(); err != nil {
		return fmt.Errorf("replay record %d: %w", tag, err)
	}
	apply()
	return nil
}

// replay reads a record and returns its effect, so that a malformed one has none.
func (s *EdgeState) replay(tag byte, d *syncproto.Decoder) func() {
	switch tag {
	case recordBoot:
		return s.separate
	case recordConfirm:
		return func() { s.usage.confirm(s.standing.epoch) }
	case recordAbandon:
		applied := d.Uint()
		return func() { s.abandon(applied) }
	case recordEpoch:
		epoch, generation, forked := d.Uint(), d.Uint(), d.Bool()
		return func() { s.applyEpoch(epoch, forked); s.standing.generation = generation }
	case recordStanding:
		generation, status := d.Uint(), syncproto.Status(d.Byte())
		return func() { s.standing.generation, s.standing.status = generation, status }
	case recordCharge, recordOldCharge:
		e, id := readCharge(d, tag)
		return func() { s.replayCharge(e, id) }
	case recordKeyed, recordOldKeyed:
		e, k := readKeyed(d, tag)
		return func() { s.replayKeyed(e, k) }
	case recordVoid:
		e, id := readVoid(d)
		return func() { s.replayVoid(e, id) }
	case recordSeal:
		epoch, batch := d.Uint(), syncproto.DecodeBatch(d)
		return func() { s.replaySeal(epoch, batch) }
	case recordJump:
		jump := d.Int()
		return func() { s.keyed.shift(jump) }
	case recordNews:
		applied, rows := readNews(d)
		return func() { s.replayNews(applied, rows) }
	}
	return s.replaySnapshot(tag, d)
}

// follow begins the epoch of a record if the record that began this epoch was lost. It is then unknown
// which usage in between was reported: none of it is reported again.
func (s *EdgeState) follow(epoch uint64) {
	if epoch != s.standing.epoch {
		s.applyEpoch(epoch, true)
		s.dropUsage()
	}
}

// replaySeal applies a seal. When earlier seals were lost, reported usage can't be told from unreported
// usage: none of it is reported again.
func (s *EdgeState) replaySeal(epoch uint64, batch *syncproto.Batch) {
	s.follow(epoch)
	if !s.usage.confirmed { // else nothing is sealed: that record was lost
		s.usage.confirm(s.standing.epoch)
	}
	lost := batch.Seq != s.outbox.sealed+1
	s.applySeal(batch)
	if lost {
		s.dropUsage()
		s.outbox.inflight = batch
		for i := range batch.Usage {
			s.addUnreported(useOf(&batch.Usage[i]), batch.Usage[i].Count)
		}
	}
}

func (s *EdgeState) replayNews(applied uint64, rows []syncproto.Row) {
	if applied > s.outbox.sealed && !s.outbox.abandoned() { // the seal was lost
		s.dropUsage()
		s.outbox.sealed = applied
	}
	if batch := s.acknowledge(applied); batch != nil {
		s.outbox.replayed = append(s.outbox.replayed, *batch)
	}
	s.applyRows(rows)
}

// ReplayID takes only the request ids from a record: for the records before the newest
// snapshot.
func (s *EdgeState) ReplayID(record []byte) error {
	d := syncproto.NewDecoder(record)
	switch tag := d.Byte(); tag {
	case recordEpoch, recordHead:
		s.recent.replayEpoch = d.Uint()
	case recordCharge, recordOldCharge, recordKeyed, recordOldKeyed:
		e, id := readCharge(d, tag)
		if tag == recordKeyed || tag == recordOldKeyed { // its Idempotency-Key is in the snapshot
			new(keyed).decode(d)
		}
		if err := d.Err(); err != nil {
			return fmt.Errorf("replay request id: %w", err)
		}
		if e.epoch == 0 {
			e.epoch = s.recent.replayEpoch
		}
		s.recent.put(e.named(s.recent.sum(id)))
	case recordVoid:
		e, id := readVoid(d)
		if err := d.Err(); err != nil {
			return fmt.Errorf("replay request id: %w", err)
		}
		s.rememberVoid(e, id)
	case recordSeal:
		d.Uint() // its epoch
		batch := syncproto.DecodeBatch(d)
		if err := d.Err(); err != nil {
			return fmt.Errorf("replay request id: %w", err)
		}
		s.recent.report(batch.Unresolved)
	}
	return nil
}

// readCharge reads a charge, up to its Idempotency-Key. Its epoch is 0 in a record that does not name it.
func readCharge(d *syncproto.Decoder, tag byte) (entry, string) {
	id := d.Text(charge.MaxID)
	e := entry{
		account: d.Int(), key: d.Int(), at: d.Int(),
		endpoint: charge.Endpoint(d.Byte()), outcome: charge.Outcome(d.Byte()),
		limit: int32(d.Int()), remaining: int32(d.Int()), credits: d.Int(), fate: charged,
	}
	if tag == recordCharge || tag == recordKeyed {
		e.epoch = d.Uint()
	}
	if !e.valid() {
		d.Fail()
	}
	return e, id
}

// readKeyed reads a charge with its Idempotency-Key.
func readKeyed(d *syncproto.Decoder, tag byte) (entry, keyed) {
	e, id := readCharge(d, tag)
	k := keyed{name: keyedName{key: e.key}, id: id, moment: moment{at: e.at}, outcome: e.outcome}
	k.decode(d)
	return e, k
}

// valid reports whether a decoded charge is possible.
func (e *entry) valid() bool {
	return e.account >= 1 && e.key >= 1 && e.outcome >= charge.Found && e.outcome <= charge.NotFound
}

func (s *EdgeState) replayCharge(e entry, id string) {
	if e.epoch == 0 {
		e.epoch = s.standing.epoch
	}
	s.follow(e.epoch)
	s.spend(e.use(), 1)
	s.leases.accounts.ensure(e.account).used(e.at)
	//mutant:request-ids-forgotten-at-restart
	s.recent.put(e.named(s.recent.sum(id)))
}

func (s *EdgeState) replayKeyed(e entry, k keyed) {
	s.replayCharge(e, k.id)
	//mutant:idempotency-keys-forgotten-at-restart
	s.keyed.put(k)
}

func readVoid(d *syncproto.Decoder) (entry, string) {
	id := d.Text(charge.MaxID)
	e := entry{at: d.Int(), account: d.Int()}
	if e.account != 0 {
		e.key, e.epoch = d.Int(), d.Uint()
		e.endpoint, e.outcome = charge.Endpoint(d.Byte()), charge.Outcome(d.Byte())
		if !e.valid() {
			d.Fail()
		}
	}
	return e, id
}

func (s *EdgeState) replayVoid(e entry, id string) {
	if e.account != 0 {
		s.unspend(&e)
		s.keyed.void(id, true)
	}
	s.rememberVoid(e, id)
}

func (s *EdgeState) rememberVoid(e entry, id string) {
	sum := s.recent.sum(id)
	if old := s.recent.find(sum); old != nil {
		old.fate = voided
		return
	}
	e.fate = voided
	s.recent.put(e.named(sum))
}

func readNews(d *syncproto.Decoder) (uint64, []syncproto.Row) {
	applied := d.Uint()
	n := d.Count(syncproto.MaxRows)
	rows := make([]syncproto.Row, 0, n)
	for range n {
		rows = append(rows, syncproto.DecodeRow(d))
		if d.Failed() {
			return 0, nil
		}
	}
	return applied, rows
}
