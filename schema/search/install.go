package search

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// CheckedSQLite is the version of SQLite whose FTS5 this writer was checked against: its source,
// ext/fts5/fts5_index.c, and the tests of this package, which compare the tables with those of
// FTS5 itself. A newer version may change the format.
const CheckedSQLite = "3.53.4"

// Rows of search_index_data (ext/fts5/fts5_index.c): the numbers of names and of terms, and the
// list of the segments.
const (
	averagesRow  = 1
	structureRow = 10
)

// The one segment has the number 1. The rowid of a page has, from the highest bits down, that
// number, the kind of page, the level and the page's number.
const (
	segmentID  = 1
	pageBits   = 31
	levelBits  = 5
	segmentRow = int64(segmentID) << (pageBits + levelBits + 1)
	skipRow    = int64(1) << (pageBits + levelBits)
)

// fts5Version is the version of FTS5's format that segment writes.
const fts5Version = 4

// fts5Prefix is the first byte of each term of the main index.
const fts5Prefix = '0'

// commonNames is how many names a term must have to get a row in search_common.
const commonNames = 64

// writeTerms fills the empty tables of search_index and search_common.
func (b *Builder) writeTerms(c *sqlite3.Conn) error {
	pageBytes, cookie, err := readFormat(c)
	if err != nil {
		return err
	}
	w, err := newTermWriter(c)
	if err != nil {
		return err
	}
	defer w.close()
	segment := newSegment(pageBytes, w)
	var key []byte
	begin := func(term []byte) error {
		if err := w.endTerm(); err != nil {
			return err
		}
		w.term = append(w.term[:0], term...)
		key = append(append(key[:0], fts5Prefix), term...)
		return segment.begin(key)
	}
	add := func(place int64) error {
		w.count++
		return segment.add(place)
	}
	if err := b.postings.each(begin, add); err != nil {
		return err
	}
	pages, err := segment.finish()
	if err = errors.Join(err, w.endTerm()); err != nil || pages == 0 {
		return err
	}
	averages := appendVarint(appendVarint(nil, uint64(b.added)), uint64(b.postings.tokens))
	return errors.Join(w.data(averagesRow, averages), w.data(structureRow, structureOf(cookie, pages)))
}

const (
	// mergedSegments is how many segments of a level FTS5 merges into one of the next ("automerge").
	mergedSegments = 4
	// updatePages is about how many pages a change of a few names writes, as a segment of the first level.
	updatePages = 4
)

// levelOf is the level that a segment of so many pages would have if FTS5 had merged it from segments of changes.
// Segments of changes have level 0; merged ones begin at 1. On too low a level the segment would be merged with the
// first changes: a dozen of them wrote the whole index again, a fifth of a registry.
func levelOf(pages int64) (level uint64) {
	level = 1
	for size := int64(updatePages * mergedSegments); size < pages; size *= mergedSegments {
		level++
	}
	return level
}

// structureOf returns a structure with one segment of the given number of pages.
func structureOf(cookie []byte, pages int64) []byte {
	level := levelOf(pages)
	numbers := []uint64{level + 1, 1, uint64(pages)} // levels, segments, leaves ever written
	for range level {
		numbers = append(numbers, 0, 0) // merging, segments
	}
	numbers = append(numbers, 0, 1, segmentID, 1, uint64(pages)) // the last level, its segment, its first and last page
	content := append([]byte(nil), cookie...)
	for _, n := range numbers {
		content = appendVarint(content, n)
	}
	return content
}

// readFormat reads the page size and the cookie, which is the beginning of the structure and
// changes with the settings. Another version of the format is an error.
func readFormat(c *sqlite3.Conn) (pageBytes int, cookie []byte, err error) {
	s, _, err := c.Prepare(`SELECT (SELECT v FROM search_index_config WHERE k = 'version'),
		(SELECT v FROM search_index_config WHERE k = 'pgsz'), (SELECT block FROM search_index_data WHERE id = ?1)`)
	if err != nil {
		return 0, nil, err
	}
	defer s.Close()
	if err := s.BindInt64(1, structureRow); err != nil {
		return 0, nil, err
	}
	if !s.Step() {
		return 0, nil, s.Err()
	}
	if version := s.ColumnInt(0); version != fts5Version {
		return 0, nil, fmt.Errorf("the index has version %d of FTS5's format, want %d", version, fts5Version)
	}
	structure := s.ColumnBlob(2, nil)
	if len(structure) < 4 || s.ColumnInt(1) == 0 {
		return 0, nil, errors.New("the index has no structure or no page size")
	}
	return s.ColumnInt(1), structure[:4], s.Err()
}

// termWriter writes the output of a segment, its pageSink, into the tables.
type termWriter struct {
	dataInsert, firstInsert, commonInsert *sqlite3.Stmt
	close                                 func()
	term                                  []byte // the current one
	count                                 int64  // names that have it
}

func newTermWriter(c *sqlite3.Conn) (w *termWriter, err error) {
	w = new(termWriter)
	w.close, err = prepare(c, map[**sqlite3.Stmt]string{
		&w.dataInsert:   `INSERT OR REPLACE INTO search_index_data (id, block) VALUES (?1, ?2)`,
		&w.firstInsert:  `INSERT INTO search_index_idx (segid, term, pgno) VALUES (?1, ?2, ?3)`,
		&w.commonInsert: `INSERT INTO search_common (term, names) VALUES (?1, ?2)`,
	})
	return w, err
}

func (w *termWriter) data(row int64, content []byte) error {
	return errors.Join(w.dataInsert.BindInt64(1, row), w.dataInsert.BindBlob(2, content), w.dataInsert.Exec())
}

func (w *termWriter) leaf(page int64, content []byte) error {
	return w.data(segmentRow+page, content)
}

func (w *termWriter) skip(level int, page int64, content []byte) error {
	return w.data(segmentRow+skipRow+int64(level)<<pageBits+page, content)
}

func (w *termWriter) first(term []byte, page int64, skips bool) error {
	number := page << 1
	if skips {
		number |= 1
	}
	return errors.Join(w.firstInsert.BindInt64(1, segmentID), bindBlob(w.firstInsert, 2, term),
		w.firstInsert.BindInt64(3, number), w.firstInsert.Exec())
}

// bindBlob binds a blob; an empty one stays an empty blob and does not become NULL.
func bindBlob(s *sqlite3.Stmt, at int, content []byte) error {
	if len(content) == 0 {
		return s.BindZeroBlob(at, 0)
	}
	return s.BindBlob(at, content)
}

// endTerm adds the current term to search_common if it is common.
func (w *termWriter) endTerm() error {
	count := w.count
	w.count = 0
	if count < commonNames {
		return nil
	}
	quoted := `"` + string(w.term) + `"` // as searches write it: terms have no quotes
	return errors.Join(w.commonInsert.BindText(1, quoted), w.commonInsert.BindInt64(2, count), w.commonInsert.Exec())
}
