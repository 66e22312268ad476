package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3/driver"

	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

const (
	// projectWait is how long an operator's change waits for its projection before it is answered as
	// pending.
	projectWait = 2 * time.Second
	// rowLimit bounds a statement about one row, and tableLimit one that reads a whole table.
	rowLimit   = 5 * time.Second
	tableLimit = time.Minute
	// endGrace is how long a statement under way may go on when the writer ends.
	endGrace = time.Second
	// The pause after a failed update doubles from leastPause to mostPause.
	leastPause = 500 * time.Millisecond
	mostPause  = 8 * time.Second
	// lateAfter is how long after a statement on a server was given up, or the writer began, everything is compared once
	// more: the statement, or one of the writer before, may have been under way, and put back a row that was dropped since.
	lateAfter = time.Minute
)

// projector keeps the access database, a projection of the ledger, up to date: plans, accounts and
// valid keys. A change is written to the ledger first and projected after its commit; after a crash
// between the two, the comparison at the next start repairs it.
//
// It runs beside the commit loop, which never waits for it: the access database may be on a server
// that is down, slow or hanging.
type projector struct {
	ledger, access *sql.DB
	log            *slog.Logger
	jitter         func(time.Duration) time.Duration
	asked          chan struct{}                        // there is something to do; capacity 1
	after          func(time.Duration) <-chan time.Time // time.After
	migrated       bool                                 // owned by Run
	gaveUp         bool                                 // a statement failed in this update; owned by Run
	logged         string                               // the failure as last logged; owned by Run

	mu        sync.Mutex
	pending   []*pendingRow
	unmade    bool      // the access database has lost its tables
	compare   bool      // compare both databases
	comparing bool      // it is running
	filled    bool      // a comparison has gone through all of the access database since it had no tables
	failure   error     // of the last update, nil after one that did not fail
	since     time.Time // when compare was set
}

// changedRow is a row of the projection that a change touched.
type changedRow struct {
	table int // index in projection
	id    any
	// takes says that the change takes access away, so it is projected first.
	takes bool
}

// pendingRow is a changed row that the access database may miss.
type pendingRow struct {
	changedRow
	since     time.Time
	projected chan struct{} // closed when the access database has it
}

func newProjector(config Config, jitter func(time.Duration) time.Duration) *projector {
	return &projector{ledger: config.Ledger, access: config.Access, log: config.Logger, jitter: jitter,
		asked: make(chan struct{}, 1), after: time.After, compare: true, since: time.Now()}
}

// add asks for a row to be projected.
func (p *projector) add(row changedRow) *pendingRow {
	added := &pendingRow{changedRow: row, since: time.Now(), projected: make(chan struct{})}
	p.mu.Lock()
	p.pending = append(p.pending, added)
	p.mu.Unlock()
	p.ask()
	return added
}

// compareAll asks for a comparison, after a change whose outcome is unknown.
func (p *projector) compareAll() {
	p.mu.Lock()
	if !p.compare && !p.comparing {
		p.since = time.Now()
	}
	p.compare = true
	p.mu.Unlock()
	p.ask()
}

// lost says that the access database has no tables any more, as after its primary began with an empty one. The next
// update creates them and compares.
func (p *projector) lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unmade, p.filled = true, false
	if !p.compare && !p.comparing {
		p.since = time.Now()
	}
	p.compare = true
}

// noTable reports whether the access database has no tables.
func noTable(err error) bool { return err != nil && strings.Contains(err.Error(), "no such table") }

func (p *projector) ask() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// EmptyLedgerRemark is what readiness says while an empty ledger may remove nothing from the access database.
const EmptyLedgerRemark = "the ledger has no account, and it has some"

// why is the reason why the last update failed, "" if it did not. Anybody may ask readiness for it, so it is not the
// error's text, which may contain addresses.
func (p *projector) why() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.failure == nil:
		return ""
	case errors.Is(libsql.Explain(p.failure), libsql.ErrUnauthorized):
		return "its primary refuses the writer's token"
	case errors.Is(p.failure, errEmptyLedger):
		return EmptyLedgerRemark
	}
	return "the writer's log says why"
}

// behind returns how many changes the access database may miss, and the age of the oldest. A
// comparison counts as one.
func (p *projector) behind() (changes int, age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changes = len(p.pending)
	for _, row := range p.pending {
		age = max(age, time.Since(row.since))
	}
	if p.compare || p.comparing {
		changes, age = changes+1, max(age, time.Since(p.since))
	}
	return changes, age
}

