package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"regedge/replicate/metering/writer"
)

// reading reads a page of a list.
type reading[T any] = func(context.Context, writer.ListQuery) (writer.Page[T], error)

// listing are the flags of the commands whose list may be long.
type listing struct {
	operator
	Search string `env:"-" placeholder:"TEXT" help:"Only what contains this text."`
	Limit  int    `env:"-" default:"100" help:"At most so many (${default})."`
	All    bool   `env:"-" help:"All of them."`
	Cursor string `env:"-" placeholder:"CURSOR" help:"Go on behind this place, which the list before named."`
}

// Validate refuses a limit that lists nothing.
func (l *listing) Validate() error {
	if l.Limit < 1 {
		return errors.New("--limit is at least 1")
	}
	return nil
}

// checkKnown returns an error if the account or key does not exist. The list of what it did would be empty
// either way. 0 means that none is given.
func checkKnown(ctx context.Context, w *writer.Client, account, key int64) error {
	if account != 0 {
		if _, err := w.Account(ctx, account); err != nil {
			return err
		}
	}
	if key != 0 {
		if _, err := w.Key(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// list prints rows of a list, and on standard error how to go on when there are more.
func list[T any](ctx context.Context, m *Main, l *listing, read func(*writer.Client) reading[T],
	text func(*tabwriter.Writer, []T)) error {
	limit := l.Limit
	if l.All {
		limit = 0
	}
	next := ""
	err := show(m, &l.operator, func(w *writer.Client) (rows []T, err error) {
		rows, next, err = writer.AllOf(ctx, writer.ListQuery{Search: l.Search, Cursor: l.Cursor}, limit, read(w))
		return rows, err
	}, text)
	if err == nil && next != "" {
		fmt.Fprintf(m.Stderr, "regedge: there are more: --cursor %s goes on, --all lists all, --search TEXT finds some\n", shown(next))
	}
	return err
}
