package importer

import (
	"cmp"
	"context"
	"fmt"

	"regedge/schema/importer/load"
	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
)

// importAll reads in goroutines of the intake and writes in this one.
func (r *run) importAll(ctx context.Context) (err error) {
	if err := r.store.StartBulk(); err != nil {
		return err
	}
	r.intake.begin()
	err = r.writeAll(ctx)
	r.stop() // a pipe that is silent would hold up an error
	if readErr := r.intake.end(); err == nil {
		err = readErr
	}
	if err != nil {
		return err
	}
	return r.finish()
}

// writeAll writes each table once all of it has been read. Pincodes come first, since companies
// refer to them; they have been read by then.
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
		_ = next.sorter.Close() // it was read: nothing is lost with what can't be closed
		if err != nil {
			return err
		}
	}
}

func interrupted(err error) error {
	return fmt.Errorf("import interrupted: %w", err)
}

// writeTable merges the records of a table into the database.
func (r *run) writeTable(ctx context.Context, list ordered) error {
	if err := r.store.BeginTable(list.table); err != nil {
		return err
	}
	rows, err := list.sorter.Rows()
	if err != nil {
		return fmt.Errorf("read the sorted records of table %s: %w", list.table.Name, err)
	}
	groups := merge.ReadGroups(list.table, rows)
	defer groups.Stop()
	w := load.NewWritten(len(r.sources))
	for batch := range groups.Batches {
		if err := ctx.Err(); err != nil {
			return interrupted(err)
		}
		if err := r.writeBatch(batch, w); err != nil {
			return fmt.Errorf("import into table %s: %w", list.table.Name, err)
		}
		r.tally.settled(len(batch))
	}
	r.store.AwaitNames(list.table)
	if err := groups.Err(); err != nil {
		return fmt.Errorf("import into table %s: %w", list.table.Name, err)
	}
	return cmp.Or(r.settle(w), r.store.EndTable(list.table))
}

// settleRecords is the number of records applied between two calls of Settle: it bounds the
// memory of pending updates.
const settleRecords = 50_000

// writeBatch applies a batch.
func (r *run) writeBatch(batch []record.Entry, w *load.Written) error {
	if err := r.store.ApplyBatch(batch, r.config.AsOf, w); err != nil {
		return err
	}
	if w.Records < settleRecords {
		return nil
	}
	return r.settle(w)
}

// settle counts the applied records.
func (r *run) settle(w *load.Written) error {
	if err := r.store.Settle(); err != nil {
		return err
	}
	err := r.tally.written(w)
	w.Forget()
	return err
}

// writePlaces replaces the pincode table by the directories of this run, if there were any,
// and counts their post offices.
func (r *run) writePlaces() error {
	if r.offices.None() {
		return nil
	}
	became, gone, err := r.store.ReplacePlaces(r.offices.Places())
	if err != nil {
		return fmt.Errorf("write the pincodes: %w", err)
	}
	r.report.PincodesGone = gone
	r.tally.lock.Lock()
	defer r.tally.lock.Unlock()
	for from, n := range r.offices.Total {
		f := &r.tally.files[from.File]
		f.Read += n
		switch became[from.Pincode] {
		case load.New:
			f.New += n
		case load.Changed:
			f.Changed += n
		case load.Unchanged:
			f.Unchanged += n
		}
	}
	return nil
}
