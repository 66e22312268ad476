package extsort

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Rows iterates over the records of a sorter in order.
type Rows struct {
	runs       []*reader // a heap: the first run has the smallest record
	texts      []byte    // the records in memory, if there are no runs
	index      []entry   // the records of texts still to be returned
	key, value []byte
	err        error
}

// Rows ends the adding of records and returns an iterator over them. Several iterators may be used
// concurrently, one per goroutine, but Rows itself must be called from one goroutine. After Close
// they fail, unless all records were in memory.
func (s *Sorter) Rows() (*Rows, error) {
	if err := s.end(); err != nil {
		return nil, err
	}
	rows := &Rows{texts: s.texts, index: s.index}
	for number, run := range s.runs {
		r := &reader{number: number, file: s.spill.file, at: run.start, end: run.end}
		more, err := r.next()
		if err != nil {
			return nil, err
		}
		if more {
			rows.runs = append(rows.runs, r)
		}
	}
	for i := len(rows.runs)/2 - 1; i >= 0; i-- {
		rows.sink(i)
	}
	return rows, nil
}

// end sorts the records in memory, or writes them as the last run.
func (s *Sorter) end() error {
	if s.ended {
		return nil
	}
	s.ended = true
	if len(s.runs) == 0 {
		s.sort()
		return nil
	}
	err := s.flush()
	s.texts, s.index, s.spill.buffer = nil, nil, nil
	return err
}

// Next moves to the next record. It reports false at the end or after an error.
func (r *Rows) Next() bool {
	if len(r.index) > 0 {
		r.key, r.value, _ = split(r.texts[r.index[0].start:])
		r.index = r.index[1:]
		return true
	}
	if r.key != nil && len(r.runs) > 0 && r.err == nil {
		r.err = r.advance()
	}
	if r.err != nil || len(r.runs) == 0 {
		return false
	}
	r.key, r.value = r.runs[0].key, r.runs[0].value
	return true
}

// Key and Value return the parts of the current record, valid until the next call of Next.
func (r *Rows) Key() []byte   { return r.key }
func (r *Rows) Value() []byte { return r.value }

// Err returns the error that ended the iteration, if any.
func (r *Rows) Err() error { return r.err }

// advance moves the first run to its next record, and restores the heap.
func (r *Rows) advance() error {
	more, err := r.runs[0].next()
	if err != nil {
		return err
	}
	if !more {
		last := len(r.runs) - 1
		r.runs[0] = r.runs[last]
		r.runs = r.runs[:last]
	}
	r.sink(0)
	return nil
}

// sink moves a run down the heap to its position.
func (r *Rows) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.runs); child++ {
			if r.runs[child].before(r.runs[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		r.runs[i], r.runs[least] = r.runs[least], r.runs[i]
		i = least
	}
}

// reader reads one run, with a buffer.
type reader struct {
	number     int // of equal keys, the earlier run's records come first
	file       io.ReaderAt
	at, end    int64 // the part of the run not yet in buffer
	buffer     []byte
	left       []byte // the unread part of buffer
	prefix     uint64
	key, value []byte
}

const readBuffer = 128 << 10

func (r *reader) before(o *reader) bool {
	if r.prefix != o.prefix {
		return r.prefix < o.prefix
	}
	if n := bytes.Compare(r.key, o.key); n != 0 {
		return n < 0
	}
	return r.number < o.number
}

// next reads the next record. It reports false at the end of the run.
func (r *reader) next() (bool, error) {
	if len(r.left) < 2*binary.MaxVarintLen32 && r.at < r.end {
		if err := r.fill(readBuffer); err != nil {
			return false, err
		}
	}
	if len(r.left) == 0 {
		return false, nil
	}
	keyLen, n := binary.Uvarint(r.left)
	valueLen, m := binary.Uvarint(r.left[n:])
	size := n + m + int(keyLen) + int(valueLen)
	if size > len(r.left) {
		if err := r.fill(size); err != nil {
			return false, err
		}
	}
	r.key, r.value, _ = split(r.left)
	r.left = r.left[size:]
	r.prefix = prefixOf(r.key)
	return true, nil
}

// fill reads until the buffer has at least size bytes, or the rest of the run.
func (r *reader) fill(size int) error {
	rest := int64(len(r.left)) + r.end - r.at
	if size = max(size, int(min(readBuffer, rest))); len(r.buffer) < size {
		grown := make([]byte, size)
		r.left = grown[:copy(grown, r.left)]
		r.buffer = grown
	} else {
		r.left = r.buffer[:copy(r.buffer, r.left)]
	}
	held := len(r.left)
	more := min(int64(len(r.buffer)-held), r.end-r.at)
	if _, err := r.file.ReadAt(r.buffer[held:held+int(more)], r.at); err != nil {
		return fmt.Errorf("read sorted records: %w", err)
	}
	r.at += more
	r.left = r.buffer[:held+int(more)]
	return nil
}
