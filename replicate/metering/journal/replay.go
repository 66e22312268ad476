package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Replayed tells what Open found.
type Replayed struct {
	// Records is the number of records that were replayed as state.
	Records int
	// Torn is how many bytes after these records were dropped, since they were never durable.
	Torn int64
	// Unfinished lists segments that were dropped, since a crash came before their snapshot was durable.
	Unfinished []string
	// Damaged lists segments that were durable and can't be read completely. A segment that is needed only for
	// its request ids is set aside at once. Any other is set aside by Rotate, which must run before anything
	// can be written.
	Damaged []string
	// Lost says that some of the unreadable records held state.
	Lost bool
	// IDsLost says that some of them matter only for their request ids.
	IDsLost bool
}

// errDamaged is the error of writes until Rotate has begun a segment to replace a damaged one.
var errDamaged = errors.New("the journal was damaged: a new segment has to begin")

// ErrNotOpen is the error of every call of a journal that is not open yet.
var ErrNotOpen = errors.New("the journal is not open")

// New makes a journal that is not open.
func New(owner Owner) *Journal {
	return &Journal{
		owner: owner, pending: &Group{}, current: current{stuck: ErrNotOpen},
		syncing: NewLock(RankSync), writing: watchedLock{lock: NewLock(RankWrite)}, archive: reportArchive{mu: NewLock(RankArchive), suspect: map[int32]bool{}},
	}
}

// Open reads the journal in dir and continues it. The Journal must not be open; records appended to it
// before are discarded. The records of the segment before the newest go to ids, then those of the newest to
// replay; an error of either ends Open. An empty directory becomes a journal without records. For a damaged
// newest segment, replay gets the readable records, and an empty one in place of the rest: see Replayed.
//
// Open calls ready with the owner's lock held, before anything is written to the journal. After an error it can
// be called again; dir is not closed.
func (j *Journal) Open(dir Dir, ids, replay func(record []byte) error, ready func(*Replayed)) (Replayed, error) {
	opened, found, err := open(dir, j.owner, ids, replay)
	if err != nil {
		return found, err
	}
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.writing.Lock()
	defer j.writing.Unlock()
	j.owner.Lock()
	defer j.owner.Unlock()
	j.archive.mu.Lock()
	j.archive.dir = dir
	j.archive.mu.Unlock()
	j.dir, j.current = dir, opened.current
	j.pending = &Group{}
	ready(&found)
	return found, nil
}

// open returns a separate journal that continues the one in dir: the files are read without the locks of the
// Journal that takes it over.
func open(dir Dir, owner Owner, ids, replay func(record []byte) error) (*Journal, Replayed, error) {
	j := New(owner)
	j.dir, j.archive.dir, j.stuck = dir, dir, nil
	var found Replayed
	numbers, err := j.segments()
	if err != nil {
		return nil, found, fmt.Errorf("list journal: %w", err)
	}
	for _, number := range slices.Backward(numbers) {
		newest, err := j.survey(segmentName(number), number)
		if err != nil {
			return nil, found, fmt.Errorf("read journal: %w", err)
		}
		if newest.began {
			if err := j.reopen(newest, &found, ids, replay); err != nil {
				return nil, found, err
			}
			return j, found, nil
		}
		if err := j.drop(newest, &found); err != nil {
			return nil, found, fmt.Errorf("drop unfinished journal: %w", err)
		}
	}
	first := uint64(1)
	if len(found.Damaged) > 0 { // damaged segments keep their numbers
		first += numbers[len(numbers)-1]
	}
	if err := j.begin(first, func(func([]byte)) {}); err != nil {
		return nil, found, fmt.Errorf("begin journal: %w", err)
	}
	return j, found, nil
}

// drop removes a segment whose snapshot was not durable before a crash: the segment before still has
// everything. Without such a segment, a file that holds no frame, but more bytes than a frame's head,
// is set aside as damaged.
func (j *Journal) drop(s *survey, found *Replayed) error {
	before, err := j.surveyBefore(s.number)
	if err != nil {
		return err
	}
	if before != nil && before.began || s.end > 0 || s.torn <= frameHead {
		found.Unfinished = append(found.Unfinished, s.name)
		return j.dir.Remove(s.name)
	}
	found.Damaged, found.Lost, found.IDsLost = append(found.Damaged, s.name), true, true
	j.damaged = []string{s.name}
	return j.setAside()
}

// reopen replays the newest segment and continues it, unless it is damaged.
func (j *Journal) reopen(newest *survey, found *Replayed, ids, replay func([]byte) error) error {
	before, err := j.surveyBefore(newest.number)
	if err == nil {
		err = j.replay(newest, before, found, ids, replay)
	}
	if err != nil {
		return fmt.Errorf("replay journal: %w", err)
	}
	j.number, j.size = newest.number, newest.end
	if before != nil && before.damaged() && !before.aside() {
		j.damaged = append(j.damaged, before.name)
	}
	if newest.damaged() {
		found.Damaged = append(slices.Clone(j.damaged), newest.name)
		j.damaged, j.stuck = found.Damaged, errDamaged
		return nil
	}
	found.Damaged, found.Torn = j.damaged, newest.torn
	if err := j.setAside(); err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	return j.continueIn(newest)
}

// replay passes the records of the newest segment, or what there is of them, and the request ids
// of the one before.
func (j *Journal) replay(newest, before *survey, found *Replayed, ids, replay func([]byte) error) error {
	found.Lost = newest.gaps > newest.snapshotGaps || newest.snapshotGaps > 0 && (before == nil || !before.complete())
	found.IDsLost = found.Lost || before != nil && before.damaged()
	if newest.snapshotGaps > 0 && before != nil {
		// The segment before has the records that the damaged snapshot summed up.
		for _, part := range []struct {
			of   *survey
			from int64
		}{{before, 0}, {newest, newest.begin}} {
			records, err := j.read(part.of, part.from, replay)
			if err != nil {
				return err
			}
			found.Records += records
			if part.of == before && !before.complete() {
				if err := replay(nil); err != nil { // its end may be missing
					return err
				}
			}
		}
		return nil
	}
	if before != nil {
		if _, err := j.read(before, 0, ids); err != nil {
			return err
		}
	}
	records, err := j.read(newest, 0, replay)
	found.Records = records
	return err
}

// continueIn makes a segment, of which everything was replayed, the current one.
func (j *Journal) continueIn(newest *survey) error {
	file, err := j.dir.Append(newest.name)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	size, err := file.Size()
	if err == nil && size > newest.end {
		err = file.Truncate(newest.end)
	}
	if err == nil {
		// Clients may have seen what a crashed process wrote and did not sync. It may also
		// have ended between creating the segment and syncing the directory.
		err = errors.Join(file.Sync(), j.dir.Sync())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open journal: %w", err), file.Close())
	}
	j.file, j.marked = file, newest.synced
	j.mark(j.size)
	return nil
}

// read passes the records of a segment, from an offset on, to each. It returns their number.
func (j *Journal) read(s *survey, from int64, each func([]byte) error) (records int, err error) {
	file, err := j.dir.Open(s.name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for r := newReader(segmentFile(s.number), file); ; {
		f, err := r.next()
		if err == io.EOF || err == nil && f.at >= s.end {
			return records, nil
		}
		if err != nil {
			return 0, err
		}
		if f.gap > 0 && f.at > from {
			if err := each(nil); err != nil {
				return 0, err
			}
		}
		if f.at < from || f.kind != frameRecord && f.kind != frameSnapshot {
			continue
		}
		records++
		if err := each(f.record); err != nil {
			return 0, err
		}
	}
}
