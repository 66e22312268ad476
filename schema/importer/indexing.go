package importer

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/extsort"
	"regedge/schema/search"
)

// indexing makes the search index of a register that was empty, in a goroutine of its own,
// beside the writing of the tables: it reads the records of companies and LLPs that were put
// in order, and merges them by itself.
type indexing struct {
	builder *search.Builder
	wait    sync.WaitGroup
	read    chan struct{} // closed when all records have been read
	dropped atomic.Bool   // the index is not wanted
	failure error         // valid after wait
}

// named are all records of a table whose names are searched.
type named struct {
	table *table
	rows  *extsort.Rows
}

func newIndexing(folder string) *indexing {
	return &indexing{builder: search.NewBuilder(folder), read: make(chan struct{})}
}

// start gathers the names of records of date asOf, and their terms. It is called once at most.
func (x *indexing) start(lists []named, asOf string) {
	x.wait.Go(func() {
		for _, list := range lists {
			if x.failure == nil {
				x.failure = x.gather(list, asOf)
			}
		}
		close(x.read)
		if x.failure == nil {
			x.failure = x.builder.Prepare()
		}
	})
}

func (x *indexing) gather(list named, asOf string) error {
	groups := startGrouping(list.table, list.rows)
	defer groups.stop()
	now := newState(list.table)
	for batch := range groups.batches {
		for len(batch) > 0 {
			if x.dropped.Load() {
				return errStopped
			}
			group := batch[:sameKey(batch)]
			batch = batch[len(group):]
			if !now.mergeNew(group, asOf) {
				continue
			}
			name, status := list.table.indexed(now)
			if err := x.builder.Add(group[0].key[0], name.s, status.s); err != nil {
				return err
			}
		}
	}
	return groups.err()
}

// letGo waits until the records of a table are no longer read.
func (x *indexing) letGo(t *table) {
	if slices.Contains(searched, t) {
		<-x.read
	}
}

// install writes the index.
func (x *indexing) install(c *sqlite3.Conn) error {
	x.wait.Wait()
	if x.failure != nil {
		return x.failure
	}
	_, err := x.builder.Install(c)
	return err
}

func (x *indexing) close() {
	x.dropped.Store(true)
	x.wait.Wait()
	x.builder.Close()
}
