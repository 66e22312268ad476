package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// DefaultSegment is the size in bytes at which a segment is full: about a minute of
// 20,000 charges a second, and far more than the request ids that are remembered.
const DefaultSegment = 64 << 20

// Group is what is written to the segment by one write.
type Group struct {
	bytes   []byte
	records []frameRange
	err     error
	written bool
}

type frameRange struct {
	from, to  int
	droppable bool
}

// Owner is the state that the records describe. Append and Group are called under its
// lock, Write, Settled, Sync, Flushed, Rotate and Close without it.
type Owner interface {
	Lock()
	Unlock()
	// Drop takes the effect of a droppable record back, because it could not be written.
	// The lock is held.
	Drop(record []byte)
}

// Journal is an edge's journal.
type Journal struct {
	dir   Dir
	owner Owner

	// syncing is held by who brings a segment to the disk or changes segments. It is
	// taken before mu.
	syncing sync.Mutex
	mu      sync.Mutex // guards what follows; taken before the owner's lock
	open    *Group     // also guarded by the owner's lock
	spare   []byte
	file    File
	number  uint64 // of the segment
	size    int64  // of the segment's whole frames
	unclean bool   // bytes of a failed write may stand after size
	stuck   error  // a sync failed: only a new segment helps
	unsaved bool   // written since the last sync

	kept kept
}

// Append adds a record to the open group. When the group can't be written, a droppable
// record is given to the owner's Drop, another is written with the next group.
func (j *Journal) Append(record []byte, droppable bool) {
	from := len(j.open.bytes)
	j.open.bytes = appendFrame(j.open.bytes, record)
	j.open.records = append(j.open.records, frameRange{from, len(j.open.bytes), droppable})
}

// Group is the group that holds the records appended so far.
func (j *Journal) Group() *Group { return j.open }

// Write writes the group unless another caller did. Its records survive the end of the
// process when Write returns nil; after an error none of its droppable ones stand.
func (j *Journal) Write(g *Group) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !g.written {
		j.writeOpen()
	}
	return g.err
}

// Settled calls f when each record appended so far is written or, after a failed write,
// dropped, and none of them is being written: what f decides can't be undone by a record
// before it. The owner's lock is held throughout.
func (j *Journal) Settled(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.owner.Lock()
	defer j.owner.Unlock()
	g := j.swap()
	if g.err = j.write(g.bytes); g.err != nil {
		j.open.prepend(j.salvage(g))
	}
	j.finish(g)
	f()
}

// writeOpen writes the open group. j.mu is held.
func (j *Journal) writeOpen() {
	j.owner.Lock()
	g := j.swap()
	j.owner.Unlock()
	if g.err = j.write(g.bytes); g.err != nil {
		j.owner.Lock()
		j.open.prepend(j.salvage(g))
		j.owner.Unlock()
	}
	j.finish(g)
}

// swap opens a new group and returns the old one. Both locks are held.
func (j *Journal) swap() *Group {
	g := j.open
	j.open = &Group{bytes: j.spare[:0], records: g.records[len(g.records):]}
	j.spare = nil
	return g
}

func (j *Journal) finish(g *Group) {
	g.written = true
	j.spare, g.bytes, g.records = g.bytes, nil, nil
}

// salvage has the owner drop what may be dropped of a group that could not be written,
// newest first, and returns the rest. Both locks are held.
func (j *Journal) salvage(failed *Group) *Group {
	rest := &Group{}
	for _, r := range failed.records {
		if !r.droppable {
			at := len(rest.bytes)
			rest.bytes = append(rest.bytes, failed.bytes[r.from:r.to]...)
			rest.records = append(rest.records, frameRange{at, len(rest.bytes), false})
		}
	}
	for _, r := range slices.Backward(failed.records) {
		if r.droppable {
			j.owner.Drop(failed.bytes[r.from+frameHead : r.to])
		}
	}
	return rest
}

// prepend puts the records of first before those of g.
func (g *Group) prepend(first *Group) {
	shift := len(first.bytes)
	if shift == 0 {
		return
	}
	for _, r := range g.records {
		first.records = append(first.records, frameRange{r.from + shift, r.to + shift, r.droppable})
	}
	g.bytes, g.records = append(first.bytes, g.bytes...), first.records
}

