package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrFenced is returned when another writer took the ledger.
var ErrFenced = errors.New("another writer holds the ledger")

// Bounds of the random step by which a ledger's generation grows at each start, and at the
// start after a restore. It is random so that two ledgers that diverged from one backup do
// not reach the same generation. A session's number has 40 bits for the generation.
const (
	MaxLeap         = 1 << 20
	MaxRestoredLeap = 1 << 30
)

// TakeGeneration makes the caller the ledger's writer: from then on every transaction of an earlier
// writer fails with ErrFenced. leap is a random number, at most MaxLeap. restored says that the ledger
// came back from a backup: then leap is at most MaxRestoredLeap, to skip the generations and epochs
// that were lost and that edges may still show, ids leap likewise, and the edges have to declare their
// leases. by is the process that takes it.
func TakeGeneration(ctx context.Context, db *sql.DB, leap uint64, restored bool, by Holder) (uint64, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("take generation: %w", err)
	}
	defer tx.Rollback()
	var generation uint64
	_, err = tx.ExecContext(ctx, `UPDATE writer SET generation = generation + 1 + ?, restoring = max(restoring, ?)`, int64(leap), restored)
	if err == nil && restored {
		if _, err = tx.ExecContext(ctx, `UPDATE node SET declared = 0`); err == nil {
			//mutant:ids-given-again-after-a-restore
			_, err = tx.ExecContext(ctx, leapIDs)
		}
	}
	if err == nil {
		err = by.note(ctx, tx)
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

// leapIDs skips ids for the next accounts, keys and users: some were given between the backup and its
// restore, and edges still report usage of them. The step is more than anybody makes in between. Its
// second part is random, like the generation, so that the same backup restored twice gives different
// ids.
const leapIDs = `UPDATE sqlite_sequence SET seq = seq + (1 << 20) + (SELECT generation FROM writer) % (1 << 30)`

// Guard returns ErrFenced unless the ledger still has the generation. It takes the write lock, so the
// answer holds until the transaction ends; its commit is a sign of life.
func Guard(ctx context.Context, tx *sql.Tx, generation uint64, now int64) error {
	result, err := tx.ExecContext(ctx, `UPDATE writer SET heard = max(heard + 1, ?) WHERE generation = ?`, now, generation)
	if err != nil {
		return fmt.Errorf("check generation: %w", err)
	}
	//mutant:second-writer-not-fenced
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(ErrFenced, err)
	}
	return nil
}

// Flush writes the changes into a transaction and forgets them. When the transaction fails,
// or its outcome is unknown, the ledger in memory must be thrown away and loaded again.
// prepared belongs to the connection of a ledger in a file; it is nil for a server.
func (l *Ledger) Flush(ctx context.Context, tx *sql.Tx, now int64, prepared *Prepared) error {
	if err := Guard(ctx, tx, l.Generation, now); err != nil {
		return err
	}
	c := l.changes
	l.changes = newChanges()
	if c.Restoring != nil {
		if _, err := tx.ExecContext(ctx, `UPDATE writer SET restoring = ?`, *c.Restoring); err != nil {
			return fmt.Errorf("write restoring: %w", err)
		}
	}
	if c.leapIDs {
		if _, err := tx.ExecContext(ctx, leapIDs); err != nil {
			return fmt.Errorf("leap ids: %w", err)
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
		ON CONFLICT DO UPDATE SET applied = excluded.applied, granted = excluded.granted,
		forked = excluded.forked, ended = excluded.ended`
	writeLeases = `INSERT INTO lease (node, epoch, kind, subject, time_window, granted, spent, returned, beyond, ends_at, lost) VALUES %s
		ON CONFLICT DO UPDATE SET granted = excluded.granted, spent = excluded.spent, returned = excluded.returned,
		beyond = excluded.beyond, ends_at = excluded.ends_at, lost = excluded.lost`
	deleteLeases = `DELETE FROM lease WHERE (node, epoch, kind, subject, time_window) IN (VALUES %s)`
	deletePools  = `DELETE FROM pool WHERE (kind, subject, time_window) IN (VALUES %s)`
	writeUsage   = `INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES %s
		ON CONFLICT DO UPDATE SET count = max(min(count + excluded.count, 1 << 62), -(1 << 62))` // never an overflow
	writeEntries    = `INSERT INTO credit_entry (account, at, kind, amount, note) VALUES %s`
	writeUnresolved = `INSERT INTO unresolved (id, account, key, node, at) VALUES %s ON CONFLICT DO NOTHING`
)
