package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"regedge/schema/importer/record"
	"regedge/schema/importer/source"
)

// rejectsHeader is the first row of the rejects file.
var rejectsHeader = []string{"file", "line", "reason", "row"}

// rejectsFile writes rejected rows as CSV. Without a path it writes nothing.
type rejectsFile struct {
	file *os.File
	out  *bufio.Writer // nil until begin
}

// openRejects opens the rejects file without changing it. To overwrite nothing of value, it
// refuses the files in taken, and any that is neither empty nor an earlier rejects file.
func openRejects(path string, taken []string) (*rejectsFile, error) {
	if path == "" {
		return &rejectsFile{}, nil
	}
	flags := os.O_RDWR | os.O_CREATE
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		flags = os.O_WRONLY // a device or a pipe: nothing to overwrite
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("create the rejects file: %w", err)
	}
	if err := checkReplaceable(f, taken); err != nil {
		return nil, cmp.Or(fmt.Errorf("the rejects file %s %w: name another file", path, err), f.Close())
	}
	return &rejectsFile{file: f}, nil
}

func checkReplaceable(f *os.File, taken []string) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("can't be looked at: %w", err)
	}
	for _, name := range taken {
		if other, err := os.Stat(name); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("is %s, which this import needs", name)
		}
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	header := []byte(source.JoinFields(rejectsHeader) + "\n")
	start := make([]byte, len(header))
	if n, err := f.ReadAt(start, 0); err != nil && err != io.EOF {
		return fmt.Errorf("can't be read: %w", err)
	} else if !bytes.Equal(start[:n], header) {
		return errors.New("has something else in it")
	}
	return nil
}

// begin empties the file and writes its header.
func (r *rejectsFile) begin() error {
	if r.file == nil {
		return nil
	}
	if info, err := r.file.Stat(); err != nil || info.Mode().IsRegular() {
		if err := cmp.Or(err, r.file.Truncate(0)); err != nil {
			return fmt.Errorf("empty the rejects file: %w", err)
		}
	}
	r.out = bufio.NewWriter(r.file)
	r.row(rejectsHeader)
	return nil
}

// add writes one reject of a file.
func (r *rejectsFile) add(file string, j *record.Reject) {
	if r.out == nil {
		return
	}
	reason := j.Reason
	if j.Detail != "" {
		reason += ": " + j.Detail
	}
	r.row([]string{file, strconv.Itoa(j.Line), reason, j.Raw})
}

// row writes one row. Like bufio, it keeps an error for flush.
func (r *rejectsFile) row(fields []string) { r.out.WriteString(source.JoinFields(fields) + "\n") }

func (r *rejectsFile) flush() error {
	if r.out == nil {
		return nil
	}
	if err := r.out.Flush(); err != nil {
		return fmt.Errorf("write the rejects file: %w", err)
	}
	return nil
}

// close may be called again.
func (r *rejectsFile) close() error {
	if r.file == nil {
		return nil
	}
	err := cmp.Or(r.flush(), r.file.Close())
	r.file, r.out = nil, nil
	if err != nil {
		return fmt.Errorf("close the rejects file: %w", err)
	}
	return nil
}
