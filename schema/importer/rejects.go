package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"regedge/schema/importer/record"
	"regedge/schema/importer/source"
)

// rejectsHeader is the first row of the rejects file.
var rejectsHeader = []string{"file", "line", "reason", "row"}

// The bounds of the rejects file: a small compressed file can hold any number of wrong rows.
const (
	maxRejectRows  = 100_000
	maxRejectBytes = 16 << 20
)

// rejectsFile writes rejected rows as CSV, as far as its bounds allow. Without a path it writes nothing.
type rejectsFile struct {
	file *os.File
	out  *bufio.Writer // nil until begin
	// rows and bytes count what was written, more the rows that were not.
	rows, bytes, more int64
}

// openRejects opens the rejects file without changing it. To overwrite nothing of value, it refuses the
// files in taken, and any file that is neither empty nor an earlier rejects file. Opening a pipe blocks
// until it has a reader: waiting is called if that takes long, and the end of ctx cancels it.
func openRejects(ctx context.Context, path string, taken []string, waiting func(string)) (*rejectsFile, error) {
	if path == "" {
		return &rejectsFile{}, nil
	}
	flags, special := os.O_RDWR|os.O_CREATE, false
	info, err := os.Stat(path)
	isNew := errors.Is(err, os.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() {
		flags, special = os.O_WRONLY, true // a device or a pipe: nothing to overwrite
	}
	open := func() (*os.File, error) { return os.OpenFile(path, flags, 0o666) }
	f, err := source.Await(ctx, func() { waiting(path) }, open)
	if err != nil {
		return nil, fmt.Errorf("create the rejects file: %w", err)
	}
	if special {
		context.AfterFunc(ctx, func() { f.SetDeadline(time.Unix(1, 0)) }) // unblocks a write that nobody reads
	}
	if err := checkReplaceable(f, taken); err != nil {
		if isNew { // it has the name of the registry to come
			os.Remove(path)
		}
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
	r.rows, r.bytes, r.more = 0, 0, 0
	r.out.WriteString(source.JoinFields(rejectsHeader) + "\n")
	return nil
}

// add writes one reject of a file, or counts it when the file is full.
func (r *rejectsFile) add(file string, j *record.Reject) {
	if r.out == nil {
		return
	}
	reason := j.Reason
	if j.Detail != "" {
		reason += ": " + j.Detail
	}
	text := inertRow(file, strconv.Itoa(j.Line), reason, j.Raw)
	if r.more > 0 || r.rows == maxRejectRows || r.bytes+int64(len(text)) > maxRejectBytes {
		r.more++
		return
	}
	r.rows, r.bytes = r.rows+1, r.bytes+int64(len(text))
	r.out.WriteString(text) // like bufio, it keeps an error for flush
}

// end writes how many rejects there was no room for.
func (r *rejectsFile) end() {
	if r.out != nil && r.more > 0 {
		r.out.WriteString(inertRow("", "", fmt.Sprintf("%d more rows were rejected and are not listed", r.more), ""))
	}
}

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
	r.end()
	err := cmp.Or(r.flush(), r.file.Close())
	r.file, r.out = nil, nil
	if err != nil {
		return fmt.Errorf("close the rejects file: %w", err)
	}
	return nil
}
