package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

const (
	// maxRowBytes is the limit of one row. The longest real one is under 1 KB.
	maxRowBytes = 64 << 10
	// maxRowLines is the limit of lines in one row, so that an unclosed quote costs only that
	// row and not the rest of the file.
	maxRowLines = 16
)

// endOfDOS ends a file of CP/M and DOS, and of programs that still write for them. Some fill a block with it.
const endOfDOS = "\x1a"

var (
	errRowTooLong = errors.New("row too long")
	errOpenQuote  = errors.New("quote never closed")
)

// row is one record of a CSV file.
type row struct {
	line   int    // of its first line, from 1
	raw    string // without the line's end
	fields []string
}

// rowReader splits a CSV file into rows (RFC 4180, LF or CRLF; other separators too). encoding/csv is not
// enough: a reject needs the raw row, the size of a row must be limited, and a stray quote must not swallow
// the rows after it.
type rowReader struct {
	in        *bufio.Reader
	separator byte     // between fields
	columns   int      // of the header, 0 until it was read
	needed    int      // minimum number of fields in a row
	isPadded  bool     // semicolons follow the header, see withoutRowQuotes
	line      int      // lines taken from in
	rows      int      // rows, blank ones too
	cutOff    bool     // the line taken last has no end
	queue     []line   // lines read ahead, to be read again
	fields    []string // reused by splitFields
}

// line is the result of readLine.
type line struct {
	text   string
	err    error
	cutOff bool
}

func newRowReader(in io.Reader) *rowReader {
	return &rowReader{in: bufio.NewReaderSize(in, 256<<10), separator: ','}
}