// write appends bytes to the segment, all or nothing.
func (j *Journal) write(bytes []byte) error {
	if len(bytes) == 0 {
		return nil
	}
	if j.stuck != nil {
		return j.stuck
	}
	if j.unclean {
		if err := j.file.Truncate(j.size); err != nil {
			return fmt.Errorf("clean journal: %w", err)
		}
		j.unclean = false
	}
	if n, err := j.file.Write(bytes); err != nil {
		// At once: whose requests these are is told that they are not charged.
		//mutant:failed-write-not-cut-off
		j.unclean = n > 0 && j.file.Truncate(j.size) != nil
		return fmt.Errorf("write journal: %w", err)
	}
	j.size += int64(len(bytes))
	j.unsaved = true
	return nil
}

// Sync writes the open group and makes everything written durable. After an error of
// the disk's sync nothing is written any more until Rotate made a new segment. Charges
// are written on while the disk works.
func (j *Journal) Sync() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	j.writeOpen()
	file, stuck, due := j.file, j.stuck, j.unsaved
	j.unsaved = false // what is written from here on is for the next sync
	j.mu.Unlock()
	if stuck != nil || !due {
		return stuck
	}
	//mutant:failed-sync-ignored
	if err := file.Sync(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.stuck = fmt.Errorf("sync journal: %w", err)
		return j.stuck
	}
	return nil
}

// Flushed makes everything durable that was appended, and fails when any of it could not
// be written.
func (j *Journal) Flushed() error {
	j.owner.Lock()
	g := j.open
	j.owner.Unlock()
	if err := j.Sync(); err != nil {
		return err
	}
	return g.err
}

// Full reports whether the segment is due for Rotate.
func (j *Journal) Full(limit int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size >= limit || j.stuck != nil
}

// Rotate begins a new segment with a snapshot, and drops all but the one before it. The
// owner's lock is held throughout, so that the snapshot is of one moment. When it fails
// the old segment goes on.
func (j *Journal) Rotate(snapshot func(write func(record []byte))) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.owner.Lock()
	defer j.owner.Unlock()
	g := j.swap()
	var rest *Group
	if g.err = j.write(g.bytes); g.err != nil {
		rest = j.salvage(g)
	}
	j.finish(g)
	number := j.number
	if err := j.rotate(snapshot); err != nil {
		if rest != nil && j.number == number { // else the snapshot has it
			j.open.prepend(rest)
		}
		return fmt.Errorf("rotate journal: %w", err)
	}
	return nil
}

func (j *Journal) rotate(snapshot func(write func(record []byte))) error {
	if err := j.kept.sync(); err != nil {
		return err
	}
	if j.stuck == nil {
		if err := j.file.Sync(); err != nil {
			j.stuck = fmt.Errorf("sync journal: %w", err)
		}
	}
	old := j.file
	if err := j.begin(j.number+1, snapshot); err != nil {
		return err
	}
	return errors.Join(old.Close(), j.dropBefore(j.number-1))
}

// begin makes a segment that starts with a snapshot and ends it with an empty record.
func (j *Journal) begin(number uint64, snapshot func(write func(record []byte))) error {
	name := segmentName(number)
	if err := j.dir.Remove(name); err != nil {
		return err
	}
	file, err := j.dir.Append(name)
	if err != nil {
		return err
	}
	size, err := writeSnapshot(file, snapshot)
	if err == nil {
		err = j.dir.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Close(), j.dir.Remove(name))
	}
	j.file, j.number, j.size = file, number, size
	j.unclean, j.stuck, j.unsaved = false, nil, false
	return nil
}

// snapshotChunk is how many bytes of a snapshot are written at once.
const snapshotChunk = 1 << 20

func writeSnapshot(file File, snapshot func(write func(record []byte))) (int64, error) {
	var buffer []byte
	var size int64
	var failed error
	flush := func() {
		if failed == nil {
			_, failed = file.Write(buffer)
		}
		size += int64(len(buffer))
		buffer = buffer[:0]
	}
	snapshot(func(record []byte) {
		if buffer = appendFrame(buffer, record); len(buffer) >= snapshotChunk {
			flush()
		}
	})
	buffer = appendFrame(buffer, nil)
	flush()
	if failed == nil {
		failed = file.Sync()
	}
	return size, failed
}

// Close makes everything durable and gives the directory up. What is to be written afterwards
// fails with os.ErrClosed.
func (j *Journal) Close() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writeOpen()
	err := j.stuck
	if err == nil && j.unsaved {
		err = j.file.Sync()
	}
	j.stuck = fmt.Errorf("write journal: %w", os.ErrClosed)
	return errors.Join(err, j.kept.close(), j.file.Close(), j.dir.Close())
}
