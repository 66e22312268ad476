package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"regedge/handler"
)

// Remote runs the same statements as a Store on a libSQL server, for an edge without the
// database file. Each statement is a call over the network. What statements may do depends on
// the server's token, which should be a read-only one.
type Remote struct {
	db     *sql.DB
	config Config
}

// NewRemote uses db and closes it in Close. Only the limits of config apply.
func NewRemote(db *sql.DB, config Config) *Remote {
	return &Remote{db, config.withDefaults()}
}

// Query runs one statement, as Store.Query does.
func (r *Remote) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	limited, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	dst.Columns, dst.Values = 0, dst.Values[:0]
	err := r.query(limited, statement, args, dst)
	if err == nil {
		return nil
	}
	dst.Columns, dst.Values = 0, dst.Values[:0]
	if limited.Err() != nil && ctx.Err() == nil {
		return ErrTimeout // whatever error the driver made of it
	}
	return err
}

func (r *Remote) query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	parameters := make([]any, len(args))
	for i, arg := range args {
		parameters[i] = toDriver(arg)
	}
	rows, err := r.db.QueryContext(ctx, statement, parameters...)
	if err != nil {
		return fmt.Errorf("run statement: %w", err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("run statement: %w", err)
	}
	dst.Columns = len(names)
	for n, bytes := 0, 0; rows.Next(); n++ {
		if n == r.config.MaxRows {
			return ErrTooLarge
		}
		size, err := appendRow(rows, dst)
		if err != nil {
			return err
		}
		if bytes += size; bytes > r.config.MaxBytes {
			return ErrTooLarge
		}
	}
	return rows.Err()
}

// appendRow adds the current row to dst and returns the size of its texts and blobs.
func appendRow(rows *sql.Rows, dst *handler.Result) (size int, err error) {
	cells := make([]any, dst.Columns)
	into := make([]any, dst.Columns)
	for i := range cells {
		into[i] = &cells[i]
	}
	if err := rows.Scan(into...); err != nil {
		return 0, fmt.Errorf("read row: %w", err)
	}
	for i, cell := range cells {
		value, err := fromDriver(cell)
		if err != nil {
			return 0, fmt.Errorf("column %d: %w", i, err)
		}
		size += len(value.Text)
		dst.Values = append(dst.Values, value)
	}
	return size, nil
}

func toDriver(v handler.Value) any {
	switch v.Kind {
	case handler.Integer:
		return v.Int
	case handler.Text:
		return v.Text
	case handler.Blob:
		return []byte(v.Text)
	}
	return nil
}

func fromDriver(cell any) (handler.Value, error) {
	switch v := cell.(type) {
	case nil:
		return handler.Value{}, nil
	case int64:
		return handler.Value{Kind: handler.Integer, Int: v}, nil
	case string:
		return handler.Value{Kind: handler.Text, Text: v}, nil
	case []byte:
		return handler.Value{Kind: handler.Blob, Text: string(v)}, nil
	}
	return handler.Value{}, fmt.Errorf("the type %T is not supported", cell)
}

// Refresh does nothing: the server reopens its own file.
func (r *Remote) Refresh() error { return nil }

// Close closes the connections.
func (r *Remote) Close() error { return r.db.Close() }