// next returns the next row that is not blank. Its fields are valid until the next call. The
// error is io.EOF at the end, or that of the source. For a row that can't be split it is
// errRowTooLong or errOpenQuote, with the row's line and its beginning; the next call
// continues after it.
func (r *rowReader) next() (row, error) {
	for {
		text, err := r.readLine()
		first := r.line
		if err != nil {
			return row{line: first, raw: text}, err
		}
		r.rows++
		if separator, open := r.opened(text); open {
			text, err = r.joinQuoted(text, separator)
			if err != nil && r.isPadded && isOpen(text, r.separator, cutToQuote) { // the row was not split
				separator = r.separator
				text, err = r.joinQuoted(text, separator)
			}
			if err != nil && separator == r.separator {
				return row{line: first, raw: text}, err
			}
		} else if r.columns > 0 && strings.Contains(text, ` "`) && isOpen(text, r.separator, cutBlanks) {
			cutOff := r.cutOff
			if text, err = r.joinQuoted(text, r.separator); err != nil { // the quote is a part of the value
				r.cutOff = cutOff
			}
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if r.columns > 0 {
			text = withoutRowQuotes(text, r.separator, r.isPadded)
		}
		r.fields = splitFields(text, r.separator, r.fields[:0])
		return row{line: first, raw: text, fields: r.fields}, nil
	}
}

// withoutRowQuotes returns the row that is all of a quoted value. A spreadsheet that expects another separator leaves all columns in one,
// and puts a row with quotes in it in quotes. If it expects semicolons and a value has some, it splits the row there, and gives all rows,
// which are then padded, the same number of semicolons.
func withoutRowQuotes(text string, separator byte, isPadded bool) string {
	if isPadded {
		if body, quoted := strings.CutPrefix(text, `"`); !quoted || closesField(body, ';') {
			text = strings.Join(splitFields(text, ';', nil), ";")
		}
		return strings.TrimRight(text, "; ")
	}
	if body, quoted := strings.CutPrefix(strings.TrimRight(text, " "), `"`); quoted && strings.HasSuffix(body, `"`) {
		if end, _, _ := closingQuote(body, separator); end == len(body)-1 && strings.IndexByte(body, separator) >= 0 {
			return splitFields(`"`+body, separator, nil)[0]
		}
	}
	return text
}

// hasColumns reports whether a row has the fields that are needed, and nothing after the last column.
func (r *rowReader) hasColumns(text string) bool {
	fields := splitFields(withoutRowQuotes(text, r.separator, r.isPadded), r.separator, nil)
	return r.columns == 0 ||
		len(fields) >= r.needed && strings.TrimSpace(strings.Join(fields[min(r.columns, len(fields)):], "")) == ""
}

// joinQuoted adds lines to a row until its quoted field is closed. If the field never closes, or the row then does not
// fit the header, or the closing quote does not end the field, then the quote was a stray one: the lines after the
// first are queued, to be read as rows of their own. So was one with a blank before it if a line after it may be a row.
func (r *rowReader) joinQuoted(first string, separator byte) (string, error) {
	start, text, ahead := r.line, first, []line(nil)
	begin := cutToQuote
	body, isQuoted := openField(first, separator, begin)
	if !isQuoted {
		begin = cutBlanks
		body, _ = openField(first, separator, begin)
	}
	for len(ahead) < maxRowLines-1 && len(text) < maxRowBytes {
		next, err := r.readLine()
		ahead = append(ahead, line{next, err, r.cutOff})
		if err != nil || !isQuoted && len(splitFields(next, separator, nil)) >= r.needed {
			break
		}
		text += "\n" + next
		body += "\n" + next
		if still, open := openField(text, separator, begin); open {
			body = still
			continue
		}
		if r.isPadded {
			body = strings.TrimRight(body, "; ")
		}
		if !r.hasColumns(text) || !closesField(body, separator) {
			break
		}
		return text, nil
	}
	r.queue = append(ahead, r.queue...)
	r.line = start
	return first, errOpenQuote
}

// readLine returns one line without its end. For a line over maxRowBytes it returns the
// beginning, and errRowTooLong.
func (r *rowReader) readLine() (string, error) {
	if len(r.queue) > 0 {
		next := r.queue[0]
		r.queue, r.cutOff = r.queue[1:], next.cutOff
		if next.err == nil || next.err == errRowTooLong {
			r.line++
		}
		return next.text, next.err
	}
	var long []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if err == bufio.ErrBufferFull || len(long) > 0 {
			long = append(long, part[:min(len(part), maxRowBytes+1-min(len(long), maxRowBytes))]...)
			if err == bufio.ErrBufferFull {
				continue
			}
			part = long
		}
		if err != nil && (err != io.EOF || len(part) == 0) {
			return "", err
		}
		r.line++
		r.cutOff = err == io.EOF && !bytes.HasSuffix(part, []byte(endOfDOS))
		part = bytes.TrimPrefix(part, utf8Mark) // the mark of another file that was appended
		if len(part) > maxRowBytes {
			return string(part[:200]), errRowTooLong
		}
		return string(bytes.TrimRight(part, "\r\n"+endOfDOS)), nil
	}
}

// opened reports whether a row ends within a quoted field, and with which separator. Until the header is known, a row
// without the usual separator may have any other. Padded rows that begin with a quote may have semicolons between what is in quotes.
func (r *rowReader) opened(text string) (separator byte, open bool) {
	if r.isPadded && strings.HasPrefix(text, `"`) {
		return ';', isOpen(text, ';', cutToQuote)
	}
	if r.columns > 0 || strings.IndexByte(text, r.separator) >= 0 || isOpen(text, r.separator, cutToQuote) {
		return r.separator, isOpen(text, r.separator, cutToQuote)
	}
	for _, other := range []byte(separators) {
		if isOpen(text, other, cutToQuote) {
			return other, true
		}
	}
	return r.separator, false
}

// isOpen reports whether a row ends within a quoted field. A quote inside an unquoted field opens none.
func isOpen(text string, separator byte, begin func(string, byte) string) bool {
	_, open := openField(text, separator, begin)
	return open
}

// cutBlanks is cutToQuote also for a quoted field that does not end in the row.
func cutBlanks(text string, _ byte) string {
	if field := strings.TrimLeft(text, " "); strings.HasPrefix(field, `"`) {
		return field
	}
	return text
}

