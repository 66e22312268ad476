package schema

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// column is a column of a table.
type column struct{ table, name string }

// layout lists the columns of the tables that migrations make, by making them in memory.
func layout(steps []migration) (list []column, err error) {
	c, err := sqlite3.Open(":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := Prepare(c, false); err != nil {
		return nil, err
	}
	for _, s := range steps {
		if err := c.Exec(s.sql); err != nil {
			return nil, fmt.Errorf("apply migration %s in memory: %w", s.name, err)
		}
	}
	// Without those of the search index, which FTS5 makes as it likes.
	const query = `SELECT t.name, c.name FROM pragma_table_list t JOIN pragma_table_info(t.name) c
		WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT GLOB 'sqlite_*' ORDER BY t.name, c.cid`
	statement, _, err := c.Prepare(query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()
	for statement.Step() {
		list = append(list, column{statement.ColumnText(0), statement.ColumnText(1)})
	}
	return list, statement.Err()
}

// checkLayout refuses a database that was made while a migration had not yet all of its tables and columns: before
// the first release, migrations grow. Without this check, what uses them would fail one by one, later.
func checkLayout(ctx context.Context, db *sql.DB, database Database, steps []migration) error {
	want, err := layout(steps)
	if err != nil {
		return fmt.Errorf("list the tables of the %s database: %w", database, err)
	}
	missing, err := missingOf(ctx, db, want)
	if err != nil {
		return fmt.Errorf("look for the tables of the %s database: %w", database, err)
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the %s database was made by a regedge before the first release, and lacks %s: make it anew%s",
		database, strings.Join(missing, ", "), fromWhat[database])
}

// fromWhat says what fills a database that is made anew.
var fromWhat = map[Database]string{
	Registry: ", by an import",
	Access:   ", empty: the writer fills it from the ledger",
}

// missingOf says in words which tables and columns a database lacks.
func missingOf(ctx context.Context, db *sql.DB, want []column) (missing []string, err error) {
	var pairs [][2]string
	for _, c := range want {
		pairs = append(pairs, [2]string{c.table, c.name})
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return nil, err
	}
	const query = `SELECT value ->> 0, value ->> 1, EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = value ->> 0)
		FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM pragma_table_info(value ->> 0) p WHERE p.name = value ->> 1) ORDER BY key`
	rows, err := db.QueryContext(ctx, query, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	told := map[string]bool{}
	for rows.Next() {
		var c column
		var there bool
		if err := rows.Scan(&c.table, &c.name, &there); err != nil {
			return nil, err
		}
		switch {
		case there:
			missing = append(missing, fmt.Sprintf("column %s of table %s", c.name, c.table))
		case !told[c.table]:
			told[c.table] = true
			missing = append(missing, "table "+c.table)
		}
	}
	return missing, rows.Err()
}
