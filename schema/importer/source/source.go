package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
)

var (
	errEmpty       = errors.New("the file is empty: was it fetched whole, or an empty sheet exported?")
	errDirectory   = errors.New("is a directory: name the files in it, such as DIR/*.csv.gz")
	errSpreadsheet = errors.New(`is a spreadsheet or a zip archive: unpack it, or save the sheet with the list as "CSV UTF-8" (Excel) or "Text CSV" (LibreOffice), with dates as YYYY-MM-DD`)
	errPacked      = errors.New("is packed in a way that is not read: unpack it, or pack it with gzip or zstd")
	errPackedTwice = errors.New("was compressed twice: uncompress it once")
	errDatabase    = errors.New("is a database: export its table as CSV in UTF-8")
	errWindow      = errors.New("the window of its compression is over 128 MiB: unpack it, or pack it without zstd --long")
	errTar         = errors.New("is a tar archive: unpack it and import the files in it")
	errUTF16       = errors.New("is UTF-16 text without a byte order mark: save it as CSV in UTF-8")
	errUTF32       = errors.New("is UTF-32 text: save it as CSV in UTF-8")
	errPage        = errors.New("is a web page or XML, not a list: was the download refused? Fetch it as CSV, or, if a spreadsheet opens it, save it there as CSV")
	errMail        = errors.New("is a web page that a browser saved, not a list: open it, and save its table as CSV in UTF-8")
	errPDF         = errors.New("is a PDF document: get the list as CSV in UTF-8")
	errRichText    = errors.New("is a document of a word processor: save it as CSV in UTF-8")
	errZeros       = errors.New("holds zero bytes in its first line: it is no text, or it was damaged: fetch it again")
	errOnlyHeader  = errors.New("holds a header and no row: was it fetched whole?")
)

// ErrDamaged matches the error of a file whose compressed data are corrupt.
var ErrDamaged = errors.New("the compressed data are corrupt")

// headBytes is how much of a file is read to recognise its format.
const headBytes = 4096

// bufferBytes is how much of a file is held, and read to recognise the format of one that begins with blank lines.
const bufferBytes = 64 << 10

var utf8Mark = []byte{0xef, 0xbb, 0xbf}

// Stdin is the file name of standard input.
const Stdin = "-"

// File is one file of a run.
type File struct {
	Name     string
	out      *outlet
	offices  *Offices
	Size     int64 // bytes as stored, 0 when not known
	Format   *format
	CutOff   string // what is probably cut off, known after Read
	Doubtful string // what is probably wrong in it, though it was read; known after Read
	Lacking  string // usual columns that the header lacks, and its columns that are not read
	consumed atomic.Int64
	// Once is set by Open for an input that can be opened only once: standard input, or a pipe.
	Once bool
	// Waiting, if set, is called once when nothing has come out of the file for some seconds, in any
	// goroutine.
	Waiting func()

	closers []func()
	text    *bufio.Reader // uncompressed, without a byte order mark
	sheet   *sheet        // nil for documents
	told    sync.Once     // guards the call of Waiting
}

// NewFile makes the file with index number in the run. Its records go to send in batches, which
// may block, and its post offices to offices.
func NewFile(number int, name string, send func(*Batch) error, offices *Offices) *File {
	s := &File{Name: name, offices: offices}
	s.out = newOutlet(number, s.consumed.Load, send)
	return s
}

// Open opens the file and recognises its compression and format. The end of ctx cancels it, and later
// reads of the file.
func (s *File) Open(ctx context.Context, stdin io.Reader, asOf string) error {
	in, err := s.file(ctx, stdin)
	if err != nil {
		return err
	}
	in = newPatientReader(ctx, in, s.waits)
	s.consumed.Store(0)
	if s.text, err = s.uncompress(&countingReader{in: in, count: &s.consumed}); err != nil {
		return err
	}
	start, err := s.text.Peek(headBytes)
	if isMarkedUTF16(start) {
		s.text = bufio.NewReaderSize(unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(s.text), bufferBytes)
		start, err = s.text.Peek(headBytes)
	}
	if err == nil && len(textOf(start)) == 0 {
		start, err = s.text.Peek(bufferBytes)
	}
	if err != nil && err != io.EOF {
		return fmt.Errorf("read: %w", err)
	}
	first := textOf(start)
	switch {
	case len(first) == 0:
		return errEmpty
	case bytes.HasPrefix(start, utf8Mark):
		s.text.Discard(len(utf8Mark))
	}
	if err := beginsAs(start, binaryKinds); err != nil {
		return err
	}
	if err := checkText(start); err != nil {
		return err
	}
	if bytes.IndexByte(start, '\r') >= 0 && bytes.IndexByte(start, '\n') < 0 || rowsEndInCR(start) {
		s.text = bufio.NewReader(oldLineEnds{s.text})
	}
	if err := beginsAs(first, textKinds); err != nil {
		return err
	}
	if first[0] == '{' || first[0] == '[' {
		s.Format = documentFormat
		return nil
	}
	s.sheet, err = newSheet(s.text, asOf, s.out, s.offices)
	if err != nil {
		return err
	}
	s.Format = s.sheet.format
	s.Lacking = s.Format.lacking(toUTF8(s.sheet.header), s.sheet.places)
	return nil
}

