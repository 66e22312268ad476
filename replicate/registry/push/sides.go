package push

import (
	"context"
	"database/sql"
	"errors"

	"regedge/replicate/registry/libsql"
)

// file asks a local database.
type file struct{ db *sql.DB }

func (f file) text(ctx context.Context, query string, args ...any) (text string, err error) {
	err = f.db.QueryRowContext(ctx, query, args...).Scan(&text)
	return text, err
}

// nobody is a primary that holds nothing yet.
type nobody struct{}

func (nobody) text(context.Context, string, ...any) (string, error) { return "", nil }

// server asks the primary.
type server struct{ client *libsql.Client }

func (s server) text(ctx context.Context, query string, args ...any) (string, error) {
	result, err := s.client.Query(ctx, query, args...)
	if err != nil {
		return "", err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 1 {
		return "", errors.New("the primary's answer is not one text")
	}
	return result.Text(0, 0), nil
}
