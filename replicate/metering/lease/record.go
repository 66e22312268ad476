package lease

import (
	"fmt"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// The first byte of each record. The numbers are stored and never change, nor does what
// follows them: a later version adds at the end.
const (
	recordBoot     byte = 1  // a run of the process began
	recordAccept   byte = 2  // the writer found the state directory current
	recordEpoch    byte = 3  // a new epoch
	recordStanding byte = 4  // generation and standing
	recordCharge   byte = 5  // a charge or a not-found lookup
	recordVoid     byte = 6  // no charge of an id stands
	recordSeal     byte = 7  // a batch was made
	recordNews     byte = 8  // the writer's acknowledgement and rows
	recordHead     byte = 9  // a snapshot begins: all state before is replaced
	recordAccount  byte = 10 // of a snapshot
	recordKey      byte = 11 // of a snapshot
	recordUsage    byte = 12 // of a snapshot
	recordInflight byte = 13 // of a snapshot
	recordAbandon  byte = 14 // what was unreported can never be reported
)

func (b *EdgeState) append(write func(e *syncproto.Encoder)) {
	b.scratch.Bytes = b.scratch.Bytes[:0]
	write(&b.scratch)
	b.log.Append(b.scratch.Bytes, false)
}

func (b *EdgeState) logAccept() {
	b.append(func(e *syncproto.Encoder) { e.Byte(recordAccept) })
}

func (b *EdgeState) logAbandon() {
	b.append(func(e *syncproto.Encoder) {
		e.Byte(recordAbandon)
		e.Uint(b.acked)
	})
}

func (b *EdgeState) logEpoch(forked bool) {
	b.append(func(e *syncproto.Encoder) {
		e.Byte(recordEpoch)
		e.Uint(b.epoch)
		e.Uint(b.generation)
		e.Bool(forked)
	})
}

func (b *EdgeState) logStanding() {
	b.append(func(e *syncproto.Encoder) {
		e.Byte(recordStanding)
		e.Uint(b.generation)
		e.Byte(byte(b.standing))
	})
}

// logCharge is the hot path: no closure, no allocation.
func (b *EdgeState) logCharge(now int64, r *charge.Request, v *charge.Verdict) {
	e := &b.scratch
	e.Bytes = append(e.Bytes[:0], recordCharge)
	e.Text(r.ID)
	e.Int(r.Account)
	e.Int(r.Key)
	e.Int(now)
	e.Byte(byte(r.Endpoint))
	e.Byte(byte(r.Outcome))
	e.Int(v.RateLimit)
	e.Int(v.RateRemaining)
	e.Int(v.CreditsRemaining)
	b.log.Append(e.Bytes, true)
}

func (b *EdgeState) logVoid(id string, charged *entry) {
	e := &b.scratch
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
	b.log.Append(e.Bytes, true)
}

func (b *EdgeState) logSeal(batch *syncproto.Batch) {
	b.append(func(e *syncproto.Encoder) {
		e.Byte(recordSeal)
		batch.Encode(e)
	})
}

func (b *EdgeState) logNews(applied uint64, rows []syncproto.Row) {
	b.append(func(e *syncproto.Encoder) {
		e.Byte(recordNews)
		e.Uint(applied)
		e.Uint(uint64(len(rows)))
		for i := range rows {
			rows[i].Encode(e)
		}
	})
}

// Replay applies a record that a former run wrote, in their order.
func (b *EdgeState) Replay(record []byte) error {
	d := syncproto.NewDecoder(record)
	tag := d.Byte()
	apply := b.replay(tag, d)
	if err := d.Err(); err != nil {
		return fmt.Errorf("replay record %d: %w", tag, err)
	}
	apply()
	return nil
}

// replay reads a record and returns its effect, so that a malformed one has none.
func (b *EdgeState) replay(tag byte, d *syncproto.Decoder) func() {
	switch tag {
	case recordBoot:
		return b.separate
	case recordAccept:
		return b.accept
	case recordAbandon:
		applied := uint64(0)
		if d.More() {
			applied = d.Uint()
		}
		return func() { b.abandon(applied) }
	case recordEpoch:
		epoch, generation, forked := d.Uint(), d.Uint(), d.Bool()
		return func() { b.applyEpoch(epoch, forked); b.generation = generation }
	case recordStanding:
		generation, standing := d.Uint(), syncproto.Status(d.Byte())
		return func() { b.generation, b.standing = generation, standing }
	case recordCharge:
		e, id := readCharge(d)
		return func() { b.replayCharge(e, id) }
	case recordVoid:
		e, id := readVoid(d)
		return func() { b.replayVoid(e, id) }
	case recordSeal:
		batch := syncproto.DecodeBatch(d)
		return func() { b.applySeal(batch) }
	case recordNews:
		applied, rows := readNews(d)
		return func() { b.replayNews(applied, rows) }
	}
	return b.replaySnapshot(tag, d)
}

func (b *EdgeState) replayNews(applied uint64, rows []syncproto.Row) {
	if batch := b.acknowledge(applied); batch != nil {
		b.replayed = append(b.replayed, *batch)
	}
	b.applyRows(rows)
}

// ReplayID takes from a record only the request ids that it holds: for the records
// before the newest snapshot.
func (b *EdgeState) ReplayID(record []byte) error {
	d := syncproto.NewDecoder(record)
	switch tag := d.Byte(); tag {
	case recordEpoch:
		b.idEpoch = d.Uint()
	case recordHead:
		b.idEpoch = d.Uint()
	case recordCharge:
		e, id := readCharge(d)
		if err := d.Err(); err != nil {
			return fmt.Errorf("replay request id: %w", err)
		}
		e.epoch, e.state = b.idEpoch, charged
		b.recent.put(e.named(b.recent.sum(id)))
	case recordVoid:
		e, id := readVoid(d)
		if err := d.Err(); err != nil {
			return fmt.Errorf("replay request id: %w", err)
		}
		b.rememberVoid(e, id)
	}
	return nil
}

func readCharge(d *syncproto.Decoder) (entry, string) {
	id := d.Text(charge.MaxID)
	e := entry{
		account: d.Int(), key: d.Int(), at: d.Int(),
		endpoint: charge.Endpoint(d.Byte()), outcome: charge.Outcome(d.Byte()),
		limit: int32(d.Int()), remaining: int32(d.Int()), credits: d.Int(), state: charged,
	}
	if e.account < 1 || e.key < 1 || e.outcome < charge.Found || e.outcome > charge.NotFound {
		d.Fail()
	}
	return e, id
}

func (b *EdgeState) replayCharge(e entry, id string) {
	e.epoch = b.epoch
	b.spend(e.use(), 1)
	b.account(e.account).used(e.at)
	//mutant:request-ids-forgotten-at-restart
	b.recent.put(e.named(b.recent.sum(id)))
}

func readVoid(d *syncproto.Decoder) (entry, string) {
	id := d.Text(charge.MaxID)
	e := entry{at: d.Int(), account: d.Int()}
	if e.account != 0 {
		e.key, e.epoch = d.Int(), d.Uint()
		e.endpoint, e.outcome = charge.Endpoint(d.Byte()), charge.Outcome(d.Byte())
		if e.account < 1 || e.key < 1 || e.outcome < charge.Found || e.outcome > charge.NotFound {
			d.Fail()
		}
	}
	return e, id
}

func (b *EdgeState) replayVoid(e entry, id string) {
	if e.account != 0 {
		b.reverse(&e)
	}
	b.rememberVoid(e, id)
}

func (b *EdgeState) rememberVoid(e entry, id string) {
	sum := b.recent.sum(id)
	if old := b.recent.find(sum); old != nil {
		old.state = voided
		return
	}
	e.state = voided
	b.recent.put(e.named(sum))
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
