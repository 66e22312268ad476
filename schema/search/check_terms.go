package search

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler/names"
)

// termSums represents a set of pairs: a term, and the place of a name that has it. Terms are divided
// into parts by hash; each part sums the hashes of its pairs. Sets with equal sums are equal, except
// with a probability of one in 2^64.
type termSums struct {
	seed maphash.Seed
	sums [termParts]uint64
}

// termParts is the number of parts. If the sums of a part differ, its terms are compared one by one, in
// memory: some thousands in a registry of the country's size.
const termParts = 1 << 12

// add adds a pair.
func (t *termSums) add(term []byte, place int64) {
	hash := maphash.Bytes(t.seed, term)
	t.sums[hash%termParts] += mixed(hash ^ mixed(uint64(place)))
}

// mixed is a permutation of the integers whose sums have no pattern: the finalizer of MurmurHash3.
func mixed(n uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	n *= 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// checkTerms compares the pairs of the index with those that the names should have.
func checkTerms(c *sqlite3.Conn) error {
	if err := c.Exec(`CREATE VIRTUAL TABLE temp.search_term USING fts5vocab (main, search_index, instance)`); err != nil {
		return err
	}
	defer c.Exec(`DROP TABLE temp.search_term`)
	seed := maphash.MakeSeed()
	want, got := &termSums{seed: seed}, &termSums{seed: seed}
	if err := eachWanted(c, want.add); err != nil {
		return err
	}
	if err := eachIndexed(c, got.add); err != nil {
		return err
	}
	for part := range want.sums {
		if want.sums[part] != got.sums[part] {
			return differingTerm(c, seed, uint64(part))
		}
	}
	return nil
}

// eachWanted calls do with each term of each name, and its place. A term is valid until do returns.
func eachWanted(c *sqlite3.Conn, do func(term []byte, place int64)) error {
	rows, _, err := c.Prepare(`SELECT place, name FROM search_name ORDER BY place`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var text []byte
	var terms [][]byte
	for rows.Step() {
		text = names.AppendTerms(text[:0], rows.ColumnText(1))
		terms = terms[:0]
		for term := range bytes.FieldsSeq(text) {
			terms = append(terms, term)
		}
		slices.SortFunc(terms, bytes.Compare)
		place := rows.ColumnInt64(0)
		for i, term := range terms {
			if i == 0 || !bytes.Equal(terms[i-1], term) {
				do(term, place)
			}
		}
	}
	return rows.Err()
}

// eachIndexed does the same for the index.
func eachIndexed(c *sqlite3.Conn, do func(term []byte, place int64)) error {
	rows, _, err := c.Prepare(`SELECT term, doc FROM temp.search_term`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Step() {
		do(rows.ColumnRawText(0), rows.ColumnInt64(1))
	}
	return rows.Err()
}

// differingTerm reads everything again and describes the first difference in a part.
func differingTerm(c *sqlite3.Conn, seed maphash.Seed, part uint64) error {
	type places struct{ names, sum int64 }
	collect := func(each func(*sqlite3.Conn, func([]byte, int64)) error) (map[string]places, error) {
		found := map[string]places{}
		err := each(c, func(term []byte, place int64) {
			if maphash.Bytes(seed, term)%termParts == part {
				p := found[string(term)]
				found[string(term)] = places{p.names + 1, p.sum + place}
			}
		})
		return found, err
	}
	want, err := collect(eachWanted)
	if err != nil {
		return err
	}
	got, err := collect(eachIndexed)
	if err != nil {
		return err
	}
	for term, p := range want {
		if got[term] != p {
			return fmt.Errorf("term %q has %d names at places whose sum is %d, want %d and %d", term, got[term].names, got[term].sum, p.names, p.sum)
		}
	}
	for term, p := range got {
		if want[term] != p {
			return fmt.Errorf("term %q has %d names, want none", term, p.names)
		}
	}
	return fmt.Errorf("a term of part %d has other names", part)
}
