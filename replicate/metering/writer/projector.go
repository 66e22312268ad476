package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3/driver"

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
	// The pause after a failed turn doubles from leastPause to mostPause.
	leastPause = 500 * time.Millisecond
	mostPause  = 8 * time.Second
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
	asked          chan struct{} // there is something to do; capacity 1
	migrated       bool          // owned by Run
	logged         string        // the failure as last logged; owned by Run

	mu      sync.Mutex
	pending []*pendingRow
	compare bool      // compare both databases
	since   time.Time // when compare was set
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
		asked: make(chan struct{}, 1), compare: true, since: time.Now()}
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
	if !p.compare {
		p.compare, p.since = true, time.Now()
	}
	p.mu.Unlock()
	p.ask()
}

func (p *projector) ask() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
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
	if p.compare {
		changes, age = changes+1, max(age, time.Since(p.since))
	}
	return changes, age
}

// run projects until ctx ends.
func (p *projector) run(ctx context.Context) {
	for pause := time.Duration(0); ; {
		err := p.turn(ctx)
		if ctx.Err() != nil {
			return
		}
		p.logOutcome(err)
		var retry <-chan time.Time
		if err == nil {
			pause = 0
		} else {
			pause = min(max(2*pause, leastPause), mostPause)
			retry = time.After(p.jitter(pause))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.asked:
		case <-retry:
		}
	}
}

// logOutcome logs the first failure, another one, and the end of failures.
func (p *projector) logOutcome(err error) {
	switch {
	case err == nil && p.logged != "":
		p.logged = ""
		p.log.Info("the access database is up to date again")
	case err != nil && p.logged != err.Error():
		p.logged = err.Error()
		p.log.Error("the access database can't be brought up to date: revocations, new keys and changed plans wait for it", "error", err)
	}
}

