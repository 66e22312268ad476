package load

import (
	"slices"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
	"regedge/schema/search"
)

// indexBuild builds the search index of an empty registry while its tables are written, in a
// goroutine of its own: it reads the sorted records of companies and LLPs and merges them a
// second time, for their names alone.
type indexBuild struct {
	builder *search.Builder
	wait    sync.WaitGroup
	read    chan struct{} // closed when all records have been read
	failure error         // valid after wait
}

func newIndexBuild(folder string) *indexBuild {
	return &indexBuild{builder: search.NewBuilder(folder), read: make(chan struct{})}
}

// start collects and sorts the names of records from sources of date asOf, and their terms.
// Call it at most once.
func (x *indexBuild) start(lists []merge.Sorted, asOf string) {
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

func (x *indexBuild) gather(list merge.Sorted, asOf string) error {
	groups := merge.ReadGroups(list.Table, list.Rows)
	defer groups.Stop()
	now := merge.NewState(list.Table)
	for batch := range groups.Batches {
		for len(batch) > 0 {
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

// BuildsIndex reports whether this run builds the whole search index.
func (s *Store) BuildsIndex() bool { return s.names != nil }

// StartIndex starts to build the search index from the records of lists, of sources of date
// asOf. Call it once, if BuildsIndex.
func (s *Store) StartIndex(lists []merge.Sorted, asOf string) { s.names.start(lists, asOf) }

// AwaitNames waits until the records of a table are no longer read for the search index.
func (s *Store) AwaitNames(t *record.Table) {
	if s.names != nil && slices.Contains(record.Searched, t) {
		<-s.names.read
	}
}

// install writes the index.
func (x *indexBuild) install(c *sqlite3.Conn) error {
	x.wait.Wait()
	if x.failure != nil {
		return x.failure
	}
	_, err := x.builder.Install(c)
	return err
}

func (x *indexBuild) close() {
	x.builder.Drop()
	x.wait.Wait()
	x.builder.Close()
}
