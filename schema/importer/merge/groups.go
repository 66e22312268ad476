package merge

import (
	"bytes"
	"fmt"
	"sync"

	"regedge/schema/extsort"
	"regedge/schema/importer/record"
)

// Groups reads the sorted records of a table in a goroutine of its own and sends them on in
// batches. All records of one key are in one batch.
type Groups struct {
	Batches chan []record.Entry
	quit    chan struct{}
	wait    sync.WaitGroup
	failure error // valid after wait
}

// maxOfKey bounds the records of one key, which are in memory at once with some 2 KB each. Hundreds of files in one run have one each.
const maxOfKey = 20_000

// ReadGroups starts reading rows. Batches is closed at the end or on an error, which Err returns.
func ReadGroups(t *record.Table, rows *extsort.Rows) *Groups {
	g := &Groups{Batches: make(chan []record.Entry, 1), quit: make(chan struct{})}
	g.wait.Go(func() {
		defer close(g.Batches)
		g.failure = g.read(t, rows)
	})
	return g
}

// Stop ends the goroutine, if it still runs.
func (g *Groups) Stop() {
	close(g.quit)
	g.wait.Wait()
}

// Err returns the error that ended the batches, once they have ended.
func (g *Groups) Err() error {
	g.wait.Wait()
	return g.failure
}

func (g *Groups) read(t *record.Table, rows *extsort.Rows) error {
	var last []byte
	ofKey := 0
	batch := make([]record.Entry, 0, record.BatchRecords)
	for rows.Next() {
		if !bytes.Equal(last, rows.Key()) {
			ofKey = 0
			if len(batch) >= record.BatchRecords {
				if !g.send(batch) {
					return nil
				}
				batch = make([]record.Entry, 0, record.BatchRecords)
			}
		}
		if ofKey++; ofKey > maxOfKey {
			return fmt.Errorf("the files have more than %d rows of %s: is it a column of something else?", maxOfKey, batch[len(batch)-1].Key[0])
		}
		last = append(last[:0], rows.Key()...)
		p, err := readEntry(t, rows.Key(), rows.Value())
		if err != nil {
			return err
		}
		batch = append(batch, p)
	}
	if len(batch) > 0 {
		g.send(batch)
	}
	return rows.Err()
}

// SameKey returns how many records at the beginning have the key of the first.
func SameKey(records []record.Entry) int {
	n := 1
	for n < len(records) && records[n].Key == records[0].Key {
		n++
	}
	return n
}

// send reports false after Stop.
func (g *Groups) send(batch []record.Entry) bool {
	select {
	case g.Batches <- batch:
		return true
	case <-g.quit:
		return false
	}
}
