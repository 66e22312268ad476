package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

// maxGroup is the most operations in one transaction.
const maxGroup = 512

// operation is a change or a look at the ledger. Exactly one of step and change is set.
type operation struct {
	edge string
	// step changes the ledger in memory; the changes of many steps are committed together.
	step func(now int64, l *ledger.Ledger, e *ledger.Edge) *syncproto.Reply
	// hold says that the step waits until there is news.
	hold *syncproto.Sync
	// change changes the database and the ledger, in a transaction of its own; with readOnly
	// it only reads them.
	change   changeFunc
	readOnly bool
	// finish, if set, is the last part of the transaction, when the ledger's rows are written.
	finish changeFunc
	// ended, if set, gets the commit's outcome, whether or not the caller still waits.
	ended func(error)

	reply *syncproto.Reply
	done  chan error
	// span is the span of the request, nil if it is not traced.
	span trace.Span
	// claimed is set once: by Run when it starts the operation, or by a caller that gives up before
	// that. So a change that was reported as failed is not made later.
	claimed atomic.Bool
}

// claim reports whether the operation was still unclaimed.
func (op *operation) claim() bool { return op.claimed.CompareAndSwap(false, true) }

// outcomeLimit is how long a caller whose time is over waits for a commit that has begun.
const outcomeLimit = 10 * time.Second

// submit passes an operation to Run and waits for its result.
func (w *Writer) submit(ctx context.Context, op *operation) error {
	op.done = make(chan error, 1)
	w.noteSpan(ctx, op)
	if w.fenced.Load() {
		return ErrFenced
	}
	select {
	case w.ops <- op:
	case <-w.ended:
		return w.resultAfterEnd(op)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	select {
	case err := <-op.done:
		return err
	case <-w.ended:
		return w.resultAfterEnd(op)
	case <-ctx.Done():
		if op.claim() {
			return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		}
		return w.awaitOutcome(op)
	}
}

// awaitOutcome waits for an operation that Run has started.
func (w *Writer) awaitOutcome(op *operation) error {
	limit := time.NewTimer(outcomeLimit)
	defer limit.Stop()
	select {
	case err := <-op.done:
		return err
	case <-w.ended:
		return w.resultAfterEnd(op)
	case <-limit.C:
		return fmt.Errorf("%w: the commit takes too long, and its outcome is unknown", ErrUnavailable)
	}
}

// resultAfterEnd is the result of an operation when Run has returned: its answer, if it got one,
// or the reason why not.
func (w *Writer) resultAfterEnd(op *operation) error {
	select {
	case err := <-op.done:
		return err
	default:
	}
	if w.fenced.Load() {
		return ErrFenced
	}
	return ErrUnavailable
}

// gather collects the operations that are waiting, without blocking.
func (w *Writer) gather(first *operation) []*operation {
	group := []*operation{first}
	for len(group) < maxGroup {
		select {
		case op := <-w.ops:
			group = append(group, op)
		default:
			return group
		}
	}
	return group
}

// commitGroup runs the steps of a group and commits them together. Each change has a
// transaction of its own.
func (w *Writer) commitGroup(ctx context.Context, group []*operation) {
	if w.ledger == nil {
		w.reload(ctx)
	}
	var steps []*operation
	for _, op := range group {
		switch {
		case w.ledger == nil:
			op.done <- ErrUnavailable
		case op.hold != nil && !w.due(op):
			w.held = append(w.held, op)
		//mutant:unavailable-change-made-later
		case !op.claim():
		case op.change != nil:
			w.commitSteps(ctx, steps)
			steps = nil
			if w.ledger == nil {
				op.done <- ErrUnavailable
				continue
			}
			began := time.Now()
			err := w.commitChange(ctx, op)
			w.traceCommit([]*operation{op}, began, err)
			op.done <- err
		default:
			steps = append(steps, op)
		}
	}
	w.commitSteps(ctx, steps)
	w.releaseNews()
}

// due reports whether a held operation should be answered.
func (w *Writer) due(op *operation) bool {
	e := w.ledger.Edge(op.edge)
	return e == nil || w.ledger.HasNews(e, op.hold)
}

// commitSteps runs steps in memory, commits what they changed, and only then answers.
func (w *Writer) commitSteps(ctx context.Context, steps []*operation) {
	if len(steps) == 0 {
		return
	}
	if w.ledger == nil {
		answer(steps, ErrUnavailable)
		return
	}
	now, began := w.now(), time.Now()
	for _, op := range steps {
		if e := w.ledger.Edge(op.edge); e != nil && w.ledger.Excess(e) == nil {
			op.reply = op.step(now, w.ledger, e)
			if err := w.ledger.Excess(e); err != nil {
				w.offenders.fence(op.edge, err)
			}
			if e.DropsDoubts() {
				w.config.Logger.Error("a node reports more charges in doubt than a day's list holds: the rest of today's is dropped", "node", op.edge)
			}
		}
	}
	err := w.flush(ctx, now)
	w.metrics.group(len(steps), err)
	w.traceCommit(steps, began, err)
	switch {
	case !schema.Refused(err):
		answer(steps, err)
	//mutant:failed-group-fails-all
	case len(steps) > 1: // one of them is at fault
		for _, op := range steps {
			w.commitSteps(ctx, []*operation{op})
		}
	default:
		w.offenders.note(steps[0].edge, err)
		answer(steps, errNotStored)
	}
}

func answer(ops []*operation, err error) {
	for _, op := range ops {
		op.done <- err
	}
}

// confirmMillis is how long after a commit the writer may answer without reading the
// generation: another writer may have taken the ledger and added credits.
const confirmMillis = 1000

// confirm checks that this writer still holds the ledger.
func (w *Writer) confirm(ctx context.Context, now int64) error {
	if since := now - w.confirmed; since >= 0 && since < confirmMillis {
		return nil
	}
	var generation uint64
	err := w.config.Ledger.QueryRowContext(ctx, `SELECT generation FROM writer`).Scan(&generation)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case generation != w.generation:
		w.fenced.Store(true)
		return ErrFenced
	}
	w.confirmed = now
	return nil
}

