package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// errAway means that the ledger's file, or its write-ahead log, was removed, moved or replaced. SQLite would
// go on writing to the files that it has open, which nobody can find after the writer's end.
var errAway = errors.New("the ledger's file or its log (-wal) was removed, moved or replaced under the running writer: nothing is booked any more")

// location is where the ledger's files lie. It is zero for a server, and for a database outside the file
// system: in memory, or where the driver keeps it.
type location struct {
	path string
	file fs.FileInfo
	log  fs.FileInfo // nil until a connection was opened that keeps it there
}

// findLocation finds the file that a connection has open.
func findLocation(ctx context.Context, db *sql.DB) (l location, err error) {
	if err = db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&l.path); err != nil {
		return l, fmt.Errorf("find the ledger's file: %w", err)
	}
	l.file, err = os.Stat(l.path)
	switch {
	case l.path == "", errors.Is(err, fs.ErrNotExist):
		return location{}, nil
	case err != nil:
		return location{}, fmt.Errorf("find the ledger's file: %w", err)
	}
	return l, nil
}

// noteLog remembers the log that the writer's own connection keeps.
func (l *location) noteLog() {
	if l.path != "" {
		l.log, _ = os.Stat(l.path + "-wal") // there is none for another journal mode
	}
}

// check is errAway, wrapped, unless the files are still there.
func (l *location) check() error {
	if l.path == "" {
		return nil
	}
	return errors.Join(same(l.path, l.file), same(l.path+"-wal", l.log))
}

// same returns errAway, wrapped, if the file at a path is gone or replaced. was is nil if there was no file
// to compare with. A file that can't be examined, as on a network disk for a moment, counts as there: the
// commit itself will tell.
func same(path string, was fs.FileInfo) error {
	if was == nil {
		return nil
	}
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (%w)", errAway, err)
	case err == nil && !os.SameFile(now, was):
		return fmt.Errorf("%w (another file lies at %s)", errAway, path)
	}
	return nil
}

// inPlace returns an error from the moment the ledger's files are away until this writer ends: part of its
// state is in a log that is lost.
func (w *Writer) inPlace(ctx context.Context) error {
	if w.away.Load() {
		return errAway
	}
	err := w.location.check()
	if err == nil {
		return nil
	}
	w.away.Store(true)
	w.config.Logger.Error("put the ledger's file back, and start the writer again", "error", err)
	w.save(ctx)
	return err
}

// save writes committed data into the ledger's file, wherever that is now, through the open connection. It
// is retried while a transaction or a reader holds the log.
func (w *Writer) save(ctx context.Context) {
	if w.conn == nil || w.saved {
		return
	}
	var busy, pages, written int64
	err := w.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &written)
	if w.saved = err == nil && busy == 0; w.saved {
		w.config.Logger.Warn("what was committed is in the ledger's file")
	}
}
