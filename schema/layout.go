package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// column is a column of a table.
type column struct{ table, name string }

// layouts caches layout's results by the text of the migrations: one takes some 5 ms to make.
var layouts sync.Map

// layout lists the columns of the tables that migrations make.
func layout(steps []migration) ([]column, error) {
	var text strings.Builder
	for _, s := range steps {
		text.WriteString(s.sql)
	}
	if list, ok := layouts.Load(text.String()); ok {
		return list.([]column), nil
	}
	list, err := makeLayout(steps)
	if err == nil {
		layouts.Store(text.String(), list)
	}
	return list, err
}

// makeLayout makes the tables in memory.
func makeLayout(steps []migration) (list []column, err error) {
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
	// Without the tables of the search index, which FTS5 creates on its own terms.
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

// checkLayout refuses a database made when a migration lacked some of its present tables and columns: before
// the first release, migrations grow. Without this check, statements would fail one by one, later.
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

// fromWhat says how a new database gets its content.
var fromWhat = map[Database]string{
	Registry: ", by an import",
	Access:   ", empty: the writer fills it from the ledger",
}

// missingOf describes the tables and columns that a database lacks.
func missingOf(ctx context.Context, db *sql.DB, want []column) (missing []string, err error) {
	const query = `SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL %'`
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	tables, columns := map[string]bool{}, map[column]bool{}
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.table, &c.name); err != nil {
			return nil, err
		}
		tables[c.table], columns[c] = true, true
	}
	for _, c := range want {
		lack := "table " + c.table
		if tables[c.table] {
			lack = fmt.Sprintf("column %s of %s", c.name, lack)
		}
		if !columns[c] && !slices.Contains(missing, lack) {
			missing = append(missing, lack)
		}
	}
	return missing, rows.Err()
}
