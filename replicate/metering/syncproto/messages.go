package syncproto

import (
	"math"

	"regedge/handler/charge"
)

// Message is a message of an edge to the writer: exactly one of Hello and Sync is set.
type Message struct {
	// Number differs for each message of an edge; the count begins at a random number in each run of
	// its process. The reply repeats it, so that a reply replayed by a proxy is not taken for the
	// answer to another message.
	Number uint64
	Hello  *Hello
	Sync   *Sync
}

// Encode is the binary form of the message.
func (m Message) Encode() []byte {
	var e Encoder
	if m.Hello != nil {
		e.Byte(head(kindHello))
		e.Uint(m.Number)
		m.Hello.encode(&e)
	} else {
		e.Byte(head(kindSync))
		e.Uint(m.Number)
		m.Sync.encode(&e)
	}
	return e.Bytes
}

// DecodeMessage reads a message of at most MaxMessage bytes. Its errors are ErrMalformed, and
// ErrVersion for a message that only a newer program can read.
func DecodeMessage(b []byte) (Message, error) {
	d := NewDecoder(b)
	kind, newer, err := d.readHead()
	if err != nil {
		return Message{}, err
	}
	m := Message{Number: d.Uint()}
	switch {
	case len(b) > MaxMessage:
		d.Fail()
	case kind == kindHello:
		m.Hello = decodeHello(d)
	case kind == kindSync:
		m.Sync = decodeSync(d)
	default:
		d.Fail()
	}
	if newer {
		d.skipRest()
	}
	if err := d.Err(); err != nil {
		return Message{}, err
	}
	return m, nil
}

func (h *Hello) encode(e *Encoder) {
	e.Uint(h.Epoch)
	e.Uint(h.Boot)
	e.Uint(h.Sealed)
	e.Uint(h.Acked)
	e.Int(h.Granted)
	e.Uint(h.Generation)
	e.Int(h.NowMillis)
}

func decodeHello(d *Decoder) *Hello {
	return &Hello{
		Epoch: d.number(), Boot: d.Uint(), Sealed: d.number(), Acked: d.number(),
		Granted: d.units(), Generation: d.number(), NowMillis: d.millis(),
	}
}

func (s *Sync) encode(e *Encoder) {
	e.Uint(s.Session)
	e.Uint(s.Seen)
	e.Int(s.HoldMillis)
	e.Int(s.NowMillis)
	e.Bool(s.Batch != nil)
	if s.Batch != nil {
		s.Batch.Encode(e)
	}
	e.Uint(uint64(len(s.Wants)))
	for _, w := range s.Wants {
		w.Pool.Encode(e)
		e.Int(w.Target)
		e.Bool(w.Urgent)
	}
	encodeRates(e, s.Rates)
	e.Uint(uint64(len(s.Declared)))
	for _, l := range s.Declared {
		l.Pool.Encode(e)
		e.Int(l.Granted)
	}
	e.Bool(s.DeclaredLast)
}

func decodeSync(d *Decoder) *Sync {
	s := &Sync{Session: d.Uint(), Seen: d.Uint(), HoldMillis: d.units(), NowMillis: d.millis()}
	if d.Bool() {
		s.Batch = DecodeBatch(d)
	}
	s.Wants = list(d, MaxWants, func() Want {
		return Want{Pool: DecodePool(d), Target: d.units(), Urgent: d.Bool()}
	})
	s.Rates = decodeRates(d)
	s.Declared = list(d, MaxDeclared, func() Declared {
		return Declared{Pool: DecodePool(d), Granted: d.units()}
	})
	s.DeclaredLast = d.Bool()
	return s
}

// Encode appends the batch.
func (b *Batch) Encode(e *Encoder) {
	e.Uint(b.Seq)
	e.Uint(b.Of)
	e.Uint(uint64(len(b.Usage)))
	for i := range b.Usage {
		b.Usage[i].Encode(e)
	}
	e.Uint(uint64(len(b.Returns)))
	for _, r := range b.Returns {
		r.Pool.Encode(e)
		e.Int(r.Units)
		e.Bool(r.Close)
	}
	e.Uint(uint64(len(b.Unresolved)))
	for _, u := range b.Unresolved {
		u.Encode(e)
	}
}

