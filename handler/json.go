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
	// damaged is set if a column does not have the form that the registry's schema promises.
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

// json writes a column that SQLite has made JSON of.
func (w *writer) json(v Value) { w.raw(v.Text) }

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

// room extends the text by n bytes and returns them.
func (w *writer) room(n int) []byte {
	start := len(w.buf)
	if cap(w.buf)-start < n {
		w.grow(n)
	}
	w.buf = w.buf[:start+n]
	return w.buf[start:]
}

// grow makes room for n more bytes. Not inlined: cold path.
//
//go:noinline
func (w *writer) grow(n int) { w.buf = slices.Grow(w.buf, n) }

// plain copies the longest beginning of s that needs no escapes, for most texts all of it, and
// returns its length in bytes.
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

// field is one member of an object: its name with the punctuation around it, and how its
// column is written.
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

// The first and last second of the years that a timestamp can have, 0 to 9999.
const (
	firstSecond = -62167219200
	lastSecond  = 253402300799
)

// timestamp writes a column of Unix seconds as "YYYY-MM-DDTHH:MM:SSZ" (RFC 3339), or
// null. SQLite's strftime takes longer than reading the rest of the row.
func (w *writer) timestamp(v Value) {
	switch {
	case v.Kind == Null:
		w.raw("null")
		return
	case v.Kind != Integer || v.Int < firstSecond || v.Int > lastSecond:
		w.damaged = true
		return
	}
	const secondsOfDay = 24 * 60 * 60
	since := v.Int - firstSecond
	year, month, day := date(int(since / secondsOfDay))
	second := int(since % secondsOfDay)
	b := w.room(len(`"YYYY-MM-DDTHH:MM:SSZ"`))
	copy(b, `"YYYY-MM-DDTHH:MM:SSZ"`)
	putPair(b, 1, year/100)
	putPair(b, 3, year%100)
	putPair(b, 6, month)
	putPair(b, 9, day)
	putPair(b, 12, second/3600)
	putPair(b, 15, second/60%60)
	putPair(b, 18, second%60)
}

// putPair writes a number below 100 as two digits.
func putPair(b []byte, at, n int) { b[at], b[at+1] = byte('0'+n/10), byte('0'+n%10) }

// date converts a number of days since 1 January of the year 0 to a date of the Gregorian
// calendar.
func date(days int) (year, month, day int) {
	const daysOf400Years = 146097
	// This estimate, by the mean length of a year, is at most one off.
	for year = days * 400 / daysOf400Years; daysBefore(year) > days; {
		year--
	}
	for daysBefore(year+1) <= days {
		year++
	}
	day = days - daysBefore(year) + 1
	lengths := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if daysBefore(year+1)-daysBefore(year) == 366 {
		lengths[1] = 29
	}
	for month = 1; day > lengths[month-1]; month++ {
		day -= lengths[month-1]
	}
	return year, month, day
}

// daysBefore is the number of days from the year 0, a leap year, to the start of a year.
func daysBefore(year int) int {
	return year*365 + (year+3)/4 - (year+99)/100 + (year+399)/400
}
