// Package extsort sorts more records than fit in memory: it writes sorted runs to one temporary
// file and merges them when they are read.
package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sorter sorts records of a key and a value by the bytes of their keys. The sort is stable:
// records of one key keep the order in which they were added. Use it from one goroutine at a
// time. Close it, also after an error.
type Sorter struct {
	folder string
	budget int
	texts  []byte  // the records in memory, end to end
	index  []entry // the records in texts
	runs   []section
	spill  spillFile
	count  int64
	ended  bool // no more records may be added
}

// entry holds a record's offset in texts and the first bytes of its key.
type entry struct {
	prefix uint64
	start  uint32
}

// section is a sorted run in the file.
type section struct{ start, end int64 }

// entryBytes is the size of an entry.
const entryBytes = 16

// maxBudget keeps offsets within 32 bits.
const maxBudget = 1 << 30

// errRecordTooLong is returned for a record that is larger than the memory budget.
var errRecordTooLong = errors.New("record too long to be sorted")

// New makes a sorter that keeps up to budget bytes in memory and the rest in a temporary file
// in folder. The file is removed when the sorter is closed or the process ends.
func New(folder string, budget int) *Sorter {
	return &Sorter{folder: folder, budget: min(budget, maxBudget)}
}

// Len returns how many records were added.
func (s *Sorter) Len() int64 { return s.count }

// Add adds a record. It copies its arguments.
func (s *Sorter) Add(key, value []byte) error {
	size := len(key) + len(value) + 2*binary.MaxVarintLen32
	if size > s.budget {
		return errRecordTooLong
	}
	if len(s.texts)+size+(len(s.index)+1)*entryBytes > s.budget {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if len(s.texts)+size > cap(s.texts) {
		s.grow()
	}
	s.index = append(s.index, entry{prefixOf(key), uint32(len(s.texts))})
	s.texts = appendRecord(s.texts, key, value)
	s.count++
	return nil
}

// smallBuffer is a buffer's first size. It then grows to the whole budget at once: every size in
// between would only make garbage.
const smallBuffer = 64 << 10

func (s *Sorter) grow() {
	room := s.budget
	if s.texts == nil {
		room = min(room, smallBuffer)
	}
	s.texts = append(make([]byte, 0, room), s.texts...)
}

// AddSorted adds records that are sorted already, as a run of their own: next returns them in
// key order, then false. They come after all records added before.
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

// flush writes the records in memory as a run.
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
	slices.SortFunc(s.index, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if n := bytes.Compare(keyAt(s.texts[a.start:]), keyAt(s.texts[b.start:])); n != 0 {
			return n
		}
		return cmp.Compare(a.start, b.start)
	})
}

// Close releases the memory and removes the file.
func (s *Sorter) Close() error {
	s.texts, s.index, s.runs = nil, nil, nil
	return s.spill.close()
}

// prefixOf returns the first 8 bytes of a key, in an integer of the same order.
func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// appendRecord appends the lengths of a key and a value, and both.
func appendRecord(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(append(dst, key...), value...)
}

// split returns the parts of the record at the beginning of b, and its length.
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

// spillFile is the file of the runs, made by the first flush.
type spillFile struct {
	file   *os.File
	size   int64
	buffer []byte
}

const (
	spillBuffer = 256 << 10
	spillName   = ".sorting-" // its beginning
)

func (f *spillFile) begin(folder string) (err error) {
	if f.file != nil {
		return nil
	}
	removeLeft(folder)
	if f.file, err = os.CreateTemp(folder, spillName+"*"); err != nil {
		return fmt.Errorf("make a temporary file to sort: %w", err)
	}
	// An unlinked file goes away with the process. Where a system can't unlink an open file,
	// close removes it.
	_ = os.Remove(f.file.Name())
	f.buffer = make([]byte, 0, spillBuffer)
	return nil
}

// removeLeft removes the files that processes left which were killed between making one and unlinking it. One that has just
// been made loses its name a moment early.
func removeLeft(folder string) {
	entries, _ := os.ReadDir(folder) // making the new file says what is wrong
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), spillName) && entry.Type().IsRegular() {
			_ = os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
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
		return fmt.Errorf("write sorted records: %w", err)
	}
	return nil
}

func (f *spillFile) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	_ = os.Remove(f.file.Name()) // already gone if begin could unlink it
	f.file, f.buffer = nil, nil
	return err
}
