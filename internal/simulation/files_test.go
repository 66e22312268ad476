package simulation

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"regedge/replicate/metering/journal"
)

// mount is the disk as one process uses it. After the end of the process all calls fail.
type mount struct {
	*disk
	process *process
}

// act is one access that changes the disk: it may be the process's last.
func (m mount) act() (last bool, err error) {
	p := m.process
	if p.dead {
		return false, errDead
	}
	if p.crashIn > 0 && !p.edge.sim.calm {
		if p.crashIn--; p.crashIn == 0 {
			p.edge.sim.count(crashAtWrite)
			p.dead = true
			return true, nil
		}
	}
	return false, nil
}

func (m mount) List() ([]string, error) {
	if m.process.dead {
		return nil, errDead
	}
	return slices.Sorted(maps.Keys(m.files)), nil
}

func (m mount) Open(name string) (io.ReadCloser, error) {
	if m.process.dead {
		return nil, errDead
	}
	n := m.files[name]
	if n == nil {
		return nil, fs.ErrNotExist
	}
	n.fold()
	return io.NopCloser(bytes.NewReader(n.data)), nil
}

// Append opens a file. In half of the runs segments are written through memory, as they are
// on file systems that allow it.
func (m mount) Append(name string) (journal.File, error) {
	last, err := m.act()
	if err != nil {
		return nil, err
	}
	segment := strings.HasPrefix(name, "journal-")
	if m.files[name] == nil {
		m.files[name] = newInode()
		if segment {
			m.segments++
		}
	}
	if last {
		return nil, errDead
	}
	f := &file{m, m.files[name]}
	if segment && m.process.edge.sim.mapped {
		return journal.Mapped(f)
	}
	return f, nil
}

func (m mount) Remove(name string) error {
	last, err := m.act()
	if err != nil {
		return err
	}
	m.free(m.files[name])
	delete(m.files, name)
	if last {
		return errDead
	}
	return nil
}

func (m mount) Rename(from, to string) error {
	last, err := m.act()
	if err != nil {
		return err
	}
	m.files[to] = m.files[from]
	delete(m.files, from)
	if last {
		return errDead
	}
	return nil
}

func (m mount) Sync() error {
	last, err := m.act()
	if err != nil {
		return err
	}
	m.durable = maps.Clone(m.files)
	m.noteSynced()
	if last {
		return errDead
	}
	return nil
}

// isSegment reports whether a file is a segment of the journal that was not set aside.
func isSegment(name string) bool {
	return strings.HasPrefix(name, "journal-") && strings.HasSuffix(name, ".log")
}

// noteSynced forgets the charges that a power cut can't lose any more.
func (m mount) noteSynced() {
	names := slices.Sorted(maps.Keys(m.files))
	for _, name := range slices.Backward(names) {
		if isSegment(name) {
			n := m.files[name]
			if n == m.durable[name] && n.clean() {
				clear(m.process.edge.unsynced)
			}
			return
		}
	}
}

func (m mount) Close() error { return nil }

// file is an inode open in one process, written by system calls.
type file struct {
	mount mount
	inode *inode
}

func (f *file) Write(p []byte) (int, error) {
	last, err := f.mount.act()
	if err != nil {
		return 0, err
	}
	sim := f.mount.process.edge.sim
	if !last && f.mount.process.waits(150) {
		return 0, errDead
	}
	n := len(p)
	switch {
	case last:
		n = sim.random.IntN(n + 1)
		if n > 0 && n < len(p) {
			sim.count(tornWrite)
		}
		err = errDead
	case sim.clock.Load() < f.mount.process.edge.fullUntil:
		sim.count(diskFull)
		n = sim.random.IntN(n + 1)
		err = errDiskFull
	}
	f.inode.fold()
	f.inode.data = append(f.inode.data, p[:n]...)
	if len(bytes.Trim(p[:n], "\x00")) > 0 { // else it extends the file before a mapping
		f.inode.end = len(f.inode.data)
		if err == nil {
			f.inode.noteShown(p)
		}
	}
	f.mount.writeBack(f.inode)
	return n, err
}

func (f *file) Sync() error {
	last, err := f.mount.act()
	switch {
	case err != nil:
		return err
	case last:
		return errDead
	case f.mount.process.edge.syncFails:
		f.mount.process.edge.syncFails = false
		f.inode.fold()
		f.inode.poisoned = true
		f.mount.process.edge.sim.count(syncError)
		return errSync
	}
	return f.sync()
}

// sync makes durable what was written when it was called. Only while a process flushes its journal
// are there charges meanwhile.
func (f *file) sync() error {
	f.inode.fold()
	begun, end := slices.Clone(f.inode.data), f.inode.end
	f.inode.cutMeanwhile = -1
	p := f.mount.process
	if !p.flushing || !p.mayHang(12) {
		f.inode.sync()
	} else if p.hang(syncHangs); p.dead {
		return errDead
	} else {
		f.inode.syncUpTo(begun, end)
	}
	f.mount.noteSynced()
	return nil
}

func (f *file) Truncate(size int64) error {
	last, err := f.mount.act()
	switch {
	case err != nil:
		return err
	case last:
		return errDead
	}
	f.inode.truncate(int(size))
	return nil
}

func (f *file) Size() (int64, error) { return int64(len(f.inode.data)), nil }
func (f *file) Close() error         { return nil }
func (f *file) Intact(int64) error   { return nil }

// PageSize implements journal.Mappable, as the methods after it.
func (f *file) PageSize() int64 { return pageBytes }

// Room leaves windows of one page to some.
func (f *file) Room() int64 { return f.mount.process.edge.sim.random.Int64N(64 * 6 * pageBytes) }

func (f *file) Map(from, to int64) (journal.Window, error) {
	if f.mount.process.dead {
		return nil, errDead
	}
	n := f.inode
	n.fold()
	n.window = &window{file: f, from: int(from), memory: slices.Clone(n.data[from:to])}
	return n.window, nil
}

// window is a mapping of a file. Its memory is a copy, which fold brings into the file.
type window struct {
	file   *file
	from   int
	memory []byte
	dirty  bool
}

// fold brings what was put into the mapping into the file's content. Memory behind the file's
// end is not part of it.
func (n *inode) fold() {
	if w := n.window; w != nil && w.dirty {
		copy(n.data[min(w.from, len(n.data)):], w.memory)
		w.dirty = false
	}
}

// Put copies into memory. The last act of a process copies a part: a copy may begin at either
// end.
func (w *window) Put(at int64, p []byte) bool {
	last, err := w.file.mount.act()
	if err != nil {
		return false
	}
	sim, n := w.file.mount.process.edge.sim, w.file.inode
	begin, rest := len(p), len(p)
	fault := sim.clock.Load() < w.file.mount.process.edge.fullUntil && sim.random.IntN(4) == 0
	if last || fault {
		begin = sim.random.IntN(len(p) + 1)
		rest = begin + sim.random.IntN(len(p)-begin+1)
		sim.count(tornPut)
	}
	copy(w.memory[at:], p[:begin])
	copy(w.memory[int(at)+rest:], p[rest:])
	w.dirty = true
	n.end = max(n.end, w.from+int(at)+len(p))
	if !last && !fault {
		n.noteShown(p)
	}
	w.file.mount.writeBack(n)
	return !last && !fault
}

func (w *window) Close() error { return nil }

// writeBack brings a page of a file to the disk now and then, without being asked to.
func (m mount) writeBack(n *inode) {
	if random := m.process.edge.sim.random; random.IntN(4) == 0 {
		n.writeBack(random)
	}
}
