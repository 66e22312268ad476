package journal

import "slices"

// Group is the content of one write to the segment: the records that were appended since
// the write before it.
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

// Append adds a record to the pending group. When the group can't be written, a droppable
// record is given to the owner's Drop, any other is written with the next group.
func (j *Journal) Append(record []byte, droppable bool) {
	from := len(j.pending.bytes)
	j.pending.bytes = appendFrame(j.pending.bytes, frameRecord, record)
	j.pending.records = append(j.pending.records, frameRange{from, len(j.pending.bytes), droppable})
}

// Group is the group of the records appended last.
func (j *Journal) Group() *Group { return j.pending }

// place masks the frames of a group for their place in a segment, or takes the masks off again.
func (g *Group) place(segment fileOf, at int64) {
	for _, r := range g.records {
		segment.place(g.bytes[r.from:], at+int64(r.from))
	}
}

// swap begins a new group and returns the one before. Journal.writing and the owner's lock
// are held.
func (j *Journal) swap() *Group {
	g := j.pending
	j.pending = &Group{bytes: j.spare[:0], records: g.records[len(g.records):]}
	j.spare = nil
	return g
}

func (j *Journal) finish(g *Group) {
	g.written = true
	j.spare, g.bytes, g.records = g.bytes, nil, nil
}

// salvage has the owner drop the droppable records of a group that could not be written,
// newest first, and returns the others. Journal.writing and the owner's lock are held.
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
