package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// chunk is how many rows one statement writes at most: enough to spread the cost of a round
// trip and of compiling, and far below SQLite's limit of 32,766 parameters. It is a power of
// two.
const chunk = 128

// table collects the rows to be written to one table: args holds the columns of all rows in sequence. The
// statement has %s in place of the rows.
type table struct {
	name, statement string
	columns         int
	args            []any
}

// put adds a row.
func (t *table) put(row ...any) { t.args = append(t.args, row...) }

// of returns the statement for a number of rows.
func (t *table) of(rows int) string {
	row := "(" + strings.Repeat("?,", t.columns)[:2*t.columns-1] + "),"
	all := strings.Repeat(row, rows)
	return strings.Replace(t.statement, "%s", all[:len(all)-1], 1)
}

// write runs the statement on the rows, some at a time. A server gets as few statements as
// possible, since each is a round trip. A file gets numbers of rows that are powers of two,
// so that few statements are prepared and each is used again.
func (t *table) write(ctx context.Context, tx *sql.Tx, prepared *Prepared) error {
	for left := len(t.args) / max(t.columns, 1); left > 0; {
		rows := min(left, chunk)
		if prepared != nil {
			for rows = chunk; rows > left; {
				rows /= 2
			}
		}
		if err := t.run(ctx, tx, prepared, rows, t.args[:rows*t.columns]); err != nil {
			return err
		}
		t.args, left = t.args[rows*t.columns:], left-rows
	}
	return nil
}

func (t *table) run(ctx context.Context, tx *sql.Tx, prepared *Prepared, rows int, args []any) error {
	if prepared == nil {
		_, err := tx.ExecContext(ctx, t.of(rows), args...)
		return err
	}
	statement, err := prepared.statement(ctx, t, rows)
	if err == nil {
		_, err = statement.ExecContext(ctx, args...)
	}
	return err
}

// Prepared caches the prepared statements of Flush across transactions. It is not safe for
// concurrent use.
type Prepared struct {
	conn       *sql.Conn
	statements map[preparedName]*sql.Stmt
}

// preparedName is the key of a statement: its table and its number of rows.
type preparedName struct {
	table string
	rows  int
}

// Prepare makes an empty cache of statements for one connection to a file.
func Prepare(conn *sql.Conn) *Prepared {
	return &Prepared{conn, map[preparedName]*sql.Stmt{}}
}

// statement returns the statement for a number of rows. It runs on the connection, and so
// in the transaction that is open there.
func (p *Prepared) statement(ctx context.Context, t *table, rows int) (*sql.Stmt, error) {
	name := preparedName{t.name, rows}
	if found := p.statements[name]; found != nil {
		return found, nil
	}
	made, err := p.conn.PrepareContext(ctx, t.of(rows))
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	p.statements[name] = made
	return made, nil
}

// Close closes the statements, not the connection. The cache is not used again.
func (p *Prepared) Close() error {
	var err error
	for _, s := range p.statements {
		err = errors.Join(err, s.Close())
	}
	return err
}
