package schema

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler/ident"
)

// cinNumber is ident.CINNumber for SQL.
func cinNumber(ctx sqlite3.Context, args ...sqlite3.Value) {
	ctx.ResultInt64(ident.CINNumber(string(args[0].RawText())))
}

// FreeRow is an SQL expression for the row that the SQL expression row gives, or NULL, for any
// row, where that is taken in the table.
func FreeRow(table, row string) string {
	return fmt.Sprintf("(SELECT iif(EXISTS (SELECT 1 FROM %s WHERE rowid = wanted), NULL, wanted) FROM (SELECT %s AS wanted))", table, row)
}
