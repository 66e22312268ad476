package writer

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"regedge/replicate/metering/ledger"
)

// changeFunc changes the database and the ledger in one transaction.
type changeFunc = func(ctx context.Context, tx *sql.Tx, nowMillis int64, l *ledger.Ledger) error

// edit is a change that an operator asks for, with its answer.
type edit[A any] struct {
	change changeFunc
	// answer reads the answer in the transaction of the change, once the ledger's rows are written.
	answer func(ctx context.Context, tx *sql.Tx, nowMillis int64, l *ledger.Ledger) (A, error)
	// row, if set, names the row of the projection that was changed.
	row func(A) changedRow
	// committed, if set, brings the change into what the writer keeps in memory. It is called in the
	// order of the commits.
	committed func(A)
}

// given returns the answer that the change itself has set.
func given[A any](answer *A) func(context.Context, *sql.Tx, int64, *ledger.Ledger) (A, error) {
	return func(context.Context, *sql.Tx, int64, *ledger.Ledger) (A, error) { return *answer, nil }
}

// apply commits an operator's change, audited, and returns its answer. A change that was made before
// under the request's Idempotency-Key is not made again: apply returns its answer again.
//
// It waits some time for the projection of the changed row into the access database. The answer is
// pending when edges do not know of the change then; they will, since the projector goes on.
func apply[A any](w *Writer, r *http.Request, e edit[A]) (A, error) {
	ctx, cancel := context.WithTimeout(r.Context(), changeLimit)
	defer cancel()
	var answer, none A // answer must not be read after an error: Run may still write it
	if err := checkAct(ctx); err != nil {
		return none, err
	}
	var projected *pendingRow
	named, change := idempotencyOf(r.Context()), audited(r.Context(), e.change)
	project := func() {
		if e.row != nil {
			projected = w.projector.add(e.row(answer))
		}
	}
	op := &operation{
		change: func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
			if err := named.recall(ctx, tx, w.steadyNow(), &answer); err != nil {
				return err
			}
			return change(ctx, tx, now, l)
		},
		finish: func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) (err error) {
			if answer, err = e.answer(ctx, tx, now, l); err != nil {
				return err
			}
			//mutant:change-forgotten-under-its-key
			return named.keep(ctx, tx, w.steadyNow(), now, answer)
		},
		ended: func(err error) {
			switch {
			case err == nil && e.committed != nil:
				e.committed(answer)
			case err != nil && e.row != nil:
				w.projector.compareAll() // the outcome is unknown
			}
			if err == nil {
				//mutant:commit-loop-waits-for-projection
				project()
			}
		},
	}
	err := w.submit(ctx, op)
	if err != nil {
		w.tokensChanged.Store(true) // or not: the outcome may be unknown, or of an earlier call
	}
	switch {
	case errors.Is(err, errRepeated):
		named.replayed = true
		project()
	case err != nil:
		return none, apiErrorOf(err)
	}
	//mutant:pending-change-said-to-be-done
	if p, ok := any(&answer).(interface{ setPending(bool) }); ok {
		p.setPending(!awaitProjection(ctx, projected))
	}
	return answer, nil
}

// awaitProjection waits until a changed row is projected, and reports whether it was in time.
func awaitProjection(ctx context.Context, row *pendingRow) bool {
	if row == nil {
		return true
	}
	wait := time.NewTimer(projectWait)
	defer wait.Stop()
	select {
	case <-row.projected:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	return false
}
