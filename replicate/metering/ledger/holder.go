package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// Holder is the process that holds the ledger.
type Holder struct {
	Host string
	PID  int64 // 0 for none: it has ended in order
	// Since is its start and Heard its last sign of life, in Unix milliseconds of its own clock.
	Since, Heard int64
	Generation   uint64
}

// ReadHolder reads who holds the ledger.
func ReadHolder(ctx context.Context, db Queryer) (h Holder, err error) {
	row := db.QueryRowContext(ctx, `SELECT host, pid, since, heard, generation FROM writer`)
	if err = row.Scan(&h.Host, &h.PID, &h.Since, &h.Heard, &h.Generation); err != nil {
		return h, fmt.Errorf("read who holds the ledger: %w", err)
	}
	return h, nil
}

// note makes a process the one that holds the ledger.
func (h Holder) note(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE writer SET host = ?, pid = ?, since = ?, heard = max(heard + 1, ?)`, h.Host, h.PID, h.Since, h.Heard)
	return err
}

// NoteEnd says that the writer of a generation ends, so that the next one need not wait for it.
func NoteEnd(ctx context.Context, db *sql.DB, generation uint64) error {
	_, err := db.ExecContext(ctx, `UPDATE writer SET pid = 0 WHERE generation = ?`, generation)
	return err
}
