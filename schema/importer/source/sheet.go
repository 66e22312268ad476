package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"regedge/schema/importer/record"
)

// sheet reads one CSV file row by row and turns the rows into records.
type sheet struct {
	format  *format
	places  []int
	header  []string
	rows    *rowReader
	above   int      // rows above the header
	ahead   *rowRead // the first row after the header, until run takes it
	dates   dateReader
	likely  likelihood
	fields  []string // of the current row, UTF-8
	out     *outlet
	offices *Offices
}

// rowRead is the result of rowReader.next.
type rowRead struct {
	row
	err error
}

// separators are tried in this order. Spreadsheets of countries with a decimal comma write semicolons.
const separators = ",;\t|"

// newSheet looks for the header and recognises separator and format by it. A file without a row after
// its header is an error: nobody wants to import nothing.
func newSheet(in io.Reader, asOf string, out *outlet, offices *Offices) (*sheet, error) {
	s := &sheet{rows: newRowReader(in), dates: dateReader{asOf, new(dateOrder)}, out: out, offices: offices}
	first, err := s.rows.next()
	if errors.Is(err, io.EOF) {
		return nil, errEmpty
	}
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	if err := s.takeHeader(first.raw); err != nil {
		if err = s.seekHeader(first.raw, err); err != nil {
			return nil, err
		}
	}
	next, err := s.rows.next()
	if errors.Is(err, io.EOF) {
		return nil, errOnlyHeader
	}
	s.ahead = &rowRead{next, err}
	return s, nil
}

// takeHeader recognises a row as the header.
func (s *sheet) takeHeader(raw string) (err error) {
	for _, separator := range []byte(separators) {
		header := columnNames(raw, separator)
		format, places, unknown := recognise(header)
		if unknown == nil || separator == separators[0] {
			s.header, s.format, s.places, err = header, format, places, unknown
		}
		if unknown == nil {
			s.rows.separator, s.rows.columns, s.rows.needed = separator, len(header), needed(places, format.blankEnd)
			s.rows.isPadded = isPadded(raw, separator)
			if at := places[fieldDate]; at >= 0 {
				s.dates.order.form = formOf(header[at])
			}
			break
		}
	}
	return err
}

// isPadded reports whether semicolons follow a header with commas.
func isPadded(header string, separator byte) bool {
	return separator == ',' && strings.HasSuffix(strings.TrimRight(header, " "), ";")
}

// columnNumber matches the number that some lists have before the name of each column: "1. CIN", "(2) Company Name".
var columnNumber = regexp.MustCompile(`^\s*(\(\d{1,2}\)|\d{1,2}[.)])`)

// columnNames splits a header, and leaves out the numbers of the columns if all have one.
func columnNames(raw string, separator byte) []string {
	header := toUTF8(splitFields(withoutRowQuotes(sheetLineEnds.Replace(raw), separator, isPadded(raw, separator)), separator, nil))
	if slices.ContainsFunc(header, func(name string) bool { return strings.TrimSpace(name) != "" && !columnNumber.MatchString(name) }) {
		return header
	}
	for i, name := range header {
		header[i] = columnNumber.ReplaceAllString(name, "")
	}
	return header
}

// maxAbove is how many rows may stand above a header: a title, the date of a report, Excel's "sep=,".
const maxAbove = 20

// seekHeader looks for the header after the first row, which is not a header because of err. The rows
// above the header must not be data: they fill less than half of its columns. Without a header it
// returns the most helpful error.
func (s *sheet) seekHeader(first string, err error) error {
	above := []string{first}
	for len(above) <= maxAbove {
		r, end := s.rows.next()
		if end != nil {
			return err
		}
		if len(above) > 1 && !mayBeHeader(r.raw) {
			above = append(above, r.raw)
			continue
		}
		unknown := s.takeHeader(r.raw)
		if unknown == nil {
			if slices.ContainsFunc(above, s.mayBeData) {
				return fmt.Errorf("%w; line %d is a header: if the rows above it are no data, remove them", err, r.line)
			}
			s.above = len(above)
			return nil
		}
		if near, _ := nearest(s.header); near != nil && len(above) == 1 && errors.Is(err, errHeader) {
			err = unknown
		}
		above = append(above, r.raw)
	}
	return err
}

// mayBeData reports whether a row above the header fills at least half of its columns.
func (s *sheet) mayBeData(raw string) bool {
	filled := 0
	for _, field := range splitFields(raw, s.rows.separator, nil) {
		if strings.TrimSpace(field) != "" {
			filled++
		}
	}
	return 2*filled >= len(s.header)
}