// DecodeBatch reads a batch.
func DecodeBatch(d *Decoder) *Batch {
	b := &Batch{Seq: d.number(), Of: d.number()}
	b.Usage = list(d, MaxUsage, func() Usage { return DecodeUsage(d) })
	b.Returns = list(d, MaxReturns, func() Return {
		return Return{Pool: DecodePool(d), Units: d.units(), Close: d.Bool()}
	})
	b.Unresolved = list(d, MaxUnresolved, func() Unresolved { return DecodeUnresolved(d) })
	return b
}

// Encode appends the row of usage.
func (u *Usage) Encode(e *Encoder) {
	e.Int(u.Account)
	e.Int(u.Key)
	e.Int(int64(u.Hour))
	e.Byte(byte(u.Endpoint))
	e.Byte(byte(u.Outcome))
	e.Int(u.Count)
}

// DecodeUsage reads a row of usage.
func DecodeUsage(d *Decoder) Usage {
	u := Usage{Account: d.subject(), Key: d.subject(), Hour: d.hour()}
	u.Endpoint, u.Outcome = charge.Endpoint(d.Byte()), charge.Outcome(d.Byte())
	//mutant:counts-not-bounded
	u.Count = d.between(-MaxCount, MaxCount)
	if u.Endpoint.String() == "unknown" || u.Outcome.String() == "unknown" || u.Count == 0 {
		d.Fail()
	}
	return u
}

// Encode appends the unresolved charge.
func (u *Unresolved) Encode(e *Encoder) {
	e.Text(u.ID)
	e.Int(u.Account)
	e.Int(u.Key)
	e.Int(u.AtMillis)
}

// DecodeUnresolved reads an unresolved charge.
func DecodeUnresolved(d *Decoder) Unresolved {
	u := Unresolved{ID: d.Text(charge.MaxID), Account: d.subject(), Key: d.subject(), AtMillis: d.millis()}
	if !charge.ValidID(u.ID) {
		d.Fail()
	}
	return u
}

// Encode appends the pool.
func (p Pool) Encode(e *Encoder) {
	e.Byte(byte(p.Kind))
	e.Int(p.Subject)
	e.Int(int64(p.Window))
}

// DecodePool reads a pool.
func DecodePool(d *Decoder) Pool {
	p := Pool{Kind: Kind(d.Byte()), Subject: d.subject(), Window: d.window()}
	if p.Kind < Credits || p.Kind > NotFound || (p.Kind == Credits) != (p.Window == 0) {
		d.Fail()
	}
	return p
}

const (
	// MaxUnits bounds every sum of credits, calls and lookups in a message, so that a few can be
	// added without overflow. Counts of usage, of which a message has many, have MaxCount.
	MaxUnits = math.MaxInt64 >> 16
	// maxID bounds the ids of accounts and keys: larger ones are no exact numbers in JSON.
	maxID = 1 << 53
	// lastHour is the last one of the year 9999: later ones have no text in answers (RFC 3339, section 5.6).
	lastHour = 70389527
	// firstMillis and lastMillis are the first and the last millisecond of the years 0 to 9999. Days and months outside
	// of them do not fit 32 bits: a time long ago could be read as one in any month.
	firstMillis = -62167219200000
	lastMillis  = (lastHour+1)*60*60*1000 - 1
)

// number reads the number of an epoch, a batch or a generation. It leaves room to count on,
// within the signed integers of a database.
func (d *Decoder) number() uint64 {
	n := d.Uint()
	if n > MaxUnits {
		d.Fail()
		return 0
	}
	return n
}

func (d *Decoder) units() int64   { return d.between(0, MaxUnits) }
func (d *Decoder) subject() int64 { return d.between(1, maxID) }
func (d *Decoder) window() int32  { return int32(d.between(0, math.MaxInt32)) }
func (d *Decoder) hour() int32    { return int32(d.between(0, lastHour)) }
func (d *Decoder) millis() int64  { return d.between(firstMillis, lastMillis) }

func encodeRates(e *Encoder, rates []Rate) {
	e.Uint(uint64(len(rates)))
	for _, r := range rates {
		e.Int(r.Subject)
		e.Int(r.Minute)
		e.Int(r.Count)
	}
}

func decodeRates(d *Decoder) []Rate {
	return list(d, MaxRates, func() Rate {
		return Rate{Subject: d.subject(), Minute: d.units(), Count: d.units()}
	})
}

// list reads a list of at most limit elements.
func list[T any](d *Decoder, limit int, element func() T) []T {
	n := d.Count(limit)
	if n == 0 {
		return nil
	}
	l := make([]T, 0, n)
	for range n {
		l = append(l, element())
		if d.Failed() {
			return nil
		}
	}
	return l
}
