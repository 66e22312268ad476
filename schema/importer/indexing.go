package importer

import (
	"errors"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/search"
)

// indexing gathers the names of a register that was empty, in a goroutine of its own, for
// a search index that is built at the end.
type indexing struct {
	builder *search.Builder
	present []naming
	batches chan []naming
	wait    sync.WaitGroup
	ended   bool
	dropped bool  // before the end: the terms are not wanted
	failure error // valid after wait
}

// naming is what the search knows of a company or LLP.
type naming struct{ value, name, status string }

func startIndexing(folder string) *indexing {
	x := &indexing{builder: search.NewBuilder(folder), batches: make(chan []naming, 1)}
	x.wait.Go(func() { x.failure = x.gather() })
	return x
}

func (x *indexing) gather() (err error) {
	for batch := range x.batches {
		for _, n := range batch {
			if err == nil {
				err = x.builder.Add(n.value, n.name, n.status)
			}
		}
	}
	if err == nil && !x.dropped {
		err = x.builder.Prepare()
	}
	return err
}

// add takes a record, each once.
func (x *indexing) add(value, name, status string) error {
	if x.ended {
		return errors.New("invariant broken: a name came after the last one")
	}
	x.present = append(x.present, naming{value, name, status})
	if len(x.present) == batchRecords {
		x.batches <- x.present
		x.present = make([]naming, 0, batchRecords)
	}
	return nil
}

// end says that there are no more names, so that their terms are gathered. It may be
// called again.
func (x *indexing) end() {
	if x.ended {
		return
	}
	x.ended = true
	x.batches <- x.present
	close(x.batches)
}

// install writes the index.
func (x *indexing) install(c *sqlite3.Conn) error {
	x.end()
	x.wait.Wait()
	if x.failure != nil {
		return x.failure
	}
	_, err := x.builder.Install(c)
	return err
}

func (x *indexing) close() {
	if !x.ended {
		x.dropped = true
	}
	x.end()
	x.wait.Wait()
	x.builder.Close()
}
