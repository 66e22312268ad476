package load

import (
	"cmp"
	"fmt"
	"slices"

	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
)

// counts is the number of records by outcome.
type counts [outcomeMissing + 1]int64

// Written counts, by file, the records that were applied since the last Settle.
type Written struct {
	Records int               // of all files
	Counts  []counts          // by outcome: New, Changed or Unchanged
	Missing [][]record.Reject // records that lack what a new row must have
	// Contradictions counts the records of companies and LLPs that contradict their file's first record with the same key.
	Contradictions []Contradiction
	// WithOthers counts the files' first records of a key that contradict another source of the same date: the run's first
	// file with that key, or what the registry holds.
	WithOthers []Contradiction
}

// Contradiction counts the records of a file that contradict an earlier one with the same key.
type Contradiction struct {
	Records int64  `json:"rows"`
	Line    int    `json:"first_line,omitempty"` // of the first contradicting record
	What    string `json:"first,omitempty"`      // what that contradicts, as "status of U55101GA2006PTC900001"
}

// Add adds the contradictions of another part of the same file.
func (c *Contradiction) Add(other Contradiction) {
	if c.Records == 0 || other.Records > 0 && other.Line < c.Line {
		c.Line, c.What = other.Line, other.What
	}
	c.Records += other.Records
}

// NewWritten makes counts for a number of files, all 0.
func NewWritten(files int) *Written {
	return &Written{
		Counts: make([]counts, files), Missing: make([][]record.Reject, files),
		Contradictions: make([]Contradiction, files), WithOthers: make([]Contradiction, files),
	}
}

// Forget sets all counts to zero.
func (w *Written) Forget() {
	w.Records = 0
	clear(w.Counts)
	clear(w.Missing)
	clear(w.Contradictions)
	clear(w.WithOthers)
}

// begin opens the transaction of the run.
func (s *Store) begin() error {
	tx, err := s.conn.BeginImmediate()
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	s.tx, s.open = tx, true
	return nil
}

// ApplyBatch merges records into the database and counts their outcomes in w. Records of
// one key must be neighbours, and all of them in one batch.
func (s *Store) ApplyBatch(records []record.Entry, asOf string, w *Written) error {
	w.Records += len(records)
	for len(records) > 0 {
		n := merge.SameKey(records)
		if err := s.apply(records[:n], asOf, w); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// noteContradictions compares the records of one key, from sources of date asOf, with the first one of the same file, and that
// with the first of all. Records of a file are neighbours. With held, the state of the registry's record, it compares what the file gives.
func (w *Written) noteContradictions(group []record.Entry, held *merge.State, asOf string) {
	t := group[0].Table
	if !slices.Contains(record.Searched, t) {
		return // a person may hold several offices
	}
	first := &group[0]
	for i := range group {
		p := &group[i]
		counts, line, column := w.Contradictions, max(p.Line, first.Line), contradiction(first, p)
		if i == 0 || p.File != first.File {
			first = p
			counts, line, column = w.WithOthers, p.Line, cmp.Or(held.Contradicted(t, given(group[i:], asOf), asOf), contradiction(&group[0], p))
		}
		if column != "" {
			counts[p.File].Add(Contradiction{1, line, column + " of " + p.Key[0]})
		}
	}
}

// given returns the values that the first record's file gives: of several records the ones that would be kept.
func given(group []record.Entry, asOf string) []record.Value {
	first := &group[0]
	if len(group) == 1 || group[1].File != first.File {
		return first.Values
	}
	all := merge.NewState(first.Table)
	for i := range group {
		if group[i].File == first.File {
			all.Merge(first.Table, group[i].Values, asOf)
		}
	}
	return all.Values
}

// contradiction returns the first column of which two records have different values, "" if there is none.
func contradiction(a, b *record.Entry) string {
	for i, column := range a.Table.Columns {
		if a.Values[i].Kind != record.Null && b.Values[i].Kind != record.Null && a.Values[i] != b.Values[i] {
			return column
		}
	}
	return ""
}

// commit ends the transaction of the run.
func (s *Store) commit() error {
	s.rest()
	if err := s.tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.open = false
	return nil
}

// rollback undoes the run, if it has not ended.
func (s *Store) rollback() {
	s.rest()
	if s.open && !s.conn.GetAutocommit() {
		s.tx.Rollback() // fails only if SQLite has rolled back already
	}
	s.open = false
}

// ReplacePlaces makes the pincode table hold exactly the given places, and updates the
// districts of the companies there. Only differences are written. gone is how many pincodes it deletes.
func (s *Store) ReplacePlaces(list map[string]record.Place) (became map[string]outcome, gone int64, err error) {
	held, err := s.places()
	if err != nil {
		return nil, 0, err
	}
	write, _, err := s.conn.Prepare(`INSERT OR REPLACE INTO pincode (pincode, district, state) VALUES (?1, ?2, ?3)`)
	if err != nil {
		return nil, 0, err
	}
	defer write.Close()
	became = make(map[string]outcome, len(list))
	var moved []string
	for pincode, now := range list {
		was, ok := held[pincode]
		switch {
		case !ok:
			became[pincode] = New
		case was == now:
			became[pincode] = Unchanged
			continue
		default:
			became[pincode] = Changed
		}
		s.changed = true
		moved = append(moved, pincode)
		err := cmp.Or(write.BindText(1, pincode), write.BindText(2, now.District),
			bindValue(write, 3, record.TextOf(now.State)), finish(write))
		if err != nil {
			return nil, 0, err
		}
	}
	for pincode := range held {
		if _, ok := list[pincode]; !ok {
			s.changed = true
			moved = append(moved, pincode)
			gone++
			if err := s.exec(`DELETE FROM pincode WHERE pincode = ?1`, record.TextOf(pincode)); err != nil {
				return nil, 0, err
			}
		}
	}
	return became, gone, s.updateDistricts(moved)
}

// places reads the pincode table.
func (s *Store) places() (map[string]record.Place, error) {
	read, _, err := s.conn.Prepare(`SELECT pincode, district, state FROM pincode`)
	if err != nil {
		return nil, err
	}
	defer read.Close()
	held := map[string]record.Place{}
	for read.Step() {
		held[read.ColumnText(0)] = record.Place{District: read.ColumnText(1), State: read.ColumnText(2)}
	}
	return held, read.Err()
}
