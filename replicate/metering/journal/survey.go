package journal

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"
)

// survey describes what a segment holds. An unreadable place counts as damage if the segment shows that
// it was durable: in the snapshot, if a record follows it; elsewhere, if a frameSynced or frameClosed
// follows it. Any other may come from a power cut.
type survey struct {
	name   string
	number uint64
	begin  int64 // where the records behind the snapshot begin, or the first that can be read
	synced int64 // bytes known to be durable
	end    int64 // where the segment ends: a power cut took what followed
	torn   int64 // bytes after the end, except zeros

	began  bool // the snapshot was durable
	closed bool // everything was durable, and nothing follows
	// gaps counts the damaged places; snapshotGaps counts those that lie wholly within the snapshot.
	gaps, snapshotGaps int
}

func (s *survey) damaged() bool  { return s.gaps > 0 }
func (s *survey) complete() bool { return s.closed && !s.damaged() }

// aside reports whether the segment was found damaged before and set aside.
func (s *survey) aside() bool { return strings.HasSuffix(s.name, corruptSuffix) }

// surveyor takes the frames of a segment, one after the other.
type surveyor struct {
	survey
	ended bool // the end of the snapshot was read
	gaps  []gap
	last  byte // kind of the last frame
}

// gap is a range of bytes between two frames.
type gap struct{ from, to int64 }

// survey reads the segment in a file.
func (j *Journal) survey(name string, number uint64) (*survey, error) {
	file, err := j.dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s := surveyor{survey: survey{name: name, number: number, begin: -1}}
	r := newReader(segmentFile(number), file)
	for {
		f, err := r.next()
		if err == io.EOF {
			return s.finish(r.at, r.at+r.unread), nil
		}
		if err != nil {
			return nil, err
		}
		s.add(&f)
	}
}

// surveyBefore reads the segment before another, which may have been set aside; nil for none.
func (j *Journal) surveyBefore(number uint64) (*survey, error) {
	names, err := j.dir.List()
	if err != nil {
		return nil, err
	}
	name := segmentName(number - 1)
	for _, name := range []string{name, name + corruptSuffix} {
		if slices.Contains(names, name) {
			return j.survey(name, number-1)
		}
	}
	return nil, nil
}

func (s *surveyor) add(f *frame) {
	if f.gap > 0 {
		s.gaps = append(s.gaps, gap{f.at - f.gap, f.at})
	}
	switch f.kind {
	case frameEnd:
		s.ended, s.begin = true, f.end()
		s.began = len(s.gaps) == 0
	case frameRecord, frameSynced, frameClosed:
		if s.begin < 0 {
			s.begin = f.at
		}
		s.began = true
		s.synced = max(s.synced, s.begin)
	}
	switch {
	case f.kind == frameSynced && len(f.record) == 8:
		s.synced = max(s.synced, min(int64(binary.LittleEndian.Uint64(f.record)), f.at))
	case f.kind == frameClosed:
		s.synced = max(s.synced, f.at)
	}
	s.last = f.kind
}

// finish judges the gaps. read is where the last frame ends, written where non-zero bytes end.
func (s *surveyor) finish(read, written int64) *survey {
	s.end = read
	for _, g := range s.gaps {
		//mutant:damage-taken-for-a-torn-tail
		if g.from >= s.synced {
			s.end = g.from
			break
		}
		s.survey.gaps++
		if s.onlySnapshot(g) {
			s.snapshotGaps++
		}
	}
	s.torn = written - s.end
	s.closed = s.last == frameClosed && s.torn == 0
	return &s.survey
}

// onlySnapshot reports whether a gap lies wholly within the snapshot.
func (s *surveyor) onlySnapshot(g gap) bool {
	if s.ended {
		return g.from < s.begin
	}
	return g.to < s.begin || g.to == s.begin && g.to-g.from == frameHead // the snapshot's end alone
}