// flush commits the changes. After an error the ledger is loaded again. When the outcome is unknown,
// the edges' next messages show what was applied.
func (w *Writer) flush(ctx context.Context, now int64) error {
	if !w.ledger.Changed() {
		return w.confirm(ctx, now)
	}
	keys := w.ledger.ChangedKeys()
	tx, end, err := w.begin(ctx)
	if err == nil {
		if err = w.ledger.Flush(ctx, tx, now, w.prepared); err == nil {
			err = tx.Commit()
		}
		end() // before the ledger is loaded again, which needs the lock
	}
	if err == nil {
		w.confirmed, w.wrote = now, true
	}
	//mutant:key-limit-not-projected
	w.projectKeys(keys, err)
	return w.outcome(ctx, err)
}

// projectKeys projects keys that have spent their month's credits, or may be used again, after a commit.
// Their limit is soft: revocations go first.
func (w *Writer) projectKeys(keys []int64, err error) {
	for _, key := range keys {
		if err != nil {
			w.projector.compareAll() // the outcome is unknown
			return
		}
		w.projector.add(changedRow{table: keyTable, id: key})
	}
}

// outcome handles the end of a transaction and returns the error to answer with.
func (w *Writer) outcome(ctx context.Context, err error) error {
	w.noteWrite(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrFenced):
		w.fenced.Store(true)
		return ErrFenced
	case errors.Is(err, errAway): // it was logged already
		w.ledger = nil
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if schema.Refused(err) {
		w.config.Logger.Error("the ledger can't be written", "error", err)
	} else {
		w.logUnwritten(err)
	}
	old := w.ledger
	//mutant:failed-commit-answered
	w.reload(ctx)
	if w.ledger != nil && old != nil && schema.Refused(err) {
		w.ledger.Resume(old)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// noteWrite notes whether the ledger could be written, for readiness.
func (w *Writer) noteWrite(err error) {
	switch {
	case err == nil:
		w.unwritten.Store(0)
		w.unbooked.end(func(count int) { w.config.Logger.Info("the ledger is written again", "failed", count) })
	case !errors.Is(err, ledger.ErrFenced) && !schema.Refused(err):
		w.unwritten.Add(1)
	}
}

// logUnwritten logs why the ledger can't be written, now and then.
func (w *Writer) logUnwritten(err error) {
	if errors.Is(err, errAway) { // it was logged already
		return
	}
	w.unbooked.note(func(count int) {
		w.config.Logger.Error("the ledger can't be written", "failed", count, "error", schema.OfDisk(err))
	})
}

// load reads the ledger.
func (w *Writer) load(ctx context.Context) (*ledger.Ledger, error) {
	l, err := ledger.Load(ctx, w.config.Ledger)
	if err == nil {
		err = l.LoadKeyLimits(ctx, w.config.Ledger, w.now())
	}
	return l, err
}

// settle takes a server's write lock for a moment: then a commit whose answer was lost has landed, or never will. A commit
// to a file has an answer.
func (w *Writer) settle(ctx context.Context) error {
	if w.local {
		return nil
	}
	tx, err := w.config.Ledger.BeginTx(ctx, nil) // on another connection where the last one is of no use any more
	if err == nil {
		defer tx.Rollback()
		err = ledger.Guard(ctx, tx, w.generation, w.now())
	}
	if err != nil && !errors.Is(err, ledger.ErrFenced) {
		return fmt.Errorf("take the ledger's write lock: %w", err)
	}
	return err
}

// reload loads the ledger again. It is nil while that fails.
func (w *Writer) reload(ctx context.Context) {
	old := w.ledger
	w.ledger = nil
	if w.inPlace(ctx) != nil {
		return
	}
	var l *ledger.Ledger
	err := w.settle(ctx)
	if err == nil {
		l, err = w.load(ctx)
	}
	switch {
	case errors.Is(err, ledger.ErrFenced):
		w.fenced.Store(true)
		return
	case err != nil:
		w.unread.Store(true)
		w.unloaded.note(func(count int) { // every message tries it again
			w.config.Logger.Error("the ledger can't be read: all is refused", "failed", count, "error", err)
		})
		if old != nil {
			w.last = old
		}
		return
	case l.Generation != w.generation:
		w.fenced.Store(true)
		return
	}
	if old == nil {
		old = w.last
	}
	if old != nil {
		l.CarryOver(old)
	}
	w.ledger, w.last = l, nil
	w.unread.Store(false)
	if !w.local {
		w.projector.compareAll() // a commit may have landed after the comparison that followed it
	}
}

// commitChange runs one change in its own transaction. An error of the change itself leaves
// the ledger unchanged.
func (w *Writer) commitChange(ctx context.Context, op *operation) error {
	now := w.now()
	tx, end, err := w.begin(ctx)
	if err != nil {
		return w.outcome(ctx, err)
	}
	defer end() // and before the ledger is loaded again, as in flush
	if err := ledger.Guard(ctx, tx, w.generation, now); err != nil {
		end()
		return w.outcome(ctx, err)
	}
	if err := op.change(ctx, tx, now, w.ledger); err != nil {
		end()
		if w.ledger.Changed() {
			w.reload(ctx)
		}
		return err
	}
	if op.readOnly {
		return nil
	}
	keys := w.ledger.ChangedKeys()
	if err = w.ledger.Flush(ctx, tx, now, w.prepared); err == nil && op.finish != nil {
		err = op.finish(ctx, tx, now, w.ledger)
	}
	if err == nil {
		err = tx.Commit()
	}
	end()
	if op.ended != nil {
		op.ended(err)
	}
	w.projectKeys(keys, err)
	return w.outcome(ctx, err)
}

// releaseNews answers the held operations that have news.
func (w *Writer) releaseNews() {
	var due []*operation
	rest := w.held[:0]
	for _, op := range w.held {
		switch {
		case op.claimed.Load(): // its caller has gone
		case w.ledger == nil || w.due(op):
			if op.claim() {
				due = append(due, op)
			}
		default:
			rest = append(rest, op)
		}
	}
	clear(w.held[len(rest):])
	w.held = rest
	w.commitSteps(context.Background(), due)
}

// releaseAll answers every waiting operation with err.
func (w *Writer) releaseAll(err error) {
	answer(w.held, err)
	w.held = nil
	for {
		select {
		case op := <-w.ops:
			op.done <- err
		default:
			return
		}
	}
}

// begin starts a transaction whose commit is durable, and returns it with a function that ends
// it. All transactions on a file use one connection.
func (w *Writer) begin(ctx context.Context) (*sql.Tx, func(), error) {
	if w.local {
		if err := w.inPlace(ctx); err != nil {
			return nil, nil, err
		}
		return w.beginLocal(ctx)
	}
	conn, err := w.config.Ledger.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return tx, func() { tx.Rollback(); conn.Close() }, nil
}

func (w *Writer) beginLocal(ctx context.Context) (*sql.Tx, func(), error) {
	if w.conn == nil {
		conn, err := w.config.Ledger.Conn(ctx)
		if err != nil {
			return nil, nil, err
		}
		if _, err := conn.ExecContext(ctx, `PRAGMA synchronous = FULL`); err != nil {
			return nil, nil, errors.Join(err, conn.Close())
		}
		w.conn, w.prepared = conn, ledger.Prepare(conn)
	}
	tx, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, nil, errors.Join(err, w.release())
	}
	if w.location.log == nil {
		w.location.noteLog() // the transaction has made it
	}
	return tx, func() { tx.Rollback() }, nil
}

// release closes the connection to the ledger's file.
func (w *Writer) release() error {
	if w.conn == nil {
		return nil
	}
	err := errors.Join(w.prepared.Close(), w.conn.Close())
	w.conn, w.prepared, w.location.log = nil, nil, nil
	return err
}
