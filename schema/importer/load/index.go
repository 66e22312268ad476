package load

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
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

// errDropped ends the building of an index that is not needed any more.
var errDropped = errors.New("search index dropped")

func newIndexing(folder string) *indexing {
	return &indexing{builder: search.NewBuilder(folder), read: make(chan struct{})}
}

// start gathers the names of records of date asOf, and their terms. It is called once at most.
func (x *indexing) start(lists []merge.Sorted, asOf string) {
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

func (x *indexing) gather(list merge.Sorted, asOf string) error {
	groups := merge.ReadGroups(list.Table, list.Rows)
	defer groups.Stop()
	now := merge.NewState(list.Table)
	for batch := range groups.Batches {
		for len(batch) > 0 {
			if x.dropped.Load() {
				return errDropped
			}
			group := batch[:merge.SameKey(batch)]
			batch = batch[len(group):]
			if !now.MergeNew(group, asOf) {
				continue
			}
			name, status := indexed(list.Table, now)
			if err := x.builder.Add(group[0].Key[0], name.Text, status.Text); err != nil {
				return err
			}
		}
	}
	return groups.Err()
}

// BuildsIndex reports whether this run builds the search index anew.
func (s *Store) BuildsIndex() bool { return s.names != nil }

// StartIndex begins to build the search index from the records of lists, of sources of date
// asOf, beside the writing of tables. It is called once, if buildsIndex.
func (s *Store) StartIndex(lists []merge.Sorted, asOf string) { s.names.start(lists, asOf) }

// AwaitNames waits until the records of a table are no longer read for the search index.
func (s *Store) AwaitNames(t *record.Table) {
	if s.names != nil && slices.Contains(record.Searched, t) {
		<-s.names.read
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