func (s *sheet) next() (row, error) {
	if ahead := s.ahead; ahead != nil {
		s.ahead = nil
		return ahead.row, ahead.err
	}
	return s.rows.next()
}

// run reads to the end of the file. It returns the first error of the source or the outlet; a
// rejected row is not an error.
func (s *sheet) run() error {
	for range s.above {
		if err := s.out.leaveOut("row above the header"); err != nil {
			return err
		}
	}
	for {
		r, err := s.next()
		s.fields = toUTF8(r.fields)
		switch {
		case errors.Is(err, io.EOF):
			if err := s.dates.order.check(); err != nil {
				return err
			}
			return s.likely.check(s)
		case errors.Is(err, errRowTooLong), errors.Is(err, errOpenQuote):
			err = &rejection{err.Error(), ""}
		case err != nil:
			return fmt.Errorf("read after line %d: %w", r.line, err)
		case strings.IndexByte(r.raw, 0) >= 0:
			err = &rejection{"zero bytes", "the row is damaged"}
		default:
			err = s.takeRow(r)
			if _, left := errors.AsType[*omission](err); err != nil && !left {
				err = cmp.Or(s.asHeader(r), err)
			}
		}
		if err := s.settle(r, err); err != nil {
			return err
		}
		if err := s.out.ended(len(r.raw)); err != nil {
			return err
		}
	}
}

// takeRow turns the current row into a record and sends it on.
func (s *sheet) takeRow(r row) error {
	if !slices.ContainsFunc(s.fields, func(field string) bool { return strings.TrimSpace(field) != "" }) {
		return &omission{"empty row"}
	}
	if !s.fits() && s.rows.cutOff && len(s.fields) < len(s.header) {
		return &rejection{"row cut off", "the file ends within it"}
	}
	if !s.fits() {
		return &rejection{"wrong number of fields", fmt.Sprintf("%d, the header has %d", len(s.fields), len(s.header))}
	}
	rec, err := s.format.take(s)
	if err != nil {
		return err
	}
	if rec.Table != nil {
		return s.out.record(r.line, rec, s.keep(r))
	}
	return nil
}

// asHeader returns an omission for a row that repeats the header, and nil for a row that is not a header. For the
// header of another list, whose values are in other columns, it returns the error that ends the file.
func (s *sheet) asHeader(r row) error {
	if slices.EqualFunc(columnNames(r.raw, s.rows.separator), s.header, sameColumn) {
		return &omission{"repeated header"}
	}
	if countDigits(r.raw) > maxHeaderDigits || !mayBeHeader(r.raw) {
		return nil // nearly all rows, but no header
	}
	for _, separator := range []byte(separators) {
		format, places, err := recognise(columnNames(r.raw, separator))
		switch {
		case err != nil:
			continue
		case separator == s.rows.separator && format == s.format && slices.Equal(places, s.places):
			return &omission{"repeated header"}
		}
		return fmt.Errorf("line %d is the header of another list, with its columns in other places: import the two as files of their own", r.line)
	}
	return nil
}

// maxHeaderDigits is more digits than the columns of a header have, such as in Address1, and less than a record's
// identifier and date have.
const maxHeaderDigits = 12

func countDigits(s string) (n int) {
	for _, c := range []byte(s) {
		if '0' <= c && c <= '9' {
			n++
		}
	}
	return n
}

// sameColumn reports whether two names of columns mean the same.
func sameColumn(a, b string) bool { return squash(a) == squash(b) }

// settle counts a row that did not become a record. Any other error ends the file.
func (s *sheet) settle(r row, err error) error {
	if err == nil {
		return nil
	}
	var refused *rejection
	var left *omission
	switch {
	case errors.As(err, &refused):
		return s.out.reject(record.Reject{Line: r.line, Reason: refused.reason, Detail: refused.detail, Raw: s.keep(r)})
	case errors.As(err, &left):
		return s.out.leaveOut(left.reason)
	}
	return err
}

// fits reports whether the row has a field for every column that is read, blankEnd aside, and nothing after the last
// column.
func (s *sheet) fits() bool {
	if len(s.fields) < s.rows.needed || s.rows.cutOff && len(s.fields) < needed(s.places, onlyChecked) {
		return false
	}
	for i := len(s.header); i < len(s.fields); i++ {
		if strings.TrimSpace(s.fields[i]) != "" {
			return false
		}
	}
	return true
}

