package merge

import (
	"encoding/binary"
	"errors"

	"regedge/schema/importer/record"
)

// errCodec is returned for a sorted record that can't be decoded.
var errCodec = errors.New("a sorted record is damaged")

// appendKey appends the key by which records of a table are sorted: the columns of the
// primary key with a zero byte between, which no column contains.
func appendKey(dst []byte, r *record.Record) []byte {
	dst = append(dst, r.Key[0]...)
	if len(r.Table.Key) > 1 {
		dst = append(append(dst, 0), r.Key[1]...)
	}
	return dst
}

// appendEntry appends the rest of an entry. A column is 0 for NULL, 1 and an integer, or the
// length of a text plus 1 (a text is never empty) and the text. The raw row is kept only for
// an entry that may be rejected for a missing column.
func appendEntry(dst []byte, p *record.Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.File))
	dst = binary.AppendUvarint(dst, uint64(p.Line))
	for i := range p.Values {
		switch v := &p.Values[i]; v.Kind {
		case record.Null:
			dst = append(dst, 0)
		case record.Number:
			dst = binary.AppendVarint(append(dst, 1), v.Int)
		case record.Text:
			dst = append(binary.AppendUvarint(dst, uint64(len(v.Text))+1), v.Text...)
		}
	}
	if !p.Complete() {
		dst = append(dst, p.Raw...)
	}
	return dst
}

// readEntry is the inverse of appendKey and appendEntry.
func readEntry(t *record.Table, key, content []byte) (p record.Entry, err error) {
	p.Table = t
	p.Key[0] = string(key)
	if len(t.Key) > 1 {
		for i, c := range key {
			if c == 0 {
				p.Key = [2]string{p.Key[0][:i], p.Key[0][i+1:]}
				break
			}
		}
	}
	d := decoder{rest: string(content)}
	p.File, p.Line = int(d.uvarint()), int(d.uvarint())
	p.Values = make([]record.Value, len(t.Columns))
	for i := range p.Values {
		switch n := d.uvarint(); n {
		case 0:
		case 1:
			p.Values[i] = record.NumberOf(d.varint())
		default:
			p.Values[i] = record.TextOf(d.text(n - 1))
		}
	}
	p.Raw = d.rest
	if d.failed {
		return record.Entry{}, errCodec
	}
	return p, nil
}

// decoder reads integers and texts from the front of a text.
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
