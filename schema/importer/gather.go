package importer

import (
	"errors"
	"path/filepath"

	"regedge/schema/extsort"
)

// gathering puts the records that were read aside, by table and in the order of their
// keys, so that each table is then read and written from its beginning to its end.
type gathering struct {
	folder  string
	sorters map[*table]*extsort.Sorter
	key     []byte
	content []byte
}

// budgets is the memory, in bytes, in which the records of a table are sorted.
var budgets = map[*table]int{
	companyTable: 32 << 20, llpTable: 8 << 20, directorTable: 16 << 20, appointmentTable: 32 << 20, partnerTable: 8 << 20,
}

// newGathering puts records aside next to the registry: where there is room for it, there
// is room for them.
func newGathering(registry string) *gathering {
	return &gathering{folder: filepath.Dir(registry), sorters: map[*table]*extsort.Sorter{}}
}

func (g *gathering) add(file int, p *pending) error {
	sorter := g.sorters[p.table]
	if sorter == nil {
		sorter = extsort.New(g.folder, budgets[p.table])
		g.sorters[p.table] = sorter
	}
	g.key, g.content = p.appendKey(g.key[:0]), appendPending(g.content[:0], file, p)
	return sorter.Add(g.key, g.content)
}

// read reads all records of tables, which stay here.
func (g *gathering) read(list []*table) (all []named, err error) {
	for _, t := range list {
		if sorter := g.sorters[t]; sorter != nil {
			rows, err := sorter.Rows()
			if err != nil {
				return nil, err
			}
			all = append(all, named{t, rows})
		}
	}
	return all, nil
}

// take hands a table's records over; nil when there are none.
func (g *gathering) take(t *table) *extsort.Sorter {
	sorter := g.sorters[t]
	delete(g.sorters, t)
	return sorter
}

func (g *gathering) close() error {
	var errs []error
	for _, sorter := range g.sorters {
		errs = append(errs, sorter.Close())
	}
	clear(g.sorters)
	return errors.Join(errs...)
}
