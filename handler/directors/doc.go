// Package directors defines a directors list: the text in which a company's row keeps its
// directors, so that a lookup reads them with the row. Of makes one in SQL from the
// appointments, Next reads it.
//
// The list has the directors that the service returns, in that order, at most Max (see
// docs/contract.md, "Company"). Each is a line of four fields with tabs between them: DIN,
// name, designation and date of appointment, the last two empty if there is none. Lines are
// separated by newlines. A company without directors has NULL. The importer leaves neither
// tabs nor newlines in a value.
package directors
