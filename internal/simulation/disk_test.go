package simulation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

var (
	errDead           = errors.New("the process has ended")
	errDiskFull error = syscall.ENOSPC
	errSync           = errors.New("input/output error")
)

// pageBytes is the size of a page: small, as segments are, so that a segment has many.
const pageBytes = 64

// inode is a file: its content in memory, as processes see it, and on the disk, as a power cut
// leaves it. They differ until a sync; meanwhile single pages may reach the disk, in any
// order.
type inode struct {
	data   []byte
	onDisk []byte
	end    int // of what was written; zeros may follow
	// cut is the lowest size to which the file was truncated since the last sync, -1 for none; cutMeanwhile
	// since the one that is under way began.
	cut, cutMeanwhile int
	// poisoned says that a sync failed: nothing more reaches the disk, whatever later syncs
	// of the same process return.
	poisoned bool
	window   *window // the newest mapping
	// durable is what was written when the last sync completed, snapshot what was when the first did. shown is the
	// part of it that can be known to have been durable: see noteShown.
	durable, snapshot, shown int
}

func newInode() *inode { return &inode{cut: -1} }

// disk is what an edge's process leaves behind.
type disk struct {
	files   map[string]*inode
	durable map[string]*inode // the directory as it was last synced
	// copied says that this is an older copy that the writer has not seen yet.
	copied bool
	// forgedEpoch is the epoch that a forged reply gave to an empty disk, 0 for none.
	forgedEpoch uint64
	// everCopied says that copied was set before: it returns when the process ends.
	everCopied bool
	// doubtful are the charges of an older copy since the process last started: the next
	// one can't tell them from what the original may have reported.
	doubtful counts
	// learned are those of a process that learned that its disk is an older copy, and began
	// learnedEpoch for it: until that is on disk, the next process can't tell them either.
	learned      counts
	learnedEpoch uint64
	// segments counts the journal's segments that were begun.
	segments int
	// rotten says that bits flipped since a process last read the journal as a whole.
	rotten bool
	// archiveRotten says that bits flipped in reported batches, and flipped how many did in all. batchesLost are
	// those, by epoch and number, that the edge could not send again; recordsLost says that it lost others.
	archiveRotten, recordsLost bool
	// abandoned says that a forged reply, or what the retired edge reported with another disk, had it
	// drop what it had not reported.
	abandoned   bool
	flipped     int
	batchesLost map[[2]uint64]bool
	// freed has the content of files that were removed, the newest last: their blocks are given to other files.
	freed [][]byte
}

// freedFiles is of how many removed files the content is kept.
const freedFiles = 4

// free gives the blocks of a file that is removed to those that are written next.
func (d *disk) free(n *inode) {
	if n == nil {
		return
	}
	n.fold()
	d.freed = append(d.freed, slices.Clone(n.data))
	d.freed = d.freed[max(len(d.freed)-freedFiles, 0):]
}

func newDisk() *disk {
	return &disk{files: map[string]*inode{}, durable: map[string]*inode{}, doubtful: counts{}}
}

// clone copies the disk as a snapshot of it would.
func (d *disk) clone() *disk {
	c := newDisk()
	for name, n := range d.files {
		n.fold()
		c.files[name] = &inode{data: slices.Clone(n.data), onDisk: slices.Clone(n.data), end: n.end, cut: -1}
	}
	c.durable = maps.Clone(c.files)
	c.segments, c.rotten, c.archiveRotten, c.recordsLost, c.flipped = d.segments, d.rotten, d.archiveRotten, d.recordsLost, d.flipped
	c.abandoned = d.abandoned
	return c
}

// losePower keeps what was synced, and chance decides about the rest. It reports whether
// anything written was lost.
func (d *disk) losePower(random *rand.Rand) bool {
	lost := false
	files := map[string]*inode{}
	for _, name := range d.names() {
		n, before := d.files[name], d.durable[name]
		if n != before && random.IntN(2) == 0 {
			n, lost = before, true
		}
		if n != nil {
			lost = n.losePower(random, d.freed) || lost
			files[name] = n
		}
	}
	d.files, d.durable = files, maps.Clone(files)
	return lost
}

// goesOn reports whether the disk still has what a copy of it has, in the segments that both have, and no
// segment of the copy is newer than its own.
func (d *disk) goesOn(copied *disk) bool {
	newest := ""
	for name := range d.files {
		if isSegment(name) {
			newest = max(newest, name)
		}
	}
	for name, n := range copied.files {
		if !isSegment(name) {
			continue
		}
		if now := d.files[name]; name > newest || now != nil && !bytes.HasPrefix(now.data, n.data[:n.end]) {
			return false
		}
	}
	return true
}

// names lists all files, of the directory and of its durable form.
func (d *disk) names() []string {
	all := maps.Clone(d.files)
	maps.Copy(all, d.durable)
	return slices.Sorted(maps.Keys(all))
}

