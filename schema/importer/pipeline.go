package importer

import (
	"context"
	"fmt"
)

// importAll reads in goroutines of its own and writes in this one.
func (r *run) importAll(ctx context.Context) (err error) {
	if err := r.store.startBulk(); err != nil {
		return err
	}
	r.intake.begin()
	err = r.writeAll(ctx)
	if readErr := r.intake.end(); err == nil {
		err = readErr
	}
	if err != nil {
		return err
	}
	return r.finish()
}

// writeAll writes each table when all of it has been read. The pincodes, which companies refer
// to, have been read by then.
func (r *run) writeAll(ctx context.Context) error {
	for placed := false; ; placed = true {
		next, more, err := r.intake.next(ctx)
		if err != nil {
			return interrupted(err)
		}
		if !placed {
			if err := r.writePlaces(); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		err = r.writeTable(ctx, next)
		if closeErr := next.sorter.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
}

func interrupted(err error) error {
	return fmt.Errorf("import interrupted (run it again to complete it): %w", err)
}

// writeTable merges the records of a table into the database.
func (r *run) writeTable(ctx context.Context, list ordered) error {
	if err := r.store.beginTable(list.table, list.sorter.Len()); err != nil {
		return err
	}
	rows, err := list.sorter.Rows()
	if err != nil {
		return fmt.Errorf("read what was sorted for table %s: %w", list.table.name, err)
	}
	groups := startGrouping(list.table, rows)
	defer groups.stop()
	w := newWritten(len(r.sources))
	for batch := range groups.batches {
		if err := ctx.Err(); err != nil {
			return firstError(r.commit(w), interrupted(err))
		}
		if err := r.writeBatch(batch, w); err != nil {
			r.store.rollback()
			return fmt.Errorf("import into table %s: %w", list.table.name, err)
		}
		r.tally.settled(len(batch))
	}
	if r.store.names != nil {
		r.store.names.letGo(list.table)
	}
	if err := groups.err(); err != nil {
		r.store.rollback()
		return fmt.Errorf("import into table %s: %w", list.table.name, err)
	}
	return firstError(r.commit(w), r.store.endTable(list.table))
}

// commitRecords is how many records one transaction takes: enough that a page is written
// once for many of them, few enough to bound the log and what an interruption costs.
const commitRecords = 50_000

// writeBatch applies whole groups, and commits when enough have gathered.
func (r *run) writeBatch(batch []filed, w *written) error {
	if !r.store.open {
		if err := r.store.begin(); err != nil {
			return err
		}
	}
	if err := r.store.applyBatch(batch, r.config.AsOf, w); err != nil {
		return err
	}
	if w.records += len(batch); w.records < commitRecords {
		return nil
	}
	return r.commit(w)
}

// commit makes the applied records durable, and only then counts them.
func (r *run) commit(w *written) error {
	if err := r.store.commit(); err != nil {
		return err
	}
	err := r.tally.written(w)
	w.forget()
	return err
}

// written counts what became of records, by file, that were applied and are not yet
// committed.
type written struct {
	records int
	counts  []outcomes
	missing [][]reject
}

func newWritten(files int) *written {
	return &written{counts: make([]outcomes, files), missing: make([][]reject, files)}
}

func (w *written) forget() {
	w.records = 0
	clear(w.counts)
	clear(w.missing)
}
