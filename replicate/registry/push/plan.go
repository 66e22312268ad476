package push

import (
	"cmp"
	"slices"
)

// batchRecords is how many records one transaction writes, unless more have to be written
// together. A call then has about 1 MB.
const batchRecords = 2000

// togetherRecords is the most records that are written together: sqld's limit for one call. A larger set is cut;
// then an answer may for some seconds show a director's new name beside a company's old row, or miss a name whose
// place another has taken. It is a variable for tests.
var togetherRecords = 20_000

// link is a pair of records that one answer shows together.
type link struct{ a, b record }

// plan sorts changes into batches. Linked records are in one batch unless both are new to the
// primary. Records come before a new record that names them.
func plan(changes []change, links []link) [][]change {
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	at := make(map[record]int, len(changes))
	for i := range changes {
		at[changes[i].record] = i
	}
	s := newSets(len(changes))
	for _, l := range links {
		a, changedA := at[l.a]
		b, changedB := at[l.b]
		if changedA && changedB && (changes[a].there || changes[b].there) {
			s.join(a, b)
		}
	}
	for i := range changes {
		if own, ok := owner(changes[i].record, at); ok {
			s.join(i, own)
		}
	}
	return pack(changes, s.groups(), phases(changes, s))
}

// owner is the changed company or LLP of a changed search entry.
func owner(r record, at map[record]int) (int, bool) {
	if r.Kind != entry {
		return 0, false
	}
	if i, ok := at[record{Kind: company, Key: r.Key}]; ok {
		return i, true
	}
	i, ok := at[record{Kind: llp, Key: r.Key}]
	return i, ok
}

// phases is the order in which sets are written, by their roots: 0 for new pincodes and directors
// without links, 1 for sets with a record that the primary has, 2 for other new records.
func phases(changes []change, s *sets) []int {
	phase := make([]int, len(changes))
	for i := range phase {
		phase[i] = 2
	}
	for i, c := range changes {
		root := s.find(i)
		switch {
		case c.there:
			phase[root] = 1
		case (c.Kind == director || c.Kind == pincode) && phase[root] != 1:
			phase[root] = 0
		}
	}
	return phase
}

// pack fills batches with whole sets, phase by phase.
func pack(changes []change, groups [][]int, phase []int) (batches [][]change) {
	root := func(g []int) int { return g[0] }
	slices.SortStableFunc(groups, func(a, b []int) int { return cmp.Compare(phase[root(a)], phase[root(b)]) })
	var batch []change
	flush := func() {
		if len(batch) > 0 {
			batches = append(batches, batch)
			batch = nil
		}
	}
	last := 0
	for _, group := range groups {
		if p := phase[root(group)]; p != last || len(batch)+len(group) > batchRecords {
			flush()
			last = p
		}
		for _, i := range group {
			if len(batch) == togetherRecords {
				flush()
			}
			batch = append(batch, changes[i])
		}
	}
	flush()
	return batches
}

// vacate makes an entry leave its place in the batch in which another one takes it, if a cut has put its own
// change into a later batch: no two entries may have one place. The later batch writes it at its new place.
func vacate(batches [][]change, links []link) {
	at := make(map[record]int)
	for i, batch := range batches {
		for _, c := range batch {
			at[c.record] = i
		}
	}
	for _, l := range links {
		taker, changed := at[l.a]
		holder, leaves := at[l.b]
		if l.a.Kind == entry && l.b.Kind == entry && changed && leaves && taker < holder {
			batches[taker] = append(batches[taker], change{record: l.b, there: true})
		}
	}
}

// sets are disjoint sets of numbers (union-find). The root of a set is its least number.
type sets struct{ parent []int }

func newSets(n int) *sets {
	s := &sets{make([]int, n)}
	for i := range s.parent {
		s.parent[i] = i
	}
	return s
}

func (s *sets) find(i int) int {
	for s.parent[i] != i {
		s.parent[i] = s.parent[s.parent[i]]
		i = s.parent[i]
	}
	return i
}

func (s *sets) join(a, b int) {
	a, b = s.find(a), s.find(b)
	s.parent[max(a, b)] = min(a, b)
}

// groups lists the sets by their roots, the root first.
func (s *sets) groups() (list [][]int) {
	of := make(map[int]int)
	for i := range s.parent {
		root := s.find(i)
		at, ok := of[root]
		if !ok {
			at = len(list)
			of[root] = at
			list = append(list, nil)
		}
		list[at] = append(list[at], i)
	}
	return list
}