// losePower leaves the file as any subset of its dirty pages makes it: each is as the disk had
// it, as memory had it or, where the file was truncated, zeros. Where the file grew it may be what a
// removed file had at that place. The length is the old one, the new one or one between. It reports
// whether anything written was lost.
func (n *inode) losePower(random *rand.Rand, freed [][]byte) bool {
	n.fold()
	written := n.data[:n.end]
	if !n.clean() {
		n.durable, n.shown = 0, 0 // what shows it may be lost
		sizes := []int{len(n.onDisk), len(n.data)}
		slices.Sort(sizes)
		after := make([]byte, sizes[random.IntN(2)])
		if random.IntN(3) == 0 {
			after = make([]byte, sizes[0]+random.IntN(sizes[1]-sizes[0]+1))
		}
		all, none := random.IntN(6) == 0, random.IntN(6) == 0 // of the dirty pages, so that either is common
		var stale []byte
		if len(freed) > 0 && random.IntN(2) == 0 {
			stale = freed[random.IntN(len(freed))]
		}
		for at := 0; at < len(after); at += pageBytes {
			source := n.onDisk
			switch {
			case all || !none && random.IntN(2) == 0:
				source = n.data
			case at >= len(n.onDisk) && stale != nil:
				source = stale
			case n.cut >= 0 && at >= n.cut && random.IntN(3) == 0:
				continue
			}
			copyPage(after, source, at)
		}
		n.data = after
	}
	lost := !bytes.HasPrefix(n.data, written)
	n.end, n.cut, n.poisoned, n.onDisk = len(n.data), -1, false, slices.Clone(n.data)
	return lost
}

// copyPage copies the page at an offset, as far as both sides have it.
func copyPage(to, from []byte, at int) {
	if at < len(to) && at < len(from) {
		copy(to[at:min(at+pageBytes, len(to))], from[at:])
	}
}

// writeBack brings one page to the disk, as a kernel does at any time.
func (n *inode) writeBack(random *rand.Rand) {
	n.fold()
	if n.poisoned || len(n.data) == 0 {
		return
	}
	at := random.IntN(len(n.data)) / pageBytes * pageBytes
	if size := min(at+pageBytes, len(n.data)); size > len(n.onDisk) {
		n.onDisk = append(n.onDisk, make([]byte, size-len(n.onDisk))...)
	}
	copyPage(n.onDisk, n.data, at)
}

// sync brings everything to the disk.
func (n *inode) sync() {
	n.fold()
	if !n.poisoned {
		n.onDisk, n.cut = append(n.onDisk[:0], n.data...), -1
		n.setDurable(n.end)
	}
}

// syncUpTo brings to the disk what the file was when a sync began. What was written since may be there in part.
func (n *inode) syncUpTo(begun []byte, end int) {
	n.fold()
	if n.poisoned {
		return
	}
	size := min(len(begun), len(n.data))
	onDisk := slices.Clone(begun[:size])
	if len(n.onDisk) > size {
		onDisk = append(onDisk, n.onDisk[size:]...)
	}
	n.onDisk, n.cut = onDisk, n.cutMeanwhile
	n.setDurable(min(end, n.end))
}

func (n *inode) setDurable(size int) {
	if n.durable = size; n.snapshot == 0 {
		n.snapshot = size
	}
}

// rot flips one to three bits of the first bytes of a file, and returns how many.
func (n *inode) rot(random *rand.Rand, size int) int {
	bits := 1 + random.IntN(3)
	for range bits {
		at, bit := random.IntN(size), byte(1)<<random.IntN(8)
		n.data[at] ^= bit
		if at < len(n.onDisk) {
			n.onDisk[at] = n.data[at]
		}
	}
	return bits
}

// noteShown notes what a write says to have been durable: a frame frameSynced says it, and any write behind a
// segment's snapshot says it of that.
func (n *inode) noteShown(written []byte) {
	n.shown = max(n.shown, n.snapshot)
	if len(written) == syncedBytes {
		if size := binary.LittleEndian.Uint64(written[syncedBytes-8:]); size <= uint64(n.durable) {
			n.shown = max(n.shown, int(size))
		}
	}
}

// syncedBytes is the length of a frame frameSynced of package journal, which ends with a size in bytes.
const syncedBytes = 16

// clean reports whether the disk has everything, also what was put into a mapping.
func (n *inode) clean() bool {
	n.fold()
	return bytes.Equal(n.data, n.onDisk)
}

func (n *inode) truncate(size int) {
	n.fold()
	if size < len(n.data) {
		n.cut, n.cutMeanwhile = lowest(n.cut, size), lowest(n.cutMeanwhile, size)
	}
	n.data, n.end = slices.Clone(n.data[:size]), min(n.end, size)
	n.durable, n.snapshot, n.shown = min(n.durable, size), min(n.snapshot, size), min(n.shown, size)
	if bytes.HasPrefix(n.onDisk, n.data) { // what the sync lost is gone
		n.poisoned = false
	}
}

// lowest is the lower one of two sizes, of which the first may be -1 for none.
func lowest(cut, size int) int {
	if cut < 0 {
		return size
	}
	return min(cut, size)
}

// unmount ends a process's use of the disk.
func (d *disk) unmount() {
	for _, n := range d.files {
		n.fold()
		n.window, n.poisoned = nil, false
	}
}
