package journal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	segmentPrefix = "journal-"
	suffix        = ".log"
	// corruptSuffix ends the names of files that were set aside, as an operator finds them.
	corruptSuffix = ".corrupt"
)

func segmentName(number uint64) string {
	return fmt.Sprintf("%s%016d%s", segmentPrefix, number, suffix)
}

// segments lists the numbers of the segments, ascending.
func (j *Journal) segments() ([]uint64, error) {
	names, err := j.dir.List()
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		middle, ok := strings.CutPrefix(name, segmentPrefix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSuffix(middle, suffix), 10, 64); err == nil && segmentName(n) == name {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Rotate begins a new segment with a snapshot and deletes all older ones but the last. The
// owner's lock is held while the snapshot is taken, and not while it is written: a disk that
// hangs holds up only what is charged. After an error the old segment continues, unless only
// closing it or deleting older ones failed: then the new segment is in use, and the next Rotate
// deletes what is left.
func (j *Journal) Rotate(snapshot func(write func(record []byte))) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.writing.Lock()
	defer j.writing.Unlock()
	number := j.number
	taken, rest := j.take(snapshot)
	if err := j.rotate(taken.each); err != nil {
		if j.number == number { // else the snapshot has it
			j.owner.Lock()
			j.pending.prepend(rest)
			j.owner.Unlock()
		}
		return fmt.Errorf("rotate journal: %w", err)
	}
	return nil
}

// take takes a snapshot, and writes what was appended before it to the old segment. If that fails, droppable
// records are undone and not in the snapshot; the others are in it and in rest. Journal.writing is held.
func (j *Journal) take(snapshot func(write func([]byte))) (taken records, rest *Group) {
	j.writePending() // writes most of it without the owner's lock
	j.owner.Lock()
	g := j.swap()
	snapshot(taken.add)
	j.owner.Unlock()
	defer j.finish(g)
	if g.err = j.writeGroup(g); g.err == nil {
		return taken, &Group{}
	}
	// The disk does not write. Drop what was appended meanwhile too, rather than let it wait.
	j.owner.Lock()
	defer j.owner.Unlock()
	late := j.swap()
	defer j.finish(late)
	late.err = g.err
	rest = j.salvage(late)
	rest.prepend(j.salvage(g))
	taken = records{}
	snapshot(taken.add)
	return taken, rest
}

// records are a snapshot in memory.
type records struct {
	bytes []byte
	ends  []int // of each record in bytes
}

func (r *records) add(record []byte) {
	r.bytes = append(r.bytes, record...)
	r.ends = append(r.ends, len(r.bytes))
}

func (r *records) each(write func(record []byte)) {
	from := 0
	for _, end := range r.ends {
		write(r.bytes[from:end])
		from = end
	}
}

// rotate replaces the segment, once the pending group was written. The locks syncing and writing
// are held.
func (j *Journal) rotate(snapshot func(write func(record []byte))) error {
	//mutant:segment-dropped-before-archive-durable
	if err := j.archive.sync(); err != nil {
		return err
	}
	j.endSegment()
	number, old := j.number, j.file
	if err := j.begin(number+1, snapshot); err != nil {
		return err
	}
	// The old segment stays for its request ids.
	return errors.Join(closeFile(old), j.setAside(), j.dropBefore(number))
}

// endSegment makes the segment durable, and notes there that it is complete.
func (j *Journal) endSegment() {
	if j.stuck != nil {
		return
	}
	if err := j.file.Sync(); err != nil {
		j.stuck = fmt.Errorf("sync journal: %w", err)
		return
	}
	_ = j.writeFrame(frameClosed, nil) // without it, less can be rebuilt when the next snapshot is damaged
}

// begin creates a segment that starts with a snapshot and makes it the current one. After an
// error the old one stays. The same locks are held as for rotate.
func (j *Journal) begin(number uint64, snapshot func(write func(record []byte))) error {
	name := segmentName(number)
	if err := j.dir.Remove(name); err != nil {
		return err
	}
	file, err := j.dir.Append(name)
	if err != nil {
		return err
	}
	size, err := writeSnapshot(file, segmentFile(number), snapshot)
	if err == nil {
		err = j.dir.Sync()
	}
	if err != nil {
		// It may be there again after a power cut, or stay: what goes to the old segment would be hidden by its snapshot.
		if kept := errors.Join(file.Truncate(0), file.Sync()); kept != nil && j.file != nil && j.stuck == nil {
			j.stuck = fmt.Errorf("empty a segment that was given up: %w", kept)
		}
		return errors.Join(err, file.Close(), j.dir.Remove(name))
	}
	j.file, j.number, j.size, j.marked = file, number, size, size
	j.unclean, j.stuck, j.unsaved = false, nil, false
	return nil
}

// snapshotChunk is how many bytes of a snapshot are written at once.
const snapshotChunk = 1 << 20

// writeSnapshot writes a snapshot and the frame at its end, and returns its size.
func writeSnapshot(file File, of fileOf, snapshot func(write func(record []byte))) (int64, error) {
	var buffer []byte
	var size int64
	var failed error
	put := func(kind byte, record []byte) {
		at := len(buffer)
		buffer = appendFrame(buffer, kind, record)
		of.place(buffer[at:], size+int64(at))
	}
	flush := func() {
		if failed == nil {
			_, failed = file.Write(buffer)
		}
		size += int64(len(buffer))
		buffer = buffer[:0]
	}
	snapshot(func(record []byte) {
		if put(frameSnapshot, record); len(buffer) >= snapshotChunk {
			flush()
		}
	})
	put(frameEnd, nil)
	flush()
	if failed == nil {
		failed = file.Sync()
	}
	return size, failed
}

// dropBefore removes the segments below number.
func (j *Journal) dropBefore(number uint64) error {
	numbers, err := j.segments()
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if n < number {
			err = errors.Join(err, j.dir.Remove(segmentName(n)))
		}
	}
	return err
}

// setAside renames the files that are damaged. Nothing deletes them but an operator.
func (j *Journal) setAside() error {
	if len(j.damaged) == 0 {
		return nil
	}
	names, err := j.dir.List()
	if err != nil {
		return err
	}
	for _, name := range j.damaged {
		if slices.Contains(names, name) {
			err = errors.Join(err, j.dir.Rename(name, name+corruptSuffix))
		}
	}
	if err == nil {
		err = j.dir.Sync()
	}
	if err == nil {
		j.damaged = nil
	}
	return err
}

// Corrupt lists the files that were set aside and are still in the state directory. Like Replaced it takes no
// lock, so it must not be called while Open runs.
func (j *Journal) Corrupt() ([]string, error) {
	if j.dir == nil {
		return nil, ErrNotOpen
	}
	names, err := j.dir.List()
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, corruptSuffix) }), err
}
