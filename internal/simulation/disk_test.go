package simulation

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"regedge/replicate/metering/journal"
)

var (
	errDead     = errors.New("the process has ended")
	errDiskFull = errors.New("no space left on device")
	errSync     = errors.New("input/output error")
)

// inode is a file's content, of which a prefix survives a power cut. After a sync that
// failed nothing more of it does, whatever later syncs of the same process say.
type inode struct {
	data     []byte
	synced   int
	poisoned bool
}

// disk is what an edge's process leaves behind.
type disk struct {
	files   map[string]*inode
	durable map[string]*inode // the directory as it was last synced
	// copied says that this is an older copy, and the writer has not seen it yet.
	copied bool
	// wasCopied says so of any time before: what the writer said of it the end of a process
	// may take.
	wasCopied bool
	// doubtful are the charges of an older copy since the process last started: the next
	// one can't tell them from what the original may have reported.
	doubtful counts
	// heard are those of a run that heard that its disk is an older copy, and began
	// heardEpoch for it: until that is written, the next run can't tell them either.
	heard      counts
	heardEpoch uint64
	// segments counts the journal's segments that were begun.
	segments int
}

func newDisk() *disk {
	return &disk{files: map[string]*inode{}, durable: map[string]*inode{}, doubtful: counts{}}
}

// clone copies the disk as a snapshot of it would.
func (d *disk) clone() *disk {
	c := newDisk()
	for name, n := range d.files {
		c.files[name] = &inode{data: slices.Clone(n.data), synced: len(n.data)}
	}
	c.durable = maps.Clone(c.files)
	c.segments = d.segments
	return c
}

// losePower keeps what was synced, and of the rest what chance leaves. It reports
// whether anything was lost.
func (d *disk) losePower(random *rand.Rand) bool {
	lost := false
	files := map[string]*inode{}
	for _, name := range d.names() {
		n, before := d.files[name], d.durable[name]
		if n != before && random.IntN(2) == 0 {
			n, lost = before, true
		}
		if n != nil {
			lost = n.tear(random) || lost
			files[name] = n
		}
	}
	d.files, d.durable = files, maps.Clone(files)
	return lost
}

// names lists all files, of the directory and of its durable form.
func (d *disk) names() []string {
	all := maps.Clone(d.files)
	maps.Copy(all, d.durable)
	return slices.Sorted(maps.Keys(all))
}

// tear drops a part of what was not synced; the end may read as zeros.
func (n *inode) tear(random *rand.Rand) bool {
	whole := len(n.data)
	if n.synced == whole {
		return false
	}
	end := n.synced + random.IntN(whole-n.synced+1)
	zeros := 0
	if random.IntN(3) == 0 {
		zeros = random.IntN(whole - end + 1)
	}
	n.data = append(n.data[:end:end], make([]byte, zeros)...)
	n.synced, n.poisoned = len(n.data), false
	return end < whole
}

// unmount ends a process's hold on the disk.
func (d *disk) unmount() {
	for _, n := range d.files {
		n.poisoned = false
	}
}

// mount is the disk in the hands of one process. After the process ended it does
// nothing any more.
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
	if p.crashIn > 0 && !p.edge.world.calm {
		if p.crashIn--; p.crashIn == 0 {
			p.edge.world.count(crashAtWrite)
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
	n := m.files[name]
	if m.process.dead || n == nil {
		return nil, errDead
	}
	return io.NopCloser(bytes.NewReader(n.data)), nil
}

func (m mount) Append(name string) (journal.File, error) {
	last, err := m.act()
	if err != nil {
		return nil, err
	}
	if m.files[name] == nil {
		m.files[name] = &inode{}
		if strings.HasPrefix(name, "journal-") {
			m.segments++
		}
	}
	if last {
		return nil, errDead
	}
	return &file{m, m.files[name]}, nil
}

func (m mount) Remove(name string) error {
	last, err := m.act()
	if err != nil {
		return err
	}
	delete(m.files, name)
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
	m.saved()
	if last {
		return errDead
	}
	return nil
}

// saved notes what a power cut can't take any more.
func (m mount) saved() {
	names := slices.Sorted(maps.Keys(m.files))
	for _, name := range slices.Backward(names) {
		if strings.HasPrefix(name, "journal-") {
			n := m.files[name]
			if n == m.durable[name] && n.synced == len(n.data) {
				clear(m.process.edge.unsynced)
			}
			return
		}
	}
}

func (m mount) Close() error { return nil }

// file is an inode open in one process.
type file struct {
	mount mount
	inode *inode
}

func (f *file) Write(p []byte) (int, error) {
	last, err := f.mount.act()
	if err != nil {
		return 0, err
	}
	proc := f.mount.process
	n := len(p)
	switch {
	case last:
		n = proc.edge.world.random.IntN(n + 1)
		if n > 0 && n < len(p) {
			proc.edge.world.count(tornWrite)
		}
		err = errDead
	case proc.edge.world.now < proc.edge.fullUntil:
		proc.edge.world.count(diskFull)
		n = proc.edge.world.random.IntN(n + 1)
		err = errDiskFull
	}
	f.inode.data = append(f.inode.data, p[:n]...)
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
		f.inode.poisoned = true
		f.mount.process.edge.world.count(syncError)
		return errSync
	}
	if !f.inode.poisoned {
		f.inode.synced = len(f.inode.data)
		f.mount.saved()
	}
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
	f.inode.data = f.inode.data[:size:size]
	if size <= int64(f.inode.synced) { // what the sync forgot is gone
		f.inode.synced, f.inode.poisoned = int(size), false
	}
	return nil
}

func (f *file) Size() (int64, error) { return int64(len(f.inode.data)), nil }
func (f *file) Close() error         { return nil }
