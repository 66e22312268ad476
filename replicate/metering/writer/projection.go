package writer

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// projected is one table of the projection. The first column is the id.
type projected struct {
	name    string
	columns int
	ledger  string // reads the table of the ledger; a condition can be appended
	access  string // reads the table of the access database; a condition can be appended
	// insert, with tuple once for each row and upsert, puts rows.
	insert, tuple, upsert string
	before                any // less than every id
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
		name: "plan", columns: 6, before: "",
		ledger: `SELECT id, api_access, per_minute, monthly_volume, email, phone FROM plan WHERE true`,
		access: `SELECT id, api_access, per_minute, monthly_volume, email, phone FROM plan WHERE true`,
		insert: `INSERT INTO plan (id, api_access, per_minute, monthly_volume, email, phone) VALUES `,
		tuple:  `(?, ?, ?, ?, ?, ?)`,
		upsert: ` ON CONFLICT DO UPDATE SET api_access = excluded.api_access, per_minute = excluded.per_minute,
			monthly_volume = excluded.monthly_volume, email = excluded.email, phone = excluded.phone`,
	},
	accountTable: {
		name: "account", columns: 3, before: int64(0),
		ledger: `SELECT id, plan, suspended FROM account WHERE true`,
		access: `SELECT id, plan, suspended FROM account WHERE true`,
		insert: `INSERT INTO account (id, plan, suspended) VALUES `,
		tuple:  `(?, ?, ?)`,
		upsert: ` ON CONFLICT DO UPDATE SET plan = excluded.plan, suspended = excluded.suspended`,
	},
	keyTable: {
		name: "api_key", columns: 9, before: int64(0),
		// An old secret does not outlast its key.
		ledger: `SELECT id, account, hex(hash), coalesce(expires_at, 0), hex(old_hash),
			coalesce(min(old_ends_at, coalesce(expires_at, old_ends_at)), 0), hex(allowed), per_minute, limited_until
			FROM api_key WHERE revoked_at IS NULL`,
		access: `SELECT id, account, hex(hash), ends_at, hex(old_hash), old_ends_at, hex(allowed), per_minute, limited_until FROM api_key WHERE true`,
		insert: `INSERT INTO api_key (id, account, hash, ends_at, old_hash, old_ends_at, allowed, per_minute, limited_until) VALUES `,
		tuple:  `(?, ?, unhex(?), ?, nullif(unhex(?), x''), ?, unhex(?), ?, ?)`,
		upsert: ` ON CONFLICT DO UPDATE SET account = excluded.account, hash = excluded.hash, ends_at = excluded.ends_at,
			old_hash = excluded.old_hash, old_ends_at = excluded.old_ends_at, allowed = excluded.allowed,
			per_minute = excluded.per_minute, limited_until = excluded.limited_until`,
	},
}

const (
	// comparedRows is how many rows of a table are compared at a time. Changes that came meanwhile are
	// projected before the next ones are read.
	comparedRows = 5000
	// writtenRows is how many rows one statement writes.
	writtenRows = 1000
)

// compareTables makes the access database match the ledger. It writes only the differences: first
// it drops the rows that the ledger does not have (keys, then accounts, then plans), then it puts the
// others. A row that fails does not hold up the others.
func (p *projector) compareTables(ctx context.Context) (failed error) {
	if err := p.refuseEmpty(ctx); err != nil {
		return err
	}
	for _, t := range slices.Backward(projection) {
		err := p.eachDifference(ctx, t, func(_ []row, drops []any) error {
			return inBatches(drops, writtenRows, func(ids []any) error { return p.drop(ctx, t, ids) })
		})
		if hangs(err) {
			return err
		}
		failed = worse(failed, err)
	}
	for _, t := range projection {
		err := p.eachDifference(ctx, t, func(puts []row, _ []any) error {
			return inBatches(puts, writtenRows, func(rows []row) error { return p.put(ctx, t, rows) })
		})
		if hangs(err) {
			return err
		}
		failed = worse(failed, err)
	}
	return failed
}

// errEmptyLedger says that this ledger can hardly be the one of which the access database is a projection.
var errEmptyLedger = errors.New("the ledger has no account, and the access database has some, which keep their keys until an account is made: " +
	"is --database the ledger's file, and is its disk mounted?")

// refuseEmpty returns errEmptyLedger if a comparison would remove every account from the access database, as after a
// start on a new ledger because the disk of the old one was not mounted: every key would get 401.
func (p *projector) refuseEmpty(ctx context.Context) error {
	ctx, cancel := bounded(ctx, tableLimit)
	defer cancel()
	t := projection[accountTable]
	const first = ` LIMIT 1`
	want, err := readRows(ctx, p.ledger, t.ledger+first, t.columns)
	if err != nil || len(want) > 0 {
		return err
	}
	have, err := readRows(ctx, p.access, t.access+first, t.columns)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	if len(have) > 0 {
		return errEmptyLedger
	}
	return nil
}

