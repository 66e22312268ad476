package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// DefaultSegment is the size in bytes at which a segment is full: about a minute of 20,000
// charges a second, and far more than the request ids that are remembered.
const DefaultSegment = 64 << 20

// Owner is the state that the records describe. Append and Group are called under its lock;
// Write, Barrier, Sync, Commit, Rotate and Close without it.
type Owner interface {
	Lock()
	Unlock()
	// Drop undoes a droppable record, because it could not be written. The lock is held.
	Drop(record []byte)
}

// Journal is an edge's journal. Package comment, "Locks", has the order of its locks.
type Journal struct {
	dir   Dir
	owner Owner

	// syncing is held while a segment is synced or replaced.
	syncing Lock

	writing watchedLock // guards pending, spare and current
	pending *Group      // guarded by the owner's lock as well
	spare   []byte      // the buffer of the group written last, for the next one
	current

	replaced atomic.Int64 // segments of which somebody else deleted or cut the file

	archive reportArchive // has a lock of its own
}

// current is the segment that is written to.
type current struct {
	file    File
	number  uint64
	size    int64    // of its whole frames
	marked  int64    // how many of them the segment itself records as durable
	unclean bool     // part of a failed write may follow size
	stuck   error    // nothing is written until Rotate: a sync failed, or the segment is damaged
	unsaved bool     // something was written since the last sync
	damaged []string // files that are set aside once a new segment has begun
}

// watchedLock is a Lock for which others can see, without waiting for it, how long one holder keeps it.
type watchedLock struct {
	lock  Lock
	turns atomic.Uint64 // odd while the lock is held
}

// Lock takes the lock.
func (l *watchedLock) Lock() { l.lock.Lock(); l.turns.Add(1) }

// TryLock takes the lock if nobody holds it.
func (l *watchedLock) TryLock() bool {
	if !l.lock.TryLock() {
		return false
	}
	l.turns.Add(1)
	return true
}

// Unlock releases the lock.
func (l *watchedLock) Unlock() { l.turns.Add(1); l.lock.Unlock() }

// Turn is an odd number while the segment is written to or replaced, a different one each time. As long as
// it returns the same odd number, the disk has not answered.
func (j *Journal) Turn() uint64 { return j.writing.turns.Load() }

// TryWrite is Write, unless the segment is being written to: then it returns false at once.
func (j *Journal) TryWrite(g *Group) (tried bool, err error) {
	if !j.writing.TryLock() {
		return false, nil
	}
	defer j.writing.Unlock()
	return true, j.writeUnlessWritten(g)
}

// Write writes the group unless another caller did. When it returns nil, the group's records
// survive the end of the process; after an error its droppable records are undone.
func (j *Journal) Write(g *Group) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.writeUnlessWritten(g)
}

func (j *Journal) writeUnlessWritten(g *Group) error {
	if !g.written {
		j.writePending()
	}
	return g.err
}

// Barrier calls f once every record appended so far is either written or dropped, so that
// nothing that f decides is undone by the loss of an earlier record. The owner's lock is
// held from then until f has returned.
func (j *Journal) Barrier(f func()) {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.writePending() // most of it without the owner's lock: a disk that hangs holds up nobody else
	j.owner.Lock()
	defer j.owner.Unlock()
	g := j.swap()
	if g.err = j.writeGroup(g); g.err != nil {
		j.pending.prepend(j.salvage(g))
	}
	j.finish(g)
	f()
}

// writePending writes the pending group. Journal.writing is held.
func (j *Journal) writePending() {
	j.owner.Lock()
	g := j.swap()
	j.owner.Unlock()
	if g.err = j.writeGroup(g); g.err != nil {
		j.owner.Lock()
		j.pending.prepend(j.salvage(g))
		j.owner.Unlock()
	}
	j.finish(g)
}

// writeGroup appends a group to the segment, all or nothing.
func (j *Journal) writeGroup(g *Group) error {
	if len(g.bytes) == 0 {
		return nil
	}
	at := j.size
	g.place(segmentFile(j.number), at)
	if err := j.write(g.bytes); err != nil {
		g.place(segmentFile(j.number), at) // unmasked again: a failed group's records may be written elsewhere
		return err
	}
	j.unsaved = true
	return nil
}

// write appends placed frames to the segment, all or nothing.
func (j *Journal) write(bytes []byte) error {
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
		if gone := j.check(); gone != nil {
			return gone
		}
		// Cut off at once: the clients of these requests are told that nothing was charged.
		// The next sync makes the cut durable, so that a power cut does not undo it.
		//mutant:failed-write-not-cut-off
		j.unclean = n > 0 && j.file.Truncate(j.size) != nil
		j.unsaved = j.unsaved || n > 0
		return fmt.Errorf("write journal: %w", err)
	}
	j.size += int64(len(bytes))
	return nil
}

