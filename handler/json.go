package handler

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"regedge/handler/fastbytes"
)

// writer builds JSON text (RFC 8259). encoding/json is not used: it brings reflection
// into the component and costs more than the lookup itself.
type writer struct {
	buf []byte
	// damaged is set when a column was not of the form that the register keeps it in.
	damaged bool
}

func (w *writer) raw(s string) { fastbytes.Copy(w.room(len(s)), s) }

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
	start := len(w.buf)
	b := w.room(len(s) + 2)
	b[0] = '"'
	done := plain(b[1:], s)
	if done == len(s) {
		b[1+done] = '"'
		return
	}
	w.buf = w.buf[:start+1+done]
	w.escaped(s[done:])
	w.buf = append(w.buf, '"')
}

// room lengthens the text by n bytes and returns them.
func (w *writer) room(n int) []byte {
	start := len(w.buf)
	if cap(w.buf)-start < n {
		w.grow(n)
	}
	w.buf = w.buf[:start+n]
	return w.buf[start:]
}

// grow makes room for n more bytes. It stands by itself, since it is hardly ever needed.
//
//go:noinline
func (w *writer) grow(n int) { w.buf = slices.Grow(w.buf, n) }

// plain copies the beginning of s that is in JSON as it is: for most texts that is all of
// it. It returns how many bytes that is.
func plain(b []byte, s string) int {
	b = b[:len(s)]
	i := 0
	for ; i+fastbytes.Size <= len(s); i += fastbytes.Size {
		word := fastbytes.Load(s, i)
		if fastbytes.Special(word, '"', '\\') {
			return i
		}
		fastbytes.Store(b, i, word)
	}
	for ; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
		b[i] = c
	}
	return i
}

// escaped writes a string byte by byte.
func (w *writer) escaped(s string) {
	b, start := w.buf, 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
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
	w.buf = append(b, s[start:]...)
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
