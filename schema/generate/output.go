package generate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compression names how the files are compressed.
type Compression string

// The ways in which the importer can read a file. The zero value is Plain too.
const (
	Plain Compression = "none"
	Gzip  Compression = "gzip"
	Zstd  Compression = "zstd"
)

var suffixes = map[Compression]string{"": "", Plain: "", Gzip: ".gz", Zstd: ".zst"}

// partial ends the name of a file that is not complete yet.
const partial = ".partial"

// bufferBytes is the size of the buffer before the compressor.
const bufferBytes = 256 << 10

// output is one file of rows. close returns the error of a failed write.
type output struct {
	name       string // in its folder
	path       string
	file       *os.File
	buffer     *bufio.Writer
	compressor io.WriteCloser // nil when plain
	rows       int64
	end        string // of a line
	row        []byte
	err        error
}

func create(folder, name string, how Compression, header, end string) (*output, error) {
	suffix, known := suffixes[how]
	if !known {
		return nil, fmt.Errorf("compression %q is not known (use gzip, zstd or none)", how)
	}
	o := &output{name: name + suffix, path: filepath.Join(folder, name+suffix), end: end}
	file, err := os.Create(o.path + partial)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", o.path, err)
	}
	o.file = file
	var to io.Writer = file
	switch how {
	case Gzip:
		o.compressor, err = gzip.NewWriterLevel(file, gzip.BestSpeed)
		to = o.compressor
	case Zstd:
		o.compressor, err = zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		to = o.compressor
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compress %s: %w", o.path, err), file.Close())
	}
	o.buffer = bufio.NewWriterSize(to, bufferBytes)
	o.write(append([]byte(header), end...))
	return o, nil
}

func (o *output) write(b []byte) {
	if _, err := o.buffer.Write(b); err != nil && o.err == nil {
		o.err = err
	}
}

// field adds a field to the current row.
func (o *output) field(s string) {
	if strings.ContainsAny(s, ",\"\r\n") {
		s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	o.row = append(append(o.row, s...), ',')
}

// fields adds several.
func (o *output) fields(list ...string) {
	for _, s := range list {
		o.field(s)
	}
}

// finish ends the row.
func (o *output) finish() {
	o.row = append(o.row[:len(o.row)-1], o.end...)
	o.write(o.row)
	o.row = o.row[:0]
	o.rows++
}

// close gives the complete file its name, or returns the first error of a write.
func (o *output) close() error {
	err := errors.Join(o.err, o.buffer.Flush())
	if o.compressor != nil {
		err = errors.Join(err, o.compressor.Close())
	}
	err = errors.Join(err, o.file.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", o.path, err)
	}
	return os.Rename(o.path+partial, o.path)
}

// drop removes the file, and one of an earlier run that it would have replaced.
func (o *output) drop() error {
	o.abandon()
	if err := os.Remove(o.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// abandon removes the incomplete file.
func (o *output) abandon() {
	_ = o.file.Close()
	_ = os.Remove(o.path + partial)
}