// turn projects what is pending. It returns the last error; what failed stays pending.
func (p *projector) turn(ctx context.Context) error {
	if err := p.migrate(ctx); err != nil {
		return err
	}
	err := p.projectPending(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errors.Join(err, p.compareIfAsked(ctx))
}

func (p *projector) migrate(ctx context.Context) error {
	if p.migrated {
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
// ends the turn.
func (p *projector) projectPending(ctx context.Context) (last error) {
	p.mu.Lock()
	rows := slices.Clone(p.pending)
	p.mu.Unlock()
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
	ctx, cancel := bounded(ctx, rowLimit)
	defer cancel()
	t := projection[changed.table]
	found, err := readRows(ctx, p.ledger, t.ledger+` AND id = ?`, t.columns, changed.id)
	if err == nil {
		if r, ok := found[changed.id]; ok {
			_, err = p.access.ExecContext(ctx, t.put, r.values()[:t.columns]...)
		} else {
			_, err = p.access.ExecContext(ctx, t.drop, changed.id)
		}
	}
	if err != nil {
		return fmt.Errorf("project %s %v: %w", t.name, changed.id, errors.Join(err, ctx.Err()))
	}
	return nil
}

func (p *projector) compareIfAsked(ctx context.Context) error {
	p.mu.Lock()
	wanted := p.compare
	p.compare = false
	p.mu.Unlock()
	if !wanted {
		return nil
	}
	if err := p.compareTables(ctx); err != nil {
		p.mu.Lock()
		p.compare = true
		p.mu.Unlock()
		return fmt.Errorf("bring access database up to date: %w", err)
	}
	return nil
}

// projected is one table of the projection, with the statements that read it on both sides and
// that put and drop a row. The first column is the id.
type projected struct {
	name, ledger, access, put, drop string
	columns                         int
}

// Indexes in projection.
const (
	planTable = iota
	accountTable
	keyTable
)

// projection lists the tables in an order that satisfies foreign keys.
var projection = []projected{
	planTable: {
		name:   "plan",
		ledger: `SELECT id, api_access, per_minute, monthly_volume, email, phone FROM plan WHERE true`,
		access: `SELECT id, api_access, per_minute, monthly_volume, email, phone FROM plan`,
		put: `INSERT INTO plan (id, api_access, per_minute, monthly_volume, email, phone) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET api_access = excluded.api_access, per_minute = excluded.per_minute,
			monthly_volume = excluded.monthly_volume, email = excluded.email, phone = excluded.phone`,
		drop: `DELETE FROM plan WHERE id = ?`, columns: 6,
	},
	accountTable: {
		name:   "account",
		ledger: `SELECT id, plan, suspended FROM account WHERE true`,
		access: `SELECT id, plan, suspended FROM account`,
		put: `INSERT INTO account (id, plan, suspended) VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET plan = excluded.plan, suspended = excluded.suspended`,
		drop: `DELETE FROM account WHERE id = ?`, columns: 3,
	},
	keyTable: {
		name:   "api_key",
		ledger: `SELECT id, account, hex(hash) FROM api_key WHERE revoked_at IS NULL`,
		access: `SELECT id, account, hex(hash) FROM api_key`,
		put: `INSERT INTO api_key (id, account, hash) VALUES (?, ?, unhex(?))
			ON CONFLICT DO UPDATE SET account = excluded.account, hash = excluded.hash`,
		drop: `DELETE FROM api_key WHERE id = ?`, columns: 3,
	},
}

// compareTables makes the access database match the ledger. It writes only the differences: first
// it drops the rows that the ledger does not have (keys, then accounts, then plans), then it puts the
// others. A row that fails does not hold up the others.
func (p *projector) compareTables(ctx context.Context) (failed error) {
	write := func(act, statement string, args ...any) error {
		err := p.exec(ctx, statement, args...)
		if err != nil {
			err = fmt.Errorf("%s %v: %w", act, args[0], err)
			failed = errors.Join(failed, err)
		}
		if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return errors.Join(failed, ctx.Err()) // the server hangs, or the writer ends
		}
		return nil
	}
	puts := make([]map[any]row, len(projection))
	for i := len(projection) - 1; i >= 0; i-- {
		t := projection[i]
		var drops []any
		var err error
		if puts[i], drops, err = p.differences(ctx, t); err != nil {
			return errors.Join(failed, err)
		}
		for _, id := range drops {
			if err := write("drop "+t.name, t.drop, id); err != nil {
				return err
			}
		}
	}
	for i, t := range projection {
		for _, r := range puts[i] {
			if err := write("put "+t.name, t.put, r.values()[:t.columns]...); err != nil {
				return err
			}
		}
	}
	return failed
}

// differences compares a table: the rows that the access database lacks or has otherwise, and the ids
// of those that the ledger does not have.
func (p *projector) differences(ctx context.Context, t projected) (puts map[any]row, drops []any, err error) {
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	ctx, cancel := bounded(ctx, tableLimit)
	defer cancel()
	want, err := readRows(ctx, p.ledger, t.ledger, t.columns)
	if err != nil {
		return nil, nil, err
	}
	have, err := readRows(ctx, p.access, t.access, t.columns)
	if err != nil {
		return nil, nil, errors.Join(err, ctx.Err())
	}
	puts = map[any]row{}
	for id, r := range want {
		if have[id] != r {
			puts[id] = r
		}
	}
	for id := range have {
		if _, ok := want[id]; !ok {
			drops = append(drops, id)
		}
	}
	return puts, drops, nil
}

// exec writes one row to the access database.
func (p *projector) exec(ctx context.Context, statement string, args ...any) error {
	ctx, cancel := bounded(ctx, rowLimit)
	defer cancel()
	_, err := p.access.ExecContext(ctx, statement, args...)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}

// bounded returns a context for a statement, which ends after limit, and endGrace after ctx: what is
// under way when the writer ends is finished.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	statement, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(endGrace, cancel) })
	return statement, func() { stop(); cancel() }
}

// row is a row of the projection. No table has more than six columns.
type row [6]any

func (r row) values() []any { return r[:] }

func readRows(ctx context.Context, db *sql.DB, query string, columns int, args ...any) (map[any]row, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[any]row{}
	for rows.Next() {
		var r row
		into := make([]any, columns)
		for i := range into {
			into[i] = &r[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		found[r[0]] = r
	}
	return found, rows.Err()
}

// isFile reports whether a database is a local file, so that it can't hang as a server can.
func isFile(db *sql.DB) bool {
	_, file := db.Driver().(*driver.SQLite)
	return file
}
