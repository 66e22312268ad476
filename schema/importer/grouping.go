package importer

import (
	"bytes"
	"sync"

	"regedge/schema/extsort"
)

// grouping reads the records of a table in the order of their keys, in a goroutine of its
// own, and hands them on in batches that hold all records of each of their keys.
type grouping struct {
	batches chan []filed
	quit    chan struct{}
	wait    sync.WaitGroup
	failure error // valid after wait
}

// filed is a record with the file of the run that it is from.
type filed struct {
	pending
	file int
}

func startGrouping(t *table, rows *extsort.Rows) *grouping {
	g := &grouping{batches: make(chan []filed, 1), quit: make(chan struct{})}
	g.wait.Go(func() {
		defer close(g.batches)
		g.failure = g.read(t, rows)
	})
	return g
}

// stop ends the goroutine, if it still runs.
func (g *grouping) stop() {
	close(g.quit)
	g.wait.Wait()
}

// err is what ended the batches, valid once they have ended.
func (g *grouping) err() error {
	g.wait.Wait()
	return g.failure
}

func (g *grouping) read(t *table, rows *extsort.Rows) error {
	var last []byte
	batch := make([]filed, 0, batchRecords)
	for rows.Next() {
		if len(batch) >= batchRecords && !bytes.Equal(last, rows.Key()) {
			if !g.send(batch) {
				return nil
			}
			batch = make([]filed, 0, batchRecords)
		}
		last = append(last[:0], rows.Key()...)
		p, file, err := readPending(t, rows.Key(), rows.Value())
		if err != nil {
			return err
		}
		batch = append(batch, filed{p, file})
	}
	if len(batch) > 0 {
		g.send(batch)
	}
	return rows.Err()
}

// sameKey is how many records at the beginning have the key of the first.
func sameKey(records []filed) int {
	n := 1
	for n < len(records) && records[n].key == records[0].key {
		n++
	}
	return n
}

// send reports false when nobody takes batches any more.
func (g *grouping) send(batch []filed) bool {
	select {
	case g.batches <- batch:
		return true
	case <-g.quit:
		return false
	}
}
