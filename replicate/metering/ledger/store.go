package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrFenced says that another writer took the ledger.
var ErrFenced = errors.New("another writer holds the ledger")

// Leaps of a ledger's generation, at each start and at one after a backup came back. They
// are random, so that no two ledgers that went different ways from one backup come to the
// same generation; a session's number leaves 40 bits for all of them.
const (
	MaxLeap         = 1 << 20
	MaxRestoredLeap = 1 << 30
)

// TakeGeneration makes the caller the ledger's writer: from then on every transaction of
// an earlier one fails with ErrFenced. leap is a random number, at most MaxLeap, or
// MaxRestoredLeap for a ledger that came back from a backup: the generations and epochs that
// were lost with it are passed over, since edges may still come back with them. Then the
// edges' declarations begin, too.
func TakeGeneration(ctx context.Context, db *sql.DB, leap uint64, restored bool) (uint64, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("take generation: %w", err)
	}
	defer tx.Rollback()
	var generation uint64
	_, err = tx.ExecContext(ctx, `UPDATE writer SET generation = generation + 1 + ?, restoring = max(restoring, ?)`, int64(leap), restored)
	if err == nil && restored {
		_, err = tx.ExecContext(ctx, `UPDATE node SET declared = (epoch = 0)`)
	}
	if err == nil {
		err = tx.QueryRowContext(ctx, `SELECT generation FROM writer`).Scan(&generation)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return 0, fmt.Errorf("take generation: %w", err)
	}
	return generation, nil
}

// Guard fails with ErrFenced unless the generation is still the ledger's. It takes the
// write lock, so that the answer holds until the transaction ends.
func Guard(ctx context.Context, tx *sql.Tx, generation uint64) error {
	result, err := tx.ExecContext(ctx, `UPDATE writer SET generation = generation WHERE generation = ?`, generation)
	if err != nil {
		return fmt.Errorf("check generation: %w", err)
	}
	//mutant:second-writer-not-fenced
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(ErrFenced, err)
	}
	return nil
}

// Flush writes the changes into a transaction and forgets them. When the transaction
// fails, or its outcome is unknown, the ledger in memory is worth nothing: load it again.
// prepared is that of a file's connections, nil for a server's.
func (l *Ledger) Flush(ctx context.Context, tx *sql.Tx, now int64, prepared *Prepared) error {
	if err := Guard(ctx, tx, l.Generation); err != nil {
		return err
	}
	c := l.changes
	l.changes = newChanges()
	if c.Restoring != nil {
		if _, err := tx.ExecContext(ctx, `UPDATE writer SET restoring = ?`, *c.Restoring); err != nil {
			return fmt.Errorf("write restoring: %w", err)
		}
	}
	for _, t := range l.tables(c, now) {
		if err := t.write(ctx, tx, prepared); err != nil {
			return fmt.Errorf("write %s: %w", t.name, err)
		}
	}
	return nil
}

const (
	writePlans = `INSERT INTO plan (id, api_access, per_minute, monthly_volume, email, phone) VALUES %s
		ON CONFLICT DO UPDATE SET api_access = excluded.api_access, per_minute = excluded.per_minute,
		monthly_volume = excluded.monthly_volume, email = excluded.email, phone = excluded.phone`
	writeAccounts = `INSERT INTO account (id, name, email, plan, suspended, created_at, bought, compensated, spent, lost, leased, deducting, posted, posted_hour)
		VALUES %s
		ON CONFLICT DO UPDATE SET plan = excluded.plan, suspended = excluded.suspended, bought = excluded.bought,
		compensated = excluded.compensated, spent = excluded.spent, lost = excluded.lost, leased = excluded.leased,
		deducting = excluded.deducting, posted = excluded.posted, posted_hour = excluded.posted_hour`
	writePools = `INSERT INTO pool (kind, subject, time_window, compensated, spent, lost) VALUES %s
		ON CONFLICT DO UPDATE SET compensated = excluded.compensated, spent = excluded.spent, lost = excluded.lost`
	writeEdges = `WITH r (name, retired, epoch, declared) AS (VALUES %s)
		UPDATE node SET retired = r.retired, epoch = r.epoch, declared = r.declared FROM r WHERE node.name = r.name`
	writeEpochs = `INSERT INTO node_epoch (node, epoch, boot, applied, granted, forked, ended) VALUES %s
		ON CONFLICT DO UPDATE SET boot = excluded.boot, applied = excluded.applied, granted = excluded.granted,
		forked = excluded.forked, ended = excluded.ended`
	writeLeases = `INSERT INTO lease (node, epoch, kind, subject, time_window, granted, spent, returned, beyond, ends_at, lost) VALUES %s
		ON CONFLICT DO UPDATE SET granted = excluded.granted, spent = excluded.spent, returned = excluded.returned,
		beyond = excluded.beyond, ends_at = excluded.ends_at, lost = excluded.lost`
	deleteLeases = `DELETE FROM lease WHERE (node, epoch, kind, subject, time_window) IN (VALUES %s)`
	deletePools  = `DELETE FROM pool WHERE (kind, subject, time_window) IN (VALUES %s)`
	writeUsage   = `INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES %s
		ON CONFLICT DO UPDATE SET count = count + excluded.count`
	writeEntries    = `INSERT INTO credit_entry (account, at, kind, amount, note) VALUES %s`
	writeUnresolved = `INSERT INTO unresolved (id, account, key, node, at) VALUES %s ON CONFLICT DO NOTHING`
)
