package schema

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"regedge/handler/ident"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/ext/fts5"
)

// busyTimeout is how long a statement waits for another writer, in milliseconds.
const busyTimeout = 10_000

// OpenFile opens the SQLite database in the file at path for use through database/sql, and makes it if it
// is missing. Every connection has FTS5, the function cin_number (ident.CINNumber), foreign keys, WAL mode
// and a busy timeout of 10 s. Transactions take the write lock when they begin.
func OpenFile(path string) (*sql.DB, error) {
	// Create the file here only: otherwise a later connection would create an empty one after a move.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err == nil {
		err = file.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return open(path, false)
}

// OpenReadOnly opens a database as OpenFile does, but the file must exist, and is neither written nor
// checkpointed.
func OpenReadOnly(path string) (*sql.DB, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() { // SQLite reports only an I/O error
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return open(path, true)
}

// ErrNoDatabase says that a file is something else than a database, such as an official file. It is SQLite's NOTADB too.
var ErrNoDatabase error = noDatabase{}

type noDatabase struct{}

func (noDatabase) Error() string { return "this file is no database" }
func (noDatabase) Unwrap() error { return sqlite3.NOTADB }

// open opens a file that is there.
func open(path string, readonly bool) (*sql.DB, error) {
	name, err := FileURI(path, readonly)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	db, err := driver.Open(strings.Replace(name, "?mode=rwc", "?mode=rw", 1), func(c *sqlite3.Conn) error {
		if err := Prepare(c, readonly); err != nil {
			return err
		}
		return leaveToOwner(c, path)
	})
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	if err := db.Ping(); err != nil {
		db.Close()
		if errors.Is(err, sqlite3.NOTADB) {
			err = ErrNoDatabase
		}
		if short := CutShort(path); short != nil && errors.Is(err, sqlite3.CORRUPT) {
			err = fmt.Errorf("%w: %w; put a whole copy in its place", err, short)
		}
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return db, nil
}

// FileURI returns the URI of the file at path for SQLite, for use with sqlite3.Open and
// Prepare.
func FileURI(path string, readonly bool) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	escaped := (&url.URL{Path: filepath.ToSlash(absolute)}).EscapedPath()
	if readonly {
		return "file:" + escaped + "?mode=ro", nil
	}
	// The WAL gets the permissions of the file, as in SQLite's own VFS.
	like := strings.ReplaceAll(url.QueryEscape(absolute), "+", "%20")
	return "file:" + escaped + "?mode=rwc&_txlock=immediate&modeof=" + like, nil
}

// Prepare configures one connection as OpenFile does.
func Prepare(c *sqlite3.Conn, readonly bool) error {
	if err := c.Exec(fmt.Sprintf("PRAGMA busy_timeout=%d", busyTimeout)); err != nil {
		return err
	}
	if err := fts5.Register(c); err != nil {
		return err // it reads the file, as the first: the error is the file's
	}
	if err := c.CreateFunction("cin_number", 1, sqlite3.DETERMINISTIC, cinNumber); err != nil {
		return fmt.Errorf("register cin_number: %w", err)
	}
	if readonly {
		return c.Exec("PRAGMA foreign_keys=on; PRAGMA query_only=on")
	}
	return c.Exec("PRAGMA journal_mode=wal; PRAGMA foreign_keys=on")
}

// cinNumber is ident.CINNumber for SQL.
func cinNumber(ctx sqlite3.Context, args ...sqlite3.Value) {
	ctx.ResultInt64(ident.CINNumber(string(args[0].RawText())))
}

// FreeRow returns an SQL expression for a new rowid of table: the value of the SQL expression row, or,
// if that is taken, NULL, for which SQLite picks one.
func FreeRow(table, row string) string {
	return fmt.Sprintf("(SELECT iif(EXISTS (SELECT 1 FROM %s WHERE rowid = wanted), NULL, wanted) FROM (SELECT %s AS wanted))", table, row)
}
