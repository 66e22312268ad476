package syncproto

// Encode is the binary form of the reply.
func (r *Reply) Encode() []byte {
	var e Encoder
	e.Byte(head(kindReply))
	e.Uint(r.Answers)
	e.Byte(byte(r.Status))
	e.Uint(r.Session)
	e.Uint(r.Epoch)
	e.Uint(r.Generation)
	e.Uint(r.Applied)
	e.Uint(r.Since)
	e.Uint(r.Upto)
	e.Uint(uint64(len(r.Rows)))
	for i := range r.Rows {
		r.Rows[i].Encode(&e)
	}
	encodeRates(&e, r.Others)
	e.Int(r.Live)
	e.Int(r.NowMillis)
	e.Bool(r.Declare)
	return e.Bytes
}

// DecodeReply reads a reply of at most MaxMessage bytes. Values that an edge repeats in its messages have
// the bounds of messages, or the writer would refuse these for ever. Its errors are ErrMalformed, and
// ErrVersion for a reply that only a newer program can read.
func DecodeReply(b []byte) (*Reply, error) {
	d := NewDecoder(b)
	kind, newer, err := d.readHead()
	if err != nil {
		return nil, err
	}
	if len(b) > MaxMessage || kind != kindReply {
		return nil, ErrMalformed
	}
	r := &Reply{
		Answers: d.Uint(), Status: Status(d.Byte()), Session: d.Uint(), Epoch: d.number(), Generation: d.number(),
		Applied: d.number(), Since: d.Uint(), Upto: d.Uint(),
	}
	r.Rows = list(d, MaxRows, func() Row { return DecodeRow(d) })
	r.Others = decodeRates(d)
	r.Live, r.NowMillis, r.Declare = d.between(1, MaxUnits), d.units(), d.Bool()
	if r.Status < OK || r.Status > Retired || r.Since > r.Upto {
		d.Fail()
	}
	if newer {
		d.skipRest()
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// Flags of an encoded row.
const (
	rowRecall = 1 << iota
	rowDry
)

// Encode appends the row.
func (r *Row) Encode(e *Encoder) {
	e.Uint(r.Version)
	r.Pool.Encode(e)
	e.Int(r.Granted)
	e.Int(r.UntilMillis)
	flags := byte(0)
	if r.Recall {
		flags |= rowRecall
	}
	if r.Dry {
		flags |= rowDry
	}
	e.Byte(flags)
	e.Int(r.Balance)
}

// DecodeRow reads a row.
func DecodeRow(d *Decoder) Row {
	r := Row{Version: d.Uint(), Pool: DecodePool(d), Granted: d.units(), UntilMillis: d.Int()}
	flags := d.Byte()
	if flags > rowRecall|rowDry {
		d.Fail()
	}
	r.Recall, r.Dry = flags&rowRecall != 0, flags&rowDry != 0
	r.Balance = d.Int()
	return r
}