// openField returns the quoted field within which a row ends, from its quote on. begin cuts off what may stand before a quote.
func openField(text string, separator byte, begin func(string, byte) string) (body string, open bool) {
	for strings.IndexByte(text, '"') >= 0 {
		if body, quoted := strings.CutPrefix(begin(text, separator), `"`); quoted {
			rest, closed := afterQuote(body, separator)
			if !closed {
				return body, true
			}
			text = rest
		}
		_, rest, more := strings.Cut(text, string(separator))
		if !more {
			break
		}
		text = rest
	}
	return "", false
}

// closesField reports whether the quoted field with which body begins ends at its closing quote: a separator or
// nothing must follow. Otherwise two stray quotes in the same column of two rows would join the rows.
func closesField(body string, separator byte) bool {
	rest, closed := afterQuote(body, separator)
	rest = strings.TrimLeft(rest, " ")
	return closed && (rest == "" || rest[0] == separator)
}

// afterQuote returns what follows the closing quote of a quoted field, of which body follows the opening one.
func afterQuote(body string, separator byte) (rest string, closed bool) {
	end, _, _ := closingQuote(body, separator)
	return body[min(end+1, len(body)):], end < len(body)
}

// closingQuote finds the quote that ends a quoted field, of which body follows the opening one, or len(body). A quote within the field
// is doubled, or escaped as \", as some databases export it. One behind a backslash and before a separator could be either, and ends
// the field. Two behind a backslash are a doubled one, unless the field has escaped ones and ends there: "A \"B\"".
func closingQuote(body string, separator byte) (end int, doubled, escaped bool) {
	for {
		n := strings.IndexByte(body[end:], '"')
		if n < 0 {
			return len(body), doubled, escaped
		}
		end += n
		rest, isBehind := body[end+1:], strings.HasSuffix(body[:end], `\`)
		switch {
		case strings.HasPrefix(rest, `"`) && !(isBehind && escaped && isEnd(rest[1:], separator)):
			doubled = true
			end += 2
		case isBehind && !isEnd(rest, separator):
			escaped = true
			end++
		default:
			return end, doubled, escaped
		}
	}
}

// isEnd reports whether nothing of a field is left.
func isEnd(rest string, separator byte) bool {
	return rest == "" || rest[0] == separator || rest[0] == '\r' || rest[0] == '\n'
}

// splitFields appends the fields of a row to fields. A quoted field loses its quotes; a
// quote inside an unquoted field, or text after a closing quote, is kept.
func splitFields(text string, separator byte, fields []string) []string {
	for {
		if text = cutToQuote(text, separator); strings.HasPrefix(text, `"`) {
			field, rest, more := quotedField(text, separator)
			fields = append(fields, field)
			if !more {
				return fields
			}
			text = rest
			continue
		}
		end := strings.IndexByte(text, separator)
		if end < 0 {
			return append(fields, text)
		}
		fields = append(fields, text[:end])
		text = text[end+1:]
	}
}

// cutToQuote cuts off the blanks before a quoted field, as programs that write a blank after each separator leave them. Only
// where the quotes enclose all of the field are they no part of it.
func cutToQuote(text string, separator byte) string {
	if !strings.HasPrefix(text, " ") {
		return text
	}
	field := strings.TrimLeft(text, " ")
	if body, quoted := strings.CutPrefix(field, `"`); quoted && closesField(body, separator) {
		return field
	}
	return text
}

// quotedField splits off the quoted field at the beginning of text. rest is what follows its
// separator; more is false for the last field of the row.
func quotedField(text string, separator byte) (field, rest string, more bool) {
	body := text[1:]
	end, doubled, escaped := closingQuote(body, separator)
	field = body[:end]
	if escaped {
		field = strings.ReplaceAll(field, `\"`, `"`)
	}
	if doubled {
		field = strings.ReplaceAll(field, `""`, `"`)
	}
	rest = body[min(end+1, len(body)):]
	if end = strings.IndexByte(rest, separator); end >= 0 {
		return field + rest[:end], rest[end+1:], true
	}
	return field + rest, "", false
}
