package meter

import (
	"io"
	"io/fs"
	"log/slog"
	"time"

	"regedge/replicate/metering/journal"
)

// tellPause is how long a file is read before that is logged, and the time between two log lines about it. A
// busy edge's batches of a day take gigabytes, and anybody may have put a file of any length there.
const tellPause = 5 * time.Second

// tellingDir logs how far a long file has been read: the edge starts, or reports, only once it was read.
type tellingDir struct {
	journal.Dir
	now func() time.Time
	log *slog.Logger
}

func (d tellingDir) Open(name string) (io.ReadCloser, error) {
	file, err := d.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	return &tellingFile{ReadCloser: file, dir: d, name: name, told: d.now()}, nil
}

type tellingFile struct {
	io.ReadCloser
	dir  tellingDir
	name string
	read int64
	told time.Time // when the file was opened, or the last line logged
}

func (f *tellingFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.read += int64(n)
	if now := f.dir.now(); now.Sub(f.told) >= tellPause {
		f.told = now
		f.dir.log.Info("a long file of the state directory is being read", "file", f.name, "read_bytes", f.read, "of_bytes", f.size())
	}
	return n, err
}

// size is the file's length in bytes, 0 when it is not known.
func (f *tellingFile) size() int64 {
	file, known := f.ReadCloser.(interface{ Stat() (fs.FileInfo, error) })
	if !known {
		return 0
	}
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
