package sqlite

import (
	"net/url"
	"path/filepath"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
	"golang.org/x/sys/unix"

	"regedge/replicate/metering/mmap"
)

// mappedName is the name of the VFS (https://sqlite.org/vfs.html) that takes the pages of a
// database out of a mapping, where the system's asks the kernel for each.
const mappedName = "regedge-mapped"

var registerMapped = sync.OnceFunc(func() {
	vfs.Register(mappedName, mappedFiles{vfs.Find("").(vfs.VFSFilename)})
})

// openReadOnly opens a database, through a mapping or not.
func openReadOnly(path string, mapping bool) (*sqlite3.Conn, error) {
	if !mapping {
		return sqlite3.OpenFlags(path, sqlite3.OPEN_READONLY)
	}
	registerMapped()
	uri := url.URL{
		Scheme: "file", Opaque: (&url.URL{Path: filepath.Clean(path)}).EscapedPath(), RawQuery: "vfs=" + mappedName,
	}
	return sqlite3.OpenFlags(uri.String(), sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
}

// mappedFiles is the system's VFS but for the databases.
type mappedFiles struct{ vfs.VFSFilename }

// OpenFilename implements vfs.VFSFilename. A file that the system does not map is opened as any
// other.
func (m mappedFiles) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, opened, err := m.VFSFilename.OpenFilename(name, flags)
	if err != nil || flags&vfs.OPEN_MAIN_DB == 0 {
		return file, opened, err
	}
	if through, err := mapFile(file); err == nil {
		file = through
	}
	return file, opened, nil
}

// mappedFile reads from memory what it can and the rest by system calls. SQLite keeps its
// copies of the pages that it often needs, in its cache. To have it read all pages where they
// are (https://sqlite.org/mmap.html) would leave it amid its work where one can't be read, and
// this SQLite has room for 1 GiB at most.
type mappedFile struct {
	vfs.File
	memory []byte
}

// mapFile maps a file with room for what its owner adds.
func mapFile(file vfs.File) (*mappedFile, error) {
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	descriptor := file.(interface{ Fd() uintptr }).Fd()
	memory, err := unix.Mmap(int(descriptor), 0, int(size+size/8+1<<20), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &mappedFile{file, memory}, nil
}

// ReadAt implements io.ReaderAt.
func (f *mappedFile) ReadAt(p []byte, off int64) (n int, err error) {
	if off+int64(len(p)) <= int64(len(f.memory)) && mmap.Copy(p, f.memory[off:]) {
		return len(p), nil
	}
	return f.File.ReadAt(p, off)
}

// SharedMemory implements vfs.FileSharedMemory, without which there is no reading beside a
// writer.
func (f *mappedFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

// Close implements io.Closer.
func (f *mappedFile) Close() error {
	err := unix.Munmap(f.memory)
	if closeErr := f.File.Close(); closeErr != nil {
		err = closeErr
	}
	return err
}
