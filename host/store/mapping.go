package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// SQLite reads a page of a mapped file where it is, in place of a system call and a copy into
// the connection's cache (https://sqlite.org/mmap.html). The memory that it computes in has
// addresses of 32 bits, and of those its library gives a file mostMapped bytes at most. A
// larger file is not mapped at all: with a part of it mapped, searches and lookups took longer
// than by system calls.
const mostMapped = 1 << 30

// ownMemory is what SQLite may use besides, for a connection: the default of its library.
const ownMemory = 256 << 20

// errFault is of a mapped page that can't be read: the disk failed, or another program cut the
// file off. There is no system call that could return it, so it arrives as a signal. It is
// also of a system that does not map.
var errFault = errors.New("a mapped page of the database can't be read")

// mappedBytes is how much of a file is mapped, with room for what its owner adds; what comes to
// lie beyond it is read by system calls.
func mappedBytes(fileBytes int64) int {
	if fileBytes >= mostMapped || math.MaxInt == math.MaxInt32 {
		return 0
	}
	return int(min(mostMapped, fileBytes+fileBytes/8+16<<20))
}

// openMapped opens a file to read it through a mapping, from the first page that is read after
// mapFile.
func openMapped(path string, bytes int) (*sqlite3.Conn, *openFiles, error) {
	files := newOpenFiles()
	uri := url.URL{
		Scheme: "file", Opaque: (&url.URL{Path: filepath.Clean(path)}).EscapedPath(),
		RawQuery: "mode=ro&vfs=" + files.name,
	}
	memory := sqlite3.WithMaxMemory(context.Background(), ownMemory+int64(bytes))
	sqlite, err := sqlite3.OpenContext(memory, uri.String())
	if err != nil {
		files.forget()
		return nil, nil, err
	}
	return sqlite, files, nil
}

func mapFile(sqlite *sqlite3.Conn, bytes int) error {
	if err := sqlite.Exec(fmt.Sprintf("PRAGMA mmap_size=%d", bytes)); err != nil {
		return fmt.Errorf("map the file: %w", err)
	}
	return nil
}

// fault returns errFault for the panic of a mapped page, which there is where the goroutine has
// set debug.SetPanicOnFault (else the process ends), and nil for no panic.
func fault(panicked any) error {
	switch cause := panicked.(type) {
	case nil:
		return nil
	case interface {
		runtime.Error
		Addr() uintptr
	}:
		return errFault
	case syscall.Errno:
		return fmt.Errorf("%w: %w", errFault, cause)
	}
	panic(panicked)
}

// openFiles are the files of a mapped connection. SQLite is left amid its work by a fault, and
// can't close them after it: to try would go round in circles. It knows them as a VFS of the
// connection's own (https://sqlite.org/vfs.html), which is the system's.
type openFiles struct {
	vfs.VFSFilename
	name  string
	files []vfs.File
}

var lastName atomic.Uint64

func newOpenFiles() *openFiles {
	o := &openFiles{
		VFSFilename: vfs.Find("").(vfs.VFSFilename),
		name:        "regedge-" + strconv.FormatUint(lastName.Add(1), 10),
	}
	vfs.Register(o.name, o)
	return o
}

// OpenFilename implements vfs.VFSFilename.
func (o *openFiles) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := o.VFSFilename.OpenFilename(name, flags)
	if err == nil && flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_WAL) != 0 {
		o.files = append(o.files, file)
	}
	return file, flags, err
}

// forget is for a connection that SQLite has closed.
func (o *openFiles) forget() { vfs.Unregister(o.name) }

// abandon closes the files, and with them ends their locks, in SQLite's place. The memory of
// the connection is lost.
func (o *openFiles) abandon() error {
	o.forget()
	var failed []error
	for _, file := range o.files {
		failed = append(failed, file.Close())
	}
	return errors.Join(failed...)
}
