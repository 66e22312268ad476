package search

import (
	"encoding/binary"
	"errors"
)

// segment writes the terms of an index in the format of FTS5 (SQLite's ext/fts5, version 4 of the
// format, detail=none; CheckedSQLite), as one segment: the same result as merging a whole index in
// FTS5. Sorting and writing the terms of millions of names takes a fraction of the time that FTS5
// needs to collect them.
//
// A leaf is a page of terms, each followed by the list of its places. A list may span many leaves;
// then a skip list has the first place of each, so that a search can skip leaves. The table of
// first terms finds the leaf of a term.
type segment struct {
	pageBytes int
	sink      pageSink

	leaf       []byte // the current page, its header first
	offsets    []byte // of the page's terms; they become its footer
	lastOffset int
	page       int64  // number of the current page, from 1
	term       []byte // the last one written
	hasTerm    bool   // the page has a term
	hasPlace   bool   // the page has a place, or the current term began on it
	inList     bool   // the current term has a place
	place      int64  // the last one written

	skips     []skipLevel // from the leaves upwards
	listPages int         // pages without a term since firstPage
	firstTerm []byte      // the distinguishing beginning of the first term of firstPage
	firstPage int64       // the page whose first term is not written yet
}

// pageSink receives the output of a segment: leaves by their number, pages of skip lists by level
// and the number of the leaf that they begin at, and first terms in order.
type pageSink interface {
	leaf(page int64, content []byte) error
	skip(level int, page int64, content []byte) error
	first(term []byte, page int64, skips bool) error
}

// skipLevel is a page of a skip list that is being written.
type skipLevel struct {
	content []byte
	page    int64
	begun   bool
	place   int64 // the last one written
}

const (
	leafHeader = 4
	// fewestSkips is the number of further pages from which a list gets a skip list.
	fewestSkips = 4
)

var errOrder = errors.New("terms or places out of order")

func newSegment(pageBytes int, sink pageSink) *segment {
	return &segment{
		pageBytes: pageBytes, sink: sink, leaf: make([]byte, leafHeader, pageBytes+64),
		page: 1, firstPage: 1, skips: make([]skipLevel, 1),
	}
}

// begin starts a term, which must be greater than the one before.
func (s *segment) begin(term []byte) error {
	if len(s.leaf)+len(s.offsets)+len(term)+2 >= s.pageBytes && len(s.leaf) > leafHeader {
		if err := s.flushLeaf(); err != nil {
			return err
		}
	}
	shared := sharedLen(s.term, term)
	if s.term != nil && (shared == len(term) || shared < len(s.term) && s.term[shared] > term[shared]) {
		return errOrder
	}
	s.offsets = appendVarint(s.offsets, uint64(len(s.leaf)-s.lastOffset))
	s.lastOffset = len(s.leaf)
	if !s.hasTerm {
		if s.page != 1 {
			if err := s.endFirst(); err != nil {
				return err
			}
			s.firstTerm, s.firstPage = append(s.firstTerm[:0], term[:shared+1]...), s.page
		}
		shared = 0
	} else {
		s.leaf = appendVarint(s.leaf, uint64(shared))
	}
	s.leaf = appendVarint(s.leaf, uint64(len(term)-shared))
	s.leaf = append(s.leaf, term[shared:]...)
	s.term = append(s.term[:0], term...)
	s.hasTerm, s.hasPlace, s.inList = true, true, false
	s.skips[0].page = s.page
	return nil
}

// add writes a place of the current term, which must be greater than the one before.
func (s *segment) add(place int64) error {
	if len(s.leaf)+len(s.offsets) >= s.pageBytes {
		if err := s.flushLeaf(); err != nil {
			return err
		}
	}
	if s.inList && place <= s.place {
		return errOrder
	}
	if !s.hasPlace {
		binary.BigEndian.PutUint16(s.leaf, uint16(len(s.leaf)))
		if err := s.addSkip(place); err != nil {
			return err
		}
	}
	if s.inList && s.hasPlace {
		s.leaf = appendVarint(s.leaf, uint64(place-s.place))
	} else {
		s.leaf = appendVarint(s.leaf, uint64(place))
	}
	s.place, s.inList, s.hasPlace = place, true, true
	return nil
}