// textOf returns the beginning of a file from its first sign on, "" if there is none.
func textOf(start []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(start, utf8Mark), " \t\r\n")
}

// tarMark is the offset of "ustar" in the header of a tar archive (POSIX.1-1988 and GNU).
const tarMark = 257

// isMarkedUTF16 reports whether a file begins as UTF-16 with a byte order mark, as a spreadsheet's "Unicode text" does.
func isMarkedUTF16(start []byte) bool {
	return bytes.HasPrefix(start, []byte{0xfe, 0xff}) || bytes.HasPrefix(start, []byte{0xff, 0xfe}) && !bytes.HasPrefix(start, utf32Mark)
}

// utf32Mark is the byte order mark of UTF-32 that begins as the one of UTF-16.
var utf32Mark = []byte{0xff, 0xfe, 0, 0}

// checkText refuses the beginning of a file that is text in another encoding, or none.
func checkText(start []byte) error {
	zeros := bytes.Count(start, []byte{0})
	first, _, _ := bytes.Cut(start, []byte("\n"))
	switch {
	case len(start) > tarMark && bytes.HasPrefix(start[tarMark:], []byte("ustar")):
		return errTar
	case zeros == len(start):
		return errZeros
	case bytes.HasPrefix(start, utf32Mark), bytes.HasPrefix(start, []byte{0, 0, 0xfe, 0xff}), zeros > len(start)*5/8:
		return errUTF32
	case zeros > len(start)*3/8:
		return errUTF16
	case bytes.IndexByte(first, 0) >= 0:
		return errZeros
	}
	return nil
}

// kind is a kind of files that hold no list, by how they begin.
type kind struct {
	begin string
	err   error
}

// The kinds of files without compression, or within it.
var (
	binaryKinds = []kind{
		{"PK\x03\x04", errSpreadsheet}, {"PK\x05\x06", errSpreadsheet}, {"PK\x07\x08", errSpreadsheet}, {"\xd0\xcf\x11\xe0", errSpreadsheet}, {gzipMark, errPackedTwice}, {zstdMark, errPackedTwice},
		{"BZh", errPacked}, {"\xfd7zXZ", errPacked}, {"7z\xbc\xaf", errPacked}, {"Rar!\x1a", errPacked}, {"\x1f\x9d", errPacked},
		{"SQLite format 3\x00", errDatabase}, {"PAR1", errDatabase},
	}
	textKinds = []kind{
		{"<", errPage}, {"MIME-Version:", errMail}, {"From: <Saved by", errMail}, {"%PDF-", errPDF}, {`{\rtf`, errRichText},
		{"ID;PWXL;", errSpreadsheet}, {"ID;PCALC", errSpreadsheet}, {"TABLE\r\n0,1", errSpreadsheet}, {"TABLE\n0,1", errSpreadsheet}, // SYLK and DIF
	}
)

// The first bytes of compressed files (RFC 1952, RFC 8878).
const (
	gzipMark = "\x1f\x8b"
	zstdMark = "\x28\xb5\x2f\xfd"
)

// maxWindow is the largest window of a zstd file, which takes as much memory: that of zstd --long.
const maxWindow = 128 << 20

func beginsAs(start []byte, kinds []kind) error {
	for _, kind := range kinds {
		if bytes.HasPrefix(start, []byte(kind.begin)) {
			return kind.err
		}
	}
	return nil
}

// rowsEndInCR reports whether the first row of a file, and most of those after it, end in CR alone. Values in quotes may have other line
// ends, and the name of a column a CR. A quote within a value opens none.
func rowsEndInCR(start []byte) bool {
	quoted, before, ends, others := false, byte('\n'), 0, 0
	for i := 0; i < len(start)-1; i++ {
		c := start[i]
		switch {
		case quoted && c == '"' && start[i+1] == '"':
			i++
		case quoted:
			quoted = c != '"'
		case c == '"':
			quoted = bytes.IndexByte([]byte("\r\n"+separators), before) >= 0
		case c == '\n':
			others++
		case c == '\r' && start[i+1] != '\n' && start[i+1] != '\r':
			ends++
		}
		if before = c; ends == 0 && others > 0 {
			return false
		}
	}
	return ends > others
}

