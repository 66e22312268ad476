package syncproto

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is returned for bytes that no encoder of this package wrote.
var ErrMalformed = errors.New("malformed sync message")

// Encoder appends encoded values to Bytes.
type Encoder struct{ Bytes []byte }

// Uint appends a number.
func (e *Encoder) Uint(n uint64) { e.Bytes = binary.AppendUvarint(e.Bytes, n) }

// Int appends a number that may be negative.
func (e *Encoder) Int(n int64) { e.Bytes = binary.AppendVarint(e.Bytes, n) }

// Byte appends one byte.
func (e *Encoder) Byte(b byte) { e.Bytes = append(e.Bytes, b) }

// Bool appends a boolean.
func (e *Encoder) Bool(b bool) {
	if b {
		e.Byte(1)
	} else {
		e.Byte(0)
	}
}

// Text appends a string with its length in front.
func (e *Encoder) Text(s string) {
	e.Uint(uint64(len(s)))
	e.Bytes = append(e.Bytes, s...)
}

// Decoder reads what an Encoder wrote. After the first error every read returns zero.
type Decoder struct {
	rest   []byte
	failed bool
}

// NewDecoder makes a decoder of b.
func NewDecoder(b []byte) *Decoder { return &Decoder{rest: b} }

// Err returns ErrMalformed after a failed read, or when bytes are left over.
func (d *Decoder) Err() error {
	if d.failed || len(d.rest) > 0 {
		return ErrMalformed
	}
	return nil
}

// Failed reports whether a read failed.
func (d *Decoder) Failed() bool { return d.failed }

// Fail makes the decoder fail, for a value that is out of range.
func (d *Decoder) Fail() { d.failed, d.rest = true, nil }

// Uint reads a number. It must be in its shortest form.
func (d *Decoder) Uint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || size > 1 && d.rest[size-1] == 0 {
		d.Fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// Int reads a number that may be negative.
func (d *Decoder) Int() int64 {
	n := d.Uint()
	v := int64(n >> 1)
	if n&1 != 0 {
		v = ^v
	}
	return v
}

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if len(d.rest) == 0 {
		d.Fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

// Bool reads a boolean.
func (d *Decoder) Bool() bool {
	b := d.Byte()
	if b > 1 {
		d.Fail()
	}
	return b == 1
}

// Text reads a string of at most limit bytes.
func (d *Decoder) Text(limit int) string {
	n := d.Uint()
	if n > uint64(limit) || n > uint64(len(d.rest)) {
		d.Fail()
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// Count reads the length of a list of at most limit elements of at least one byte each.
func (d *Decoder) Count(limit int) int {
	n := d.Uint()
	if n > uint64(limit) || n > uint64(len(d.rest)) {
		d.Fail()
		return 0
	}
	return int(n)
}

// between reads a number from low to high.
func (d *Decoder) between(low, high int64) int64 {
	n := d.Int()
	if n < low || n > high {
		d.Fail()
		return 0
	}
	return n
}