// eachDifference compares a table in the order of the ids, some rows at a time, and calls write with the differences:
// rows that the access database lacks or that differ there, and the ids of rows that the ledger lacks. After an error
// it goes on, except after a deadline. It returns the first error of write that is more than a refused row, else the
// first one.
func (p *projector) eachDifference(ctx context.Context, t projected, write func(puts []row, drops []any) error) (failed error) {
	for after := t.before; after != nil; {
		want, have, err := p.readSome(ctx, t, after)
		if err != nil {
			return err
		}
		after = wholeUpTo(want, have)
		if err = write(differences(upTo(want, after), upTo(have, after))); hangs(err) {
			return err
		}
		failed = worse(failed, err)
		if err = p.projectPending(ctx); hangs(err) {
			return err
		}
	}
	return failed
}

// readSome reads the next rows of a table on both sides.
func (p *projector) readSome(ctx context.Context, t projected, after any) (want, have []row, err error) {
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	ctx, cancel := bounded(ctx, tableLimit)
	defer cancel()
	const some = ` AND id > ? ORDER BY id LIMIT ?`
	if want, err = readRows(ctx, p.ledger, t.ledger+some, t.columns, after, comparedRows); err != nil {
		return nil, nil, err
	}
	if have, err = readRows(ctx, p.access, t.access+some, t.columns, after, comparedRows); err != nil {
		return nil, nil, errors.Join(err, ctx.Err())
	}
	return want, have, nil
}

// wholeUpTo returns the last id up to which both pages hold all rows, nil when they hold the rest of
// the table.
func wholeUpTo(want, have []row) (last any) {
	for _, page := range [][]row{want, have} {
		if len(page) < comparedRows {
			continue
		}
		if id := page[len(page)-1][0]; last == nil || compareIDs(id, last) < 0 {
			last = id
		}
	}
	return last
}

// upTo cuts rows after an id.
func upTo(rows []row, last any) []row {
	if last == nil {
		return rows
	}
	n, found := slices.BinarySearchFunc(rows, last, func(r row, id any) int { return compareIDs(r[0], id) })
	if found {
		n++
	}
	return rows[:n]
}

func compareIDs(a, b any) int {
	if text, ok := a.(string); ok {
		return strings.Compare(text, b.(string))
	}
	return cmp.Compare(a.(int64), b.(int64))
}

// differences compares rows that are in the order of their ids.
func differences(want, have []row) (puts []row, drops []any) {
	for len(want) > 0 || len(have) > 0 {
		order := 0
		switch {
		case len(have) == 0:
			order = -1
		case len(want) == 0:
			order = 1
		default:
			order = compareIDs(want[0][0], have[0][0])
		}
		switch {
		case order > 0:
			drops = append(drops, have[0][0])
		case order < 0 || want[0] != have[0]:
			puts = append(puts, want[0])
		}
		if order <= 0 {
			want = want[1:]
		}
		if order >= 0 {
			have = have[1:]
		}
	}
	return puts, drops
}

// inBatches calls write with some items at a time. When a batch fails, its items are written one by one, so that a
// refused one does not block the rest; after a deadline nothing more is written. It returns the deadline's error, else
// the first one that is more than a refused row, else the first one.
func inBatches[T any](items []T, size int, write func([]T) error) (failed error) {
	for batch := range slices.Chunk(items, size) {
		err := write(batch)
		if err != nil && size > 1 && !hangs(err) {
			err = inBatches(batch, 1, write)
		}
		if hangs(err) {
			return err
		}
		failed = worse(failed, err)
	}
	return failed
}

// hangs reports whether an error is a deadline's: the server hangs, or the writer ends.
func hangs(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// put writes rows to the access database.
func (p *projector) put(ctx context.Context, t projected, rows []row) error {
	values := make([]any, 0, len(rows)*t.columns)
	for _, r := range rows {
		values = append(values, r[:t.columns]...)
	}
	tuples := strings.Repeat(t.tuple+", ", len(rows)-1) + t.tuple
	return p.exec(ctx, "put", t, t.insert+tuples+t.upsert, values)
}

// drop deletes rows of the access database.
func (p *projector) drop(ctx context.Context, t projected, ids []any) error {
	places := strings.Repeat("?, ", len(ids)-1) + "?"
	return p.exec(ctx, "drop", t, "DELETE FROM "+t.name+" WHERE id IN ("+places+")", ids)
}

func (p *projector) exec(ctx context.Context, act string, t projected, statement string, values []any) error {
	ctx, cancel := bounded(ctx, rowLimit)
	defer cancel()
	if _, err := p.access.ExecContext(ctx, statement, values...); err != nil {
		p.gaveUp = p.gaveUp || !refusesRow(err)
		return fmt.Errorf("%s %s %v: %w", act, t.name, values[0], errors.Join(err, ctx.Err()))
	}
	return nil
}

// row is a row of the projection. No table has more than nine columns.
type row [9]any

func readRows(ctx context.Context, db *sql.DB, query string, columns int, args ...any) ([]row, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []row
	for rows.Next() {
		var r row
		into := make([]any, columns)
		for i := range into {
			into[i] = &r[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}