// oldLineEnds reads text whose lines end in CR alone as if they ended in LF.
type oldLineEnds struct{ in io.Reader }

func (r oldLineEnds) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	for i, c := range p[:n] {
		if c == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// Close closes the file. It may be called again, and the file opened again.
func (s *File) Close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers, s.text, s.sheet = nil, nil, nil
}

// waits calls Waiting, if set, at most once.
func (s *File) waits() {
	if s.Waiting != nil {
		s.told.Do(s.Waiting)
	}
}

func (s *File) file(ctx context.Context, stdin io.Reader) (io.Reader, error) {
	if s.Once = s.Name == Stdin; s.Once {
		if stdin == nil {
			return nil, errEmpty
		}
		return stdin, nil
	}
	f, err := Await(ctx, s.waits, func() (*os.File, error) { return os.Open(s.Name) })
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil, path.Err // the caller names the file
	}
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errDirectory
	}
	s.Size, s.Once = info.Size(), !info.Mode().IsRegular()
	return f, nil
}

// uncompress recognises gzip and zstd by their magic bytes.
func (s *File) uncompress(in *countingReader) (*bufio.Reader, error) {
	stored := bufio.NewReaderSize(in, bufferBytes)
	magic, err := stored.Peek(4)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read: %w", err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte(gzipMark)):
		r, err := gzip.NewReader(stored)
		if err != nil {
			return nil, fmt.Errorf("uncompress gzip: %w", in.explain(err))
		}
		return bufio.NewReaderSize(&uncompressed{&members{r, stored}, in}, bufferBytes), nil
	case bytes.HasPrefix(magic, []byte(zstdMark)):
		r, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("uncompress zstd: %w", err)
		}
		s.closers = append(s.closers, r.Close)
		return bufio.NewReaderSize(&uncompressed{r, in}, bufferBytes), nil
	}
	return stored, nil
}

// members reads the members of a gzip file. Zeros after the last one, as gzip itself, do not count: tapes and programs that write
// whole blocks fill these so.
type members struct {
	*gzip.Reader
	stored *bufio.Reader
}

func (m *members) Read(p []byte) (int, error) {
	for {
		m.Multistream(false)
		n, err := m.Reader.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // io.EOF comes again
		}
		for range maxPadding {
			if next, err := m.stored.Peek(1); err != nil || next[0] != 0 {
				break
			}
			_, _ = m.stored.Discard(1) // it was peeked at
		}
		if err := m.Reset(m.stored); err != nil { // io.EOF if nothing follows
			return 0, err
		}
	}
}

// maxPadding is more zeros than fill a block. After a download that was cut off between two members, there may be more of them.
const maxPadding = 64 << 10

// Read reads the file to its end. The caller closes it.
func (s *File) Read(asOf string) error {
	if s.sheet == nil {
		d := &documents{in: newSplitter(s.text), dates: dateReader{asOf, &dateOrder{isGiven: true}}, out: s.out}
		if err := d.run(); err != nil {
			return err
		}
		if err := d.dates.order.check(); err != nil {
			return err
		}
		return s.out.flush()
	}
	if err := s.sheet.run(); err != nil {
		return err
	}
	s.CutOff, s.Doubtful = s.sheet.likely.cutOff(s.sheet), s.sheet.likely.doubtful(s.sheet)
	return s.out.flush()
}

// countingReader counts the bytes that were read.
type countingReader struct {
	in    io.Reader
	count *atomic.Int64
	err   error // that ended the reading, but for io.EOF
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.count.Add(int64(n))
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// explain tells an error of uncompressing what was read from one of reading it.
func (r *countingReader) explain(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return errWindow
	}
	if err == nil || r.err != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return damaged{err}
}

// uncompressed reads compressed data. Its errors match ErrDamaged when they are not those of reading the file.
type uncompressed struct {
	io.Reader
	from *countingReader
}

func (u *uncompressed) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	return n, u.from.explain(err)
}

// damaged makes an error match ErrDamaged and keeps its text.
type damaged struct{ error }

func (damaged) Is(target error) bool { return target == ErrDamaged }

func (d damaged) Unwrap() error { return d.error }