// get returns a field of the current row, percent-decoded, without entities, the blanks around it, the mark of a text, and quotes around all of it, as a list has that was
// exported twice; "" if the file
// has no such column or the row lacks it. The formula ="text", which makes a spreadsheet keep text unchanged, is read as
// that text.
func (s *sheet) get(f field) string {
	value := withoutEntities(percentDecoded(strings.TrimSpace(s.cell(f))))
	if strings.Contains(value, "_x000") {
		value = sheetLineEnds.Replace(value)
	}
	value = strings.TrimSpace(value)
	if s.hasMark(value) {
		value = value[1:]
	}
	value = withoutQuotes(value, "")
	return withoutQuotes(value, "=")
}

// withoutQuotes returns what is in quotes, if all of a value is that behind a sign.
func withoutQuotes(value, sign string) string {
	text, isQuoted := strings.CutPrefix(value, sign+`"`)
	text, isClosed := strings.CutSuffix(text, `"`)
	if !isQuoted || !isClosed || text == "" || strings.Contains(strings.ReplaceAll(text, `""`, ""), `"`) {
		return value
	}
	return strings.ReplaceAll(text, `""`, `"`)
}

// sheetLineEnds turns the escape of a line end in XLSX (ISO/IEC 29500-1, ST_Xstring) into a blank. Some programs leave it in texts.
var sheetLineEnds = strings.NewReplacer("_x000D_", " ", "_x000d_", " ")

// cell returns a field of the current row as it is there.
func (s *sheet) cell(f field) string {
	i := s.places[f]
	if i < 0 || i >= len(s.fields) {
		return ""
	}
	return s.fields[i]
}

// hasMark reports whether a value begins with an apostrophe that marks it as a text: before a sign that begins a formula, or where the
// row's required texts have one too. Any other may be part of the value.
func (s *sheet) hasMark(value string) bool {
	if len(value) < 2 || value[0] != '\'' {
		return false
	}
	return strings.IndexByte("=+-@", value[1]) >= 0 || !slices.ContainsFunc(s.format.required, func(f field) bool {
		cell := strings.TrimSpace(s.cell(f))
		return cell != "" && cell[0] != '\'' && f != fieldDate && f != fieldDisqualified
	})
}

// column is the name of a field's column, to show in the reject of a value.
func (s *sheet) column(f field) string { return cut(clean(s.header[s.places[f]]), maxColumnShown) }

// maxColumnShown is how much of a column's name a reject shows, in bytes.
const maxColumnShown = 40

// notKept replaces a raw row in the rejects file that may have personal contacts.
const notKept = "(not kept: the row may hold personal contact details)"

// maxKept bounds the part of a rejected row that is kept, in bytes, since rejects queue in batches.
const maxKept = 4000

// keep returns the part of a row that the rejects file may contain, truncated: in a personal format
// only the columns that are read, since others may be contacts.
func (s *sheet) keep(r row) string {
	if s.format.personal && (r.fields == nil || !s.fits()) {
		return notKept
	}
	if !s.format.personal || !s.hasStrangers() {
		return cut(toUTF8([]string{r.raw})[0], maxKept)
	}
	kept := make([]string, len(s.header))
	for _, place := range s.places {
		if place >= 0 && place < len(s.fields) {
			kept[place] = s.fields[place]
		}
	}
	return cut(JoinFields(kept), maxKept)
}

// hasStrangers reports whether the header has columns that are not read.
func (s *sheet) hasStrangers() bool {
	known := 0
	for _, place := range s.places {
		if place >= 0 {
			known++
		}
	}
	return known < len(s.header)
}

// JoinFields writes fields as one row of CSV.
func JoinFields(fields []string) string {
	quoted := make([]string, len(fields))
	for i, f := range fields {
		if strings.ContainsAny(f, ",\"\r\n") {
			f = `"` + strings.ReplaceAll(f, `"`, `""`) + `"`
		}
		quoted[i] = f
	}
	return strings.Join(quoted, ",")
}

// toUTF8 decodes fields that are not UTF-8 in place, as Windows-1252, which includes the
// printable characters of Latin-1.
func toUTF8(fields []string) []string {
	for i, f := range fields {
		if !utf8.ValidString(f) {
			decoded, err := charmap.Windows1252.NewDecoder().String(f)
			if err != nil {
				decoded = strings.ToValidUTF8(f, "\uFFFD")
			}
			fields[i] = decoded
		}
	}
	return fields
}