// run projects until ctx ends.
func (p *projector) run(ctx context.Context) {
	var late <-chan time.Time // comes when what was given up has arrived, or never will
	if !isFile(p.access) {
		late = p.after(lateAfter)
	}
	again := false // more was given up since late was set
	for pause := time.Duration(0); ; {
		err := p.update(ctx)
		if ctx.Err() != nil {
			return
		}
		p.logOutcome(err)
		if noTable(err) {
			p.lost()
		}
		var retry <-chan time.Time
		if err == nil {
			pause = 0
		} else {
			pause = min(max(2*pause, leastPause), mostPause)
			retry = time.After(p.jitter(pause))
		}
		if p.gaveUp {
			if p.gaveUp = false; late != nil {
				again = true
			} else {
				late = p.after(lateAfter)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-p.asked:
		case <-retry:
		case <-late:
			if late = nil; again {
				again, late = false, p.after(lateAfter)
			}
			p.compareAll()
		}
	}
}

// logOutcome logs the first failure, another one, and the end of failures.
func (p *projector) logOutcome(err error) {
	p.mu.Lock()
	p.failure = err
	p.mu.Unlock()
	switch {
	case err == nil && p.logged != "":
		p.logged = ""
		p.log.Info("the access database is up to date again")
	case err != nil && p.logged != err.Error():
		p.logged = err.Error()
		p.log.Error("the access database can't be brought up to date: revocations, new keys and changed plans wait for it", "error", err)
	}
}

// update projects what is pending. It returns the last error; failed rows stay pending.
func (p *projector) update(ctx context.Context) error {
	if err := p.migrate(ctx); err != nil {
		return err
	}
	err := p.projectPending(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if failed := p.compareIfAsked(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	if err != nil { // in a new access database the comparison puts the plans that accounts refer to
		err = p.projectPending(ctx)
	}
	return err
}

func (p *projector) migrate(ctx context.Context) error {
	p.mu.Lock()
	unmade := p.unmade
	p.unmade = false
	p.mu.Unlock()
	if p.migrated = p.migrated && !unmade; p.migrated {
		return nil
	}
	ctx, cancel := bounded(ctx, tableLimit)
	defer cancel()
	if err := schema.Migrate(ctx, p.access, schema.Access); err != nil {
		return err
	}
	p.migrated = true
	return nil
}

// projectPending projects the pending rows, those that take access away first, then in the order of
// their tables. A row that fails does not hold up the others, but a server that does not answer
// ends the update.
func (p *projector) projectPending(ctx context.Context) (last error) {
	p.mu.Lock()
	rows := slices.Clone(p.pending)
	p.mu.Unlock()
	//mutant:puts-projected-before-drops
	slices.SortStableFunc(rows, func(a, b *pendingRow) int {
		switch {
		case a.takes != b.takes && a.takes:
			return -1
		case a.takes != b.takes:
			return 1
		}
		return a.table - b.table
	})
	for _, row := range rows {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := p.projectRow(ctx, row.changedRow)
		if err == nil {
			p.remove(row)
			close(row.projected)
			continue
		}
		last = err
		//mutant:refused-row-holds-up-others
		if errors.Is(err, context.DeadlineExceeded) {
			return last
		}
	}
	return last
}

func (p *projector) remove(row *pendingRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = slices.DeleteFunc(p.pending, func(other *pendingRow) bool { return other == row })
}

// projectRow makes one row of the access database what the ledger has now.
func (p *projector) projectRow(ctx context.Context, changed changedRow) error {
	t := projection[changed.table]
	found, err := p.readRow(ctx, t, changed.id)
	switch {
	case err == nil && len(found) > 0:
		err = p.put(ctx, t, found)
	case err == nil:
		err = p.drop(ctx, t, []any{changed.id})
	}
	if err != nil {
		return fmt.Errorf("project %s %v: %w", t.name, changed.id, err)
	}
	return nil
}

// readRow reads a row of the ledger, if it has it.
func (p *projector) readRow(ctx context.Context, t projected, id any) ([]row, error) {
	ctx, cancel := bounded(ctx, rowLimit)
	defer cancel()
	found, err := readRows(ctx, p.ledger, t.ledger+` AND id = ?`, t.columns, id)
	if err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	return found, nil
}

func (p *projector) compareIfAsked(ctx context.Context) error {
	p.mu.Lock()
	p.comparing, p.compare = p.compare, false
	wanted := p.comparing
	p.mu.Unlock()
	if !wanted {
		return nil
	}
	err := p.compareTables(ctx)
	p.mu.Lock()
	p.comparing, p.compare = false, p.compare || err != nil
	p.filled = p.filled || !p.unmade && (err == nil || refusesRow(err))
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("bring access database up to date: %w", err)
	}
	return nil
}

// refusesRow reports whether an error is the answer of the access database that it does not take a row.
func refusesRow(err error) bool {
	return err != nil && strings.Contains(err.Error(), "constraint failed")
}

// worse returns the first error, unless that is only a refused row: then the next one.
func worse(first, next error) error {
	if first == nil || refusesRow(first) && next != nil {
		return next
	}
	return first
}

// bounded returns a context for a statement, which ends after limit, and endGrace after ctx: a running
// statement may finish when the writer ends.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	statement, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(endGrace, cancel) })
	return statement, func() { stop(); cancel() }
}

// isFile reports whether a database is a local file, so that it can't hang as a server can.
func isFile(db *sql.DB) bool {
	_, file := db.Driver().(*driver.SQLite)
	return file
}
