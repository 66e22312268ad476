package libsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Errors of a server, as Commit and Explain return them.
var (
	// ErrUnauthorized means that the server refuses the token, or a write with a read-only token, or
	// any call that a replica forwards to its primary.
	ErrUnauthorized = errors.New("the libSQL server refuses the token")
	// ErrForwarded is an ErrUnauthorized that is not about the token: a replica forwards calls that it
	// can't answer itself, and its primary accepts only replication. Every read gets it until the
	// replica has a copy, afterwards only writes do.
	ErrForwarded = fmt.Errorf("the replica has no copy yet, or was sent more than a read (%w)", ErrUnauthorized)
	// ErrRefused means that the database refuses a statement: a retry fails too. After every other
	// error a retry may succeed.
	ErrRefused = errors.New("the database refuses a statement")
)

// Open opens the database of the server at address, an http:, https: or libsql: URL (libsql: means
// https:), with a token, or an empty one for a server that asks for none. It does not connect.
func Open(address, token string) (*sql.DB, error) {
	connector, err := newConnector(address, token)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Statement is one statement of a transaction, with its parameters ?1, ?2 and so on, each of
// which it must name.
type Statement struct {
	SQL  string
	Args []any
}

// Commit runs statements as one transaction, in one call: all of them, or none after ErrRefused
// and ErrUnauthorized. After any other error the transaction may have been committed.
//
// The driver sends a text of several statements as one batch, in which each runs only if the one
// before it succeeded, and which ends with a rollback unless the last did. It numbers the
// parameters of each statement from ?1.
func Commit(ctx context.Context, db *sql.DB, statements []Statement) error {
	text := []string{"BEGIN IMMEDIATE"}
	var args []any
	for _, s := range statements {
		text, args = append(text, s.SQL), append(args, s.Args...)
	}
	_, err := db.ExecContext(ctx, strings.Join(append(text, "COMMIT"), ";\n"), args...)
	return Explain(err)
}

// OnlyReplication is the answer of the gate before a primary to every other call.
const OnlyReplication = "this port is for replication only"

// OfDisk reports whether an error says that the server's disk is full or fails.
func OfDisk(err error) bool {
	text := err.Error()
	return strings.Contains(text, "SQLite error: disk I/O error") || strings.Contains(text, "SQLite error: database or disk is full")
}

// Explain adds ErrUnauthorized, ErrForwarded or ErrRefused to an error of the driver. The driver has
// no types for these, so Explain looks for the messages of sqld 0.24 and of the gate.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	contains := func(any ...string) bool {
		for _, part := range any {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case contains(OnlyReplication):
		return fmt.Errorf("%w: %w", ErrForwarded, err)
	case contains("error code 401", "error code 403", "Authorization forbidden", "status: PermissionDenied"):
		return fmt.Errorf("%w: %w", ErrUnauthorized, err)
	case contains("SQLite error: ", "SQL input error: ", "could not be parsed", "do not match SQL parameters", "more than one statement") && !contains("database is locked"):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}
