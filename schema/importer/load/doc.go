// Package load writes merged records to a registry database.
//
// It owns the SQL of an import: it finds the rows of a table, inserts and updates them, derives
// the districts and directors lists of companies, brings the search index up to date, and writes
// the release: in one transaction, or, where there is no registry, in a draft that is renamed at
// the end. Unchanged rows are not written. Tables that are empty at the start are filled without lookups;
// the index of appointments by director is then created once, at the end. The search index of an empty
// registry is built in a goroutine of its own while the tables are written.
package load
