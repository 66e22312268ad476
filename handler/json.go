package handler

import (
	"strconv"
	"unicode/utf8"
)

// writer builds JSON text (RFC 8259). encoding/json is not used: it brings reflection
// into the component and costs more than the lookup itself.
type writer struct {
	buf []byte
	// damaged is set when a column was not of the form that the register keeps it in.
	damaged bool
}

func (w *writer) raw(s string) { w.buf = append(w.buf, s...) }

func (w *writer) integer(n int64) { w.buf = strconv.AppendInt(w.buf, n, 10) }

// value writes a column: null, a number, or a string.
func (w *writer) value(v Value) {
	switch v.Kind {
	case Null:
		w.raw("null")
	case Integer:
		w.integer(v.Int)
	default:
		w.text(v.Text)
	}
}

// textOrNull writes a string, or null for the empty one.
func (w *writer) textOrNull(s string) {
	if s == "" {
		w.raw("null")
		return
	}
	w.text(s)
}

// boolean writes a column of 0 and 1, or null.
func (w *writer) boolean(v Value) {
	switch {
	case v.Kind == Null:
		w.raw("null")
	case v.Int != 0:
		w.raw("true")
	default:
		w.raw("false")
	}
}

// text writes a string. Bytes that are not UTF-8 become U+FFFD.
func (w *writer) text(s string) {
	b := append(w.buf, '"')
	start := 0
	for i := plain(s, 0); i < len(s); i = plain(s, i) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(b, s[start:i]...)
			b = appendEscape(b, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\uFFFD"...)
			start = i + 1
		}
		i += size
	}
	b = append(b, s[start:]...)
	w.buf = append(b, '"')
}

// plain returns the first place from i on that may need more than copying, or is within
// eight bytes of the end. It looks at eight bytes at once, which the component is glad of:
// most texts are plain.
func plain(s string, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		v := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := v^ones*'"', v^ones*'\\'
		// A top bit is set for a byte that is not ASCII, is below a space, or is one of
		// the two; and, at times, for one next to such a byte.
		if (v|(v-ones*' ')|(quote-ones)|(slash-ones))&tops != 0 {
			break
		}
	}
	return i
}

// appendEscape writes a quotation mark, a backslash or a control character.
func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// field is one member of an object: its name with the punctuation around it, as it
// stands in the text, and how its column is written.
type field struct {
	name  string
	write func(*writer, Value)
}

// fields writes one member for each column, in order.
func (w *writer) fields(list []field, columns []Value) {
	for i := range list {
		w.raw(list[i].name)
		list[i].write(w, columns[i])
	}
}
