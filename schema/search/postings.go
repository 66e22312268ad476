package search

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"regedge/handler/names"
	"regedge/schema/extsort"
)

// postings makes the list of places of each term. Names are added in the order of their places
// and collected in groups; the lists of a group are sorted by term and handed to the sorter.
type postings struct {
	sorter *extsort.Sorter
	short  map[uint64]uint32 // ids of the group's terms that fit into a prefix
	long   map[string]uint32 // ids of the others
	terms  []term            // of the group, by id
	pairs  []pair            // of the group, in the order of the names
	places []int64           // of the group's names
	sorted []uint32          // the names of the pairs, by term
	text   []byte
	tokens int64 // of all names, repeated ones included
}

// term is a term in a form that is fast to compare: its first eight bytes as a number, padded
// with zeros, which no term has. Nearly all terms fit.
type term struct {
	prefix uint64
	text   string // empty unless it is longer
}

const prefixBytes = 8

// prefixOf returns the prefix of a term.
func prefixOf(text []byte) (prefix uint64) {
	for i, c := range text[:min(len(text), prefixBytes)] {
		prefix |= uint64(c) << (56 - 8*i)
	}
	return prefix
}

// append appends the term's text.
func (t *term) append(dst []byte) []byte {
	if t.text != "" {
		return append(dst, t.text...)
	}
	for rest := t.prefix; rest != 0; rest <<= 8 {
		dst = append(dst, byte(rest>>56))
	}
	return dst
}

// pair is a name of the group and a term of it.
type pair struct{ term, name uint32 }

const (
	// groupPairs bounds a group: some 22,000 names, 30 MB with its sorting.
	groupPairs = 2 << 20
	smallGroup = 64 << 10
	// longestName is more than the terms of a usual name, in bytes.
	longestName = 16 << 10
	// postingBudget, in bytes, is small, since the sorter gets its records in sorted runs.
	postingBudget = 1 << 20
)

func newPostings(folder string) *postings {
	return &postings{sorter: extsort.New(folder, postingBudget), short: map[uint64]uint32{}, long: map[string]uint32{}}
}

// add adds the name at place, which is greater than the one before.
func (p *postings) add(place int64, name string) error {
	p.text = names.AppendTerms(p.text[:0], name)
	if len(p.pairs)+len(p.text) > cap(p.pairs) {
		p.grow()
	}
	number := uint32(len(p.places))
	p.places = append(p.places, place)
	start := 0
	for i, c := range p.text {
		if c != ' ' {
			continue
		}
		p.pairs = append(p.pairs, pair{p.id(p.text[start:i]), number})
		start = i + 1
		p.tokens++
	}
	if len(p.pairs) >= groupPairs {
		return p.flush()
	}
	return nil
}

// id returns the number of a term in the group.
func (p *postings) id(text []byte) uint32 {
	prefix, next := prefixOf(text), uint32(len(p.terms))
	if len(text) <= prefixBytes {
		id, known := p.short[prefix]
		if known {
			return id
		}
		p.short[prefix] = next
		p.terms = append(p.terms, term{prefix: prefix})
		return next
	}
	id, known := p.long[string(text)]
	if known {
		return id
	}
	p.terms = append(p.terms, term{prefix, string(text)})
	p.long[p.terms[next].text] = next
	return next
}

// grow makes room for the terms of one more name. A group that is not small gets its maximal
// size at once: growing step by step would leave garbage.
func (p *postings) grow() {
	room := len(p.pairs) + len(p.text)
	switch {
	case room < smallGroup:
		room = smallGroup
	case room < groupPairs+longestName:
		room = groupPairs + longestName
	}
	p.pairs = append(make([]pair, 0, room), p.pairs...)
}

// flush hands the group's lists to the sorter.
func (p *postings) flush() error {
	ends := p.sortPairs()
	type keyed struct {
		prefix uint64
		id     uint32
	}
	order := make([]keyed, len(p.terms))
	for i := range order {
		order[i] = keyed{p.terms[i].prefix, uint32(i)}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return strings.Compare(p.terms[a.id].text, p.terms[b.id].text)
	})
	var key, list []byte
	err := p.sorter.AddSorted(func() ([]byte, []byte, bool) {
		if len(order) == 0 {
			return nil, nil, false
		}
		id := order[0].id
		order = order[1:]
		start := uint32(0)
		if id > 0 {
			start = ends[id-1]
		}
		key = p.terms[id].append(key[:0])
		list = p.appendList(list[:0], p.sorted[start:ends[id]])
		return key, list, true
	})
	clear(p.short)
	clear(p.long)
	p.terms, p.pairs, p.places = p.terms[:0], p.pairs[:0], p.places[:0]
	return err
}

// sortPairs sorts the names of the pairs by the id of their term into p.sorted (a counting sort)
// and returns for each id where its names end.
func (p *postings) sortPairs() (ends []uint32) {
	ends = make([]uint32, len(p.terms))
	for _, one := range p.pairs {
		ends[one.term]++
	}
	before := uint32(0)
	for i, n := range ends {
		ends[i] = before
		before += n
	}
	if cap(p.sorted) < len(p.pairs) {
		p.sorted = make([]uint32, len(p.pairs), cap(p.pairs))
	}
	p.sorted = p.sorted[:len(p.pairs)]
	for _, one := range p.pairs {
		p.sorted[ends[one.term]] = one.name
		ends[one.term]++
	}
	return ends
}

// appendList appends the places of names as varints: the first, then the differences. A name
// that is repeated, since it has the term twice, is written once.
func (p *postings) appendList(dst []byte, list []uint32) []byte {
	before := int64(0)
	for _, name := range list {
		if place := p.places[name]; place != before {
			dst = binary.AppendUvarint(dst, uint64(place-before))
			before = place
		}
	}
	return dst
}

// each calls begin with each term, in order, and add with each of its places.
func (p *postings) each(begin func(term []byte) error, add func(place int64) error) error {
	rows, err := p.sorter.Rows()
	if err != nil {
		return err
	}
	var term []byte
	begun := false
	for rows.Next() {
		if key := rows.Key(); !begun || string(key) != string(term) {
			term, begun = append(term[:0], key...), true
			if err := begin(term); err != nil {
				return err
			}
		}
		place := int64(0)
		for list := rows.Value(); len(list) > 0; {
			step, n := binary.Uvarint(list)
			list = list[n:]
			place += int64(step)
			if err := add(place); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}

// end hands the last group to the sorter. Nothing may be added after it.
func (p *postings) end() error {
	if len(p.pairs) > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.short, p.long, p.terms, p.pairs, p.places, p.sorted = nil, nil, nil, nil, nil, nil
	return nil
}
