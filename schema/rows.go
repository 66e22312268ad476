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

// CompanyRow is an SQL expression for the row of a company and of its board: the one in which
// the company is held, or else number. cin and number are SQL expressions, of which number
// says what ident.CINNumber makes of cin.
func CompanyRow(cin, number string) string {
	return fmt.Sprintf("coalesce((SELECT rowid FROM company WHERE cin = %s), %s)", cin, number)
}

// FreeRow is an SQL expression for the row that the SQL expression row gives, or NULL, for any
// row, where that is taken in the table.
func FreeRow(table, row string) string {
	return fmt.Sprintf("(SELECT iif(EXISTS (SELECT 1 FROM %s WHERE rowid = wanted), NULL, wanted) FROM (SELECT %s AS wanted))", table, row)
}
