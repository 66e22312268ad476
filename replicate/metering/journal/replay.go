package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Replayed tells what Open found.
type Replayed struct {
	// Records is the number of records in the newest segment.
	Records int
	// Torn is how many bytes behind them were dropped because they could not be read.
	Torn int64
}

// Open reads the journal in dir and continues it. The records of the newest segment go to
// replay, after those of the segment before it went to ids; an error of either ends it. An
// empty directory becomes a journal without records.
func Open(dir Dir, owner Owner, ids, replay func(record []byte) error) (*Journal, Replayed, error) {
	j := &Journal{
		dir: dir, owner: owner, pending: &Group{},
		syncing: NewLock(RankSync), writing: NewLock(RankWrite),
		archive: reportArchive{mu: NewLock(RankArchive), dir: dir},
	}
	numbers, err := j.segments()
	if err != nil {
		return nil, Replayed{}, fmt.Errorf("list journal: %w", err)
	}
	for len(numbers) > 0 {
		newest := numbers[len(numbers)-1]
		whole, err := j.whole(newest)
		if err != nil {
			return nil, Replayed{}, fmt.Errorf("read journal: %w", err)
		}
		if whole {
			return j.reopen(numbers, ids, replay)
		}
		// A crash came before its snapshot was durable: the one before still has everything.
		if err := dir.Remove(segmentName(newest)); err != nil {
			return nil, Replayed{}, fmt.Errorf("drop unfinished journal: %w", err)
		}
		numbers = numbers[:len(numbers)-1]
	}
	if err := j.begin(1, func(func([]byte)) {}); err != nil {
		return nil, Replayed{}, fmt.Errorf("begin journal: %w", err)
	}
	return j, Replayed{}, nil
}

// reopen replays the newest segment and continues it.
func (j *Journal) reopen(numbers []uint64, ids, replay func([]byte) error) (*Journal, Replayed, error) {
	newest := numbers[len(numbers)-1]
	if len(numbers) > 1 {
		if _, _, err := j.read(numbers[len(numbers)-2], ids); err != nil {
			return nil, Replayed{}, fmt.Errorf("replay journal: %w", err)
		}
	}
	records, good, err := j.read(newest, replay)
	if err != nil {
		return nil, Replayed{}, fmt.Errorf("replay journal: %w", err)
	}
	file, err := j.dir.Append(segmentName(newest))
	if err != nil {
		return nil, Replayed{}, fmt.Errorf("open journal: %w", err)
	}
	size, err := file.Size()
	var torn int64
	if err == nil && size > good {
		if torn, err = j.torn(newest, good); err == nil {
			err = file.Truncate(good)
		}
	}
	if err == nil {
		// Clients may have seen what a crashed process wrote and did not sync. It may also
		// have ended between creating the segment and syncing the directory.
		err = errors.Join(file.Sync(), j.dir.Sync())
	}
	if err != nil {
		return nil, Replayed{}, errors.Join(fmt.Errorf("open journal: %w", err), file.Close())
	}
	j.file, j.number, j.size = file, newest, good
	return j, Replayed{Records: records, Torn: torn}, nil
}

// whole reports whether a segment has all of the snapshot that it begins with.
func (j *Journal) whole(number uint64) (bool, error) {
	file, err := j.dir.Open(segmentName(number))
	if err != nil {
		return false, err
	}
	defer file.Close()
	for r := newReader(file); ; {
		switch record, err := r.next(); {
		case err == io.EOF || err == errTorn:
			return false, nil
		case err != nil:
			return false, err
		case len(record) == 0:
			return true, nil
		}
	}
}

// read passes the records of a segment to each, up to the first that can't be read. It
// returns their number and the bytes that they take.
func (j *Journal) read(number uint64, each func([]byte) error) (records int, good int64, err error) {
	file, err := j.dir.Open(segmentName(number))
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	r := newReader(file)
	for {
		record, err := r.next()
		if err == io.EOF || err == errTorn {
			return records, r.good, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if len(record) == 0 {
			continue
		}
		records++
		if err := each(record); err != nil {
			return 0, 0, err
		}
	}
}

// torn is how many bytes of a segment follow the good ones, not counting zeros at the end of
// the file, where nothing was written.
func (j *Journal) torn(number uint64, good int64) (torn int64, err error) {
	file, err := j.dir.Open(segmentName(number))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, err := io.CopyN(io.Discard, file, good); err != nil {
		return 0, err
	}
	from := bufio.NewReader(file)
	for at := int64(1); ; at++ {
		switch b, err := from.ReadByte(); {
		case err == io.EOF:
			return torn, nil
		case err != nil:
			return 0, err
		case b != 0:
			torn = at
		}
	}
}
