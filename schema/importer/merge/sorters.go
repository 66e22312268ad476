package merge

import (
	"errors"
	"path/filepath"

	"regedge/schema/extsort"
	"regedge/schema/importer/record"
)

// Sorters sorts the records of each table by primary key, so that the table is then read and
// written from its beginning to its end.
type Sorters struct {
	folder  string
	sorters map[*record.Table]*extsort.Sorter
	key     []byte
	content []byte
}

// budgets is the memory for sorting the records of a table, in bytes.
var budgets = map[*record.Table]int{
	record.CompanyTable: 32 << 20, record.LLPTable: 8 << 20, record.DirectorTable: 16 << 20, record.AppointmentTable: 32 << 20, record.PartnerTable: 8 << 20,
}

// NewSorters makes sorters with temporary files beside the registry: a disk that has room for the
// registry has room for them.
func NewSorters(registry string) *Sorters {
	return &Sorters{folder: filepath.Dir(registry), sorters: map[*record.Table]*extsort.Sorter{}}
}

// Add adds a record to the sorter of its table.
func (g *Sorters) Add(p *record.Entry) error {
	sorter := g.sorters[p.Table]
	if sorter == nil {
		sorter = extsort.New(g.folder, budgets[p.Table])
		g.sorters[p.Table] = sorter
	}
	g.key, g.content = appendKey(g.key[:0], &p.Record), appendEntry(g.content[:0], p)
	return sorter.Add(g.key, g.content)
}

// Read returns the sorted records of tables, which stay in g.
func (g *Sorters) Read(list []*record.Table) (all []Sorted, err error) {
	for _, t := range list {
		if sorter := g.sorters[t]; sorter != nil {
			rows, err := sorter.Rows()
			if err != nil {
				return nil, err
			}
			all = append(all, Sorted{t, rows})
		}
	}
	return all, nil
}

// Take removes a table's sorter and returns it, nil if the table has no records.
func (g *Sorters) Take(t *record.Table) *extsort.Sorter {
	sorter := g.sorters[t]
	delete(g.sorters, t)
	return sorter
}

// Close removes the temporary files of the sorters that were not taken.
func (g *Sorters) Close() error {
	var errs []error
	for _, sorter := range g.sorters {
		errs = append(errs, sorter.Close())
	}
	clear(g.sorters)
	return errors.Join(errs...)
}

// Sorted are the sorted records of a table.
type Sorted struct {
	Table *record.Table
	Rows  *extsort.Rows
}
