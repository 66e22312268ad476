package importer

import (
	"encoding/binary"
	"errors"
)

// errCodec says that a record that was put aside can't be read again.
var errCodec = errors.New("a record that was put aside is damaged")

// appendKey appends the key by which records of a table are put in order: their columns
// with a zero byte between, which no column has.
func (r *record) appendKey(dst []byte) []byte {
	dst = append(dst, r.key[0]...)
	if len(r.table.key) > 1 {
		dst = append(append(dst, 0), r.key[1]...)
	}
	return dst
}

// appendPending appends what else there is of a record of a file. A column is 0 for NULL,
// 1 and a number, or the length of a text, which is never empty, plus 1, and the text. The
// raw row is kept only of a record that may come to be rejected for what it lacks.
func appendPending(dst []byte, file int, p *pending) []byte {
	dst = binary.AppendUvarint(dst, uint64(file))
	dst = binary.AppendUvarint(dst, uint64(p.line))
	for i := range p.values {
		switch v := &p.values[i]; v.kind {
		case null:
			dst = append(dst, 0)
		case number:
			dst = binary.AppendVarint(append(dst, 1), v.n)
		case text:
			dst = append(binary.AppendUvarint(dst, uint64(len(v.s))+1), v.s...)
		}
	}
	if !p.complete() {
		dst = append(dst, p.raw...)
	}
	return dst
}

// complete reports whether the record has all that a new one must have.
func (r *record) complete() bool {
	for _, c := range r.table.required {
		if r.values[c].kind == null {
			return false
		}
	}
	return true
}

// readPending is the inverse of appendKey and appendPending.
func readPending(t *table, key, content []byte) (p pending, file int, err error) {
	p.table = t
	p.key[0] = string(key)
	if len(t.key) > 1 {
		for i, c := range key {
			if c == 0 {
				p.key = [2]string{p.key[0][:i], p.key[0][i+1:]}
				break
			}
		}
	}
	d := decoder{rest: string(content)}
	file, p.line = int(d.uvarint()), int(d.uvarint())
	p.values = make([]value, len(t.columns))
	for i := range p.values {
		switch n := d.uvarint(); n {
		case 0:
		case 1:
			p.values[i] = numberValue(d.varint())
		default:
			p.values[i] = textValue(d.text(n - 1))
		}
	}
	p.raw = d.rest
	if d.failed {
		return pending{}, 0, errCodec
	}
	return p, file, nil
}

// decoder takes numbers and texts from the front of a text.
type decoder struct {
	rest   string
	failed bool
}

func (d *decoder) uvarint() (n uint64) {
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen64; i++ {
		c := d.rest[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			return n
		}
	}
	d.failed = true
	return 0
}

func (d *decoder) varint() int64 {
	n := d.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (d *decoder) text(length uint64) string {
	if length > uint64(len(d.rest)) {
		d.failed = true
		return ""
	}
	s := d.rest[:length]
	d.rest = d.rest[length:]
	return s
}