// finish writes the rest and returns the number of pages.
func (s *segment) finish() (pages int64, err error) {
	if len(s.leaf) > leafHeader {
		if err := s.flushLeaf(); err != nil {
			return 0, err
		}
	}
	if s.page == 1 {
		return 0, nil
	}
	return s.page - 1, s.endFirst()
}

func (s *segment) flushLeaf() error {
	binary.BigEndian.PutUint16(s.leaf[2:], uint16(len(s.leaf)))
	if s.hasTerm {
		s.leaf = append(s.leaf, s.offsets...)
	} else {
		s.listPages++
	}
	if err := s.sink.leaf(s.page, s.leaf); err != nil {
		return err
	}
	clear(s.leaf[:leafHeader])
	s.leaf, s.offsets, s.lastOffset = s.leaf[:leafHeader], s.offsets[:0], 0
	s.page++
	s.hasTerm, s.hasPlace = false, false
	return nil
}

// endFirst writes the first term of firstPage, once it is known whether the page's last list
// has a skip list.
func (s *segment) endFirst() error {
	long := len(s.skips[0].content) > 0 && s.listPages >= fewestSkips
	for level := range s.skips {
		skip := &s.skips[level]
		if len(skip.content) == 0 {
			break
		}
		if long {
			if err := s.sink.skip(level, skip.page, skip.content); err != nil {
				return err
			}
		}
		skip.content, skip.begun = skip.content[:0], false
	}
	s.listPages = 0
	return s.sink.first(s.firstTerm, s.firstPage, long)
}

// addSkip adds the first place of the current page to the skip list. A full page of a level is
// written and added to the level above.
func (s *segment) addSkip(place int64) error {
	for level := 0; ; level++ {
		full := len(s.skips[level].content) >= s.pageBytes
		if full {
			if err := s.raiseSkip(level); err != nil {
				return err
			}
		}
		skip := &s.skips[level]
		if skip.begun {
			skip.content = appendVarint(skip.content, uint64(place-skip.place))
		} else {
			of := s.page
			if level > 0 {
				of = s.skips[level-1].page
			}
			flag := byte(0)
			if full {
				flag = 1
			}
			skip.content = appendVarint(append(skip.content, flag), uint64(of))
			skip.content = appendVarint(skip.content, uint64(place))
		}
		skip.begun, skip.place = true, place
		if !full {
			return nil
		}
	}
}

// raiseSkip writes the full page of a level and begins the next one. If the level was the top
// one, its first page is added to a new level above.
func (s *segment) raiseSkip(level int) error {
	if level+1 == len(s.skips) {
		s.skips = append(s.skips, skipLevel{})
	}
	skip, above := &s.skips[level], &s.skips[level+1]
	skip.content[0] = 1
	if err := s.sink.skip(level, skip.page, skip.content); err != nil {
		return err
	}
	if len(above.content) == 0 {
		_, n := readVarint(skip.content[1:])
		first, _ := readVarint(skip.content[1+n:])
		above.page = skip.page
		above.content = appendVarint(append(above.content, 0), uint64(skip.page))
		above.content = appendVarint(above.content, first)
		above.begun, above.place = true, int64(first)
	}
	skip.content, skip.begun = skip.content[:0], false
	skip.page++
	return nil
}

func sharedLen(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// appendVarint appends a number of up to 56 bits in SQLite's format: seven bits a byte, the
// highest first.
func appendVarint(dst []byte, n uint64) []byte {
	if n < 1<<7 {
		return append(dst, byte(n))
	}
	var b [8]byte
	i := len(b) - 1
	b[i] = byte(n & 0x7f)
	for n >>= 7; n > 0; n >>= 7 {
		i--
		b[i] = byte(n&0x7f) | 0x80
	}
	return append(dst, b[i:]...)
}

// readVarint is the inverse of appendVarint.
func readVarint(b []byte) (n uint64, size int) {
	for size < len(b) {
		c := b[size]
		size++
		n = n<<7 | uint64(c&0x7f)
		if c < 0x80 {
			break
		}
	}
	return n, size
}