// mark records in the segment that its first size bytes are durable. An unreadable place before that is
// damage; a power cut may have taken what follows. The mark is synced with the next sync; without it,
// replay can tell less.
func (j *Journal) mark(size int64) {
	if size <= j.marked {
		return
	}
	var record [8]byte
	binary.LittleEndian.PutUint64(record[:], uint64(size))
	if j.writeFrame(frameSynced, record[:]) == nil {
		j.marked = size
	}
}

func (j *Journal) writeFrame(kind byte, record []byte) error {
	frame := appendFrame(nil, kind, record)
	segmentFile(j.number).place(frame, j.size)
	return j.write(frame)
}

// Sync writes the pending group and makes everything written durable. Charges are written
// while the disk works. After a failed sync of the file nothing is written until Rotate has
// begun a new segment.
func (j *Journal) Sync() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.writing.Lock()
	j.writePending()
	file, size, stuck, due := j.file, j.size, j.stuck, j.unsaved
	j.unsaved = false // what is written from here on needs the next sync
	j.writing.Unlock()
	if stuck != nil || !due {
		return stuck
	}
	err := file.Sync()
	j.writing.Lock()
	defer j.writing.Unlock()
	//mutant:failed-sync-ignored
	if err != nil {
		j.stuck = fmt.Errorf("sync journal: %w", err)
		return j.stuck
	}
	j.mark(size)
	return nil
}

// Commit makes everything appended so far durable. It fails when any of it could not be
// written.
func (j *Journal) Commit() error {
	j.owner.Lock()
	g := j.pending
	j.owner.Unlock()
	return j.CommitGroup(g)
}

// CommitGroup is Commit for the records of a group, which another caller may have written meanwhile, or
// failed to write.
func (j *Journal) CommitGroup(g *Group) error {
	if err := j.Sync(); err != nil {
		return err
	}
	return g.err
}

// Check detects whether somebody else deleted, replaced or truncated the segment. If so, nothing is written
// until Rotate has begun a new one, whose snapshot has the content of the lost one.
func (j *Journal) Check() {
	j.writing.Lock()
	defer j.writing.Unlock()
	_ = j.check() // the next write returns it
}

func (j *Journal) check() error {
	if j.stuck != nil {
		return nil
	}
	if err := j.file.Intact(j.size); errors.Is(err, ErrReplaced) {
		j.stuck = fmt.Errorf("write journal %s: %w", segmentName(j.number), err)
		j.damaged = append(j.damaged, segmentName(j.number))
		j.replaced.Add(1)
		return j.stuck
	}
	return nil
}

// Replaced counts the segments that were deleted, replaced or cut short by somebody else. It takes no lock:
// it is read for metrics, also while a write hangs.
func (j *Journal) Replaced() int64 { return j.replaced.Load() }

// Full reports whether Rotate is due: the segment has limit bytes, or nothing can be written to it.
func (j *Journal) Full(limit int64) bool {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.size >= limit || j.stuck != nil
}

const (
	probeName = "probe.tmp"
	// probeBytes exceeds a group of charges: fewer bytes may fit into a block's free end.
	probeBytes = 64 << 10
)

// Probe reports whether the disk can store a group of charges again. It writes a scratch file rather than
// rotate: rotating too soon would forget the request ids of the last minutes.
func (j *Journal) Probe() error {
	file, err := j.dir.Append(probeName)
	if err != nil {
		return fmt.Errorf("try the disk: %w", err)
	}
	// Unlinked at once, so that the file is gone however the process ends.
	if err = j.dir.Remove(probeName); err == nil {
		_, err = file.Write(make([]byte, probeBytes))
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("try the disk: %w", err)
	}
	return nil
}

// Close makes everything durable and releases the directory. Later writes fail with
// os.ErrClosed.
func (j *Journal) Close() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.writing.Lock()
	defer j.writing.Unlock()
	j.writePending()
	err := j.stuck
	if err == nil && j.unsaved {
		err = j.file.Sync()
	}
	if err == nil {
		j.mark(j.size)
	}
	j.stuck = fmt.Errorf("write journal: %w", os.ErrClosed)
	if j.dir == nil {
		return nil
	}
	return errors.Join(err, j.archive.close(), closeFile(j.file), j.dir.Close())
}

// closeFile closes a segment; nil for one that was damaged.
func closeFile(f File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}
