package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// errAway means that the ledger's file was removed, moved or replaced. SQLite would go on writing to the one
// that it has open, which nobody finds after the writer's end.
var errAway = errors.New("the ledger's file was removed or replaced: nothing is booked until it is back at its place, or the writer was started again")

// place is where the ledger's file lies. It is zero for a server, and for a database that lies in no file system:
// in memory, or where the driver was told to keep it.
type place struct {
	path string
	file fs.FileInfo
}

// findPlace finds the file that a connection has open.
func findPlace(ctx context.Context, db *sql.DB) (p place, err error) {
	if err = db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&p.path); err != nil {
		return p, fmt.Errorf("find the ledger's file: %w", err)
	}
	p.file, err = os.Stat(p.path)
	switch {
	case p.path == "", errors.Is(err, fs.ErrNotExist):
		return place{}, nil
	case err != nil:
		return place{}, fmt.Errorf("find the ledger's file: %w", err)
	}
	return p, nil
}

// check is errAway, wrapped, unless the file is still there.
func (p *place) check() error {
	if p.path == "" {
		return nil
	}
	now, err := os.Stat(p.path)
	switch {
	case err != nil:
		return fmt.Errorf("%w (%w)", errAway, err)
	case !os.SameFile(now, p.file):
		return fmt.Errorf("%w (another file lies at %s)", errAway, p.path)
	}
	return nil
}
