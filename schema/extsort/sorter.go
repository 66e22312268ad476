// Package extsort sorts more records than memory holds: what does not fit is written to
// one temporary file as sorted runs, which are merged when they are read.
package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Sorter gathers records of a key and a value. Records are ordered by the bytes of their
// keys, and records of one key in the order in which they were added. It is not for use by
// several goroutines at once. Close it, also after an error.
type Sorter struct {
	folder string
	budget int
	texts  []byte  // the records in memory, end to end
	index  []place // of them
	runs   []section
	spill  spillFile
	count  int64
	ended  bool // nothing is added any more
}

// place is where a record begins in texts, and the first bytes of its key.
type place struct {
	prefix uint64
	start  uint32
}

// section is a sorted run in the file.
type section struct{ start, end int64 }

// placeBytes is what an entry of the index takes.
const placeBytes = 16

// maxBudget keeps offsets within 32 bits.
const maxBudget = 1 << 30

// errRecordTooLong says that one record is over what memory was given for all.
var errRecordTooLong = errors.New("record too long to be sorted")

// New makes a sorter that keeps up to budget bytes in memory and the rest in a file in
// folder, which is gone when the sorter is closed or the process ends.
func New(folder string, budget int) *Sorter {
	return &Sorter{folder: folder, budget: min(budget, maxBudget)}
}

// Len is how many records were added.
func (s *Sorter) Len() int64 { return s.count }

// Add takes a record in. It keeps nothing of its arguments.
func (s *Sorter) Add(key, value []byte) error {
	size := len(key) + len(value) + 2*binary.MaxVarintLen32
	if size > s.budget {
		return errRecordTooLong
	}
	if len(s.texts)+size+(len(s.index)+1)*placeBytes > s.budget {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if len(s.texts)+size > cap(s.texts) {
		s.grow()
	}
	s.index = append(s.index, place{prefixOf(key), uint32(len(s.texts))})
	s.texts = appendRecord(s.texts, key, value)
	s.count++
	return nil
}

// smallBuffer is what a sorter of few records has. One of more gets all that it may have
// at once, for the halves that a buffer grows by are garbage.
const smallBuffer = 64 << 10

func (s *Sorter) grow() {
	room := s.budget
	if s.texts == nil {
		room = min(room, smallBuffer)
	}
	s.texts = append(make([]byte, 0, room), s.texts...)
}

// AddSorted writes a run of its own: next hands out its records in the order of their
// keys until it reports false. They come after all that was added before.
func (s *Sorter) AddSorted(next func() (key, value []byte, ok bool)) error {
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.spill.begin(s.folder); err != nil {
		return err
	}
	start := s.spill.size
	for key, value, ok := next(); ok; key, value, ok = next() {
		s.texts = appendRecord(s.texts[:0], key, value)
		if err := s.spill.write(s.texts); err != nil {
			return err
		}
		s.count++
	}
	s.texts = s.texts[:0]
	return s.endRun(start)
}

// flush writes what is in memory as a run.
func (s *Sorter) flush() error {
	if len(s.index) == 0 {
		return nil
	}
	s.sort()
	if err := s.spill.begin(s.folder); err != nil {
		return err
	}
	start := s.spill.size
	for _, p := range s.index {
		if err := s.spill.write(record(s.texts[p.start:])); err != nil {
			return err
		}
	}
	s.texts, s.index = s.texts[:0], s.index[:0]
	return s.endRun(start)
}

func (s *Sorter) endRun(start int64) error {
	if err := s.spill.flush(); err != nil {
		return err
	}
	s.runs = append(s.runs, section{start, s.spill.size})
	return nil
}

func (s *Sorter) sort() {
	slices.SortFunc(s.index, func(a, b place) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if n := bytes.Compare(keyAt(s.texts[a.start:]), keyAt(s.texts[b.start:])); n != 0 {
			return n
		}
		return cmp.Compare(a.start, b.start)
	})
}

// Close gives back memory and file.
func (s *Sorter) Close() error {
	s.texts, s.index, s.runs = nil, nil, nil
	return s.spill.close()
}

// prefixOf orders as the key does, as far as it goes.
func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// A record is the lengths of its key and its value, and both.
func appendRecord(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(append(dst, key...), value...)
}

// split returns the parts of the record that b begins with, and its length.
func split(b []byte) (key, value []byte, size int) {
	keyLen, n := binary.Uvarint(b)
	valueLen, m := binary.Uvarint(b[n:])
	start := n + m
	middle := start + int(keyLen)
	size = middle + int(valueLen)
	return b[start:middle], b[middle:size], size
}

func record(b []byte) []byte {
	_, _, size := split(b)
	return b[:size]
}

func keyAt(b []byte) []byte {
	key, _, _ := split(b)
	return key
}

// spillFile is the file of the runs, made when it is first needed.
type spillFile struct {
	file   *os.File
	size   int64
	buffer []byte
}

const spillBuffer = 256 << 10

func (f *spillFile) begin(folder string) (err error) {
	if f.file != nil {
		return nil
	}
	if f.file, err = os.CreateTemp(folder, ".sorting-*"); err != nil {
		return fmt.Errorf("make a file to sort in: %w", err)
	}
	// Without its name the file goes with the process. Where a system does not do that,
	// close removes it.
	_ = os.Remove(f.file.Name())
	f.buffer = make([]byte, 0, spillBuffer)
	return nil
}

func (f *spillFile) write(b []byte) error {
	if len(f.buffer)+len(b) > cap(f.buffer) {
		if err := f.flush(); err != nil {
			return err
		}
	}
	f.buffer = append(f.buffer, b...)
	f.size += int64(len(b))
	return nil
}

func (f *spillFile) flush() error {
	_, err := f.file.Write(f.buffer)
	f.buffer = f.buffer[:0]
	if err != nil {
		return fmt.Errorf("write what is being sorted: %w", err)
	}
	return nil
}

func (f *spillFile) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	_ = os.Remove(f.file.Name()) // gone already where begin could
	f.file, f.buffer = nil, nil
	return err
}
