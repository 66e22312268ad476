package journal

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// disk is a Dir in memory with faults.
type disk struct {
	files    map[string]*bytes.Buffer
	full     int   // bytes that may still be written, -1 for no limit
	syncErr  error // of the next syncs
	dirSyncs int
	syncs    int // of files so far
	writes   int
	truncErr error
	openErr  error  // of reading a file
	keepsOld error  // of removing a file that is there
	syncing  func() // called by each sync of a file, once its bytes are on their way
	// What a power cut leaves: the bytes of each file that were synced, if its name was.
	synced map[*bytes.Buffer]int
	named  map[string]bool
}

func newDisk() *disk {
	return &disk{files: map[string]*bytes.Buffer{}, full: -1, synced: map[*bytes.Buffer]int{}, named: map[string]bool{}}
}

// cutPower loses what was not synced.
func (d *disk) cutPower() {
	for name, file := range d.files {
		file.Truncate(min(file.Len(), d.synced[file]))
		if !d.named[name] {
			delete(d.files, name)
		}
	}
}

func (d *disk) List() (names []string, err error) {
	for name := range d.files {
		names = append(names, name)
	}
	return names, nil
}

func (d *disk) Open(name string) (io.ReadCloser, error) {
	f := d.files[name]
	if f == nil || d.openErr != nil {
		return nil, errors.Join(errors.New("no such file"), d.openErr)
	}
	return io.NopCloser(bytes.NewReader(f.Bytes())), nil
}

func (d *disk) Append(name string) (File, error) {
	if d.files[name] == nil {
		d.files[name] = &bytes.Buffer{}
	}
	return &diskFile{d, d.files[name]}, nil
}

func (d *disk) Remove(name string) error {
	if d.files[name] != nil && d.keepsOld != nil {
		return d.keepsOld
	}
	delete(d.files, name)
	return nil
}

func (d *disk) Rename(from, to string) error {
	d.files[to] = d.files[from]
	delete(d.files, from)
	return nil
}

func (d *disk) Sync() error {
	d.dirSyncs++
	clear(d.named)
	for name := range d.files {
		d.named[name] = true
	}
	return nil
}

func (d *disk) Close() error { return nil }

type diskFile struct {
	d *disk
	b *bytes.Buffer
}

var errFull = errors.New("no space left on device")

func (f *diskFile) Write(p []byte) (int, error) {
	f.d.writes++
	if f.d.full >= 0 && len(p) > f.d.full {
		n, _ := f.b.Write(p[:f.d.full])
		f.d.full = 0
		return n, errFull
	}
	if f.d.full >= 0 {
		f.d.full -= len(p)
	}
	return f.b.Write(p)
}

func (f *diskFile) Sync() error {
	f.d.syncs++
	if f.d.syncErr == nil {
		f.d.synced[f.b] = f.b.Len()
	}
	if f.d.syncing != nil {
		f.d.syncing()
	}
	return f.d.syncErr
}

func (f *diskFile) Truncate(size int64) error {
	if f.d.truncErr != nil {
		return f.d.truncErr
	}
	f.b.Truncate(int(size))
	return nil
}

func (f *diskFile) Size() (int64, error) { return int64(f.b.Len()), nil }
func (f *diskFile) Close() error         { return nil }
func (f *diskFile) Intact(int64) error   { return nil }

// recorder is an Owner that records what was dropped.
type recorder struct {
	sync.Mutex
	dropped []string
}

func (k *recorder) Drop(record []byte) { k.dropped = append(k.dropped, string(record)) }
