// Package libsql opens the databases of libSQL servers (sqld) through database/sql, and commits
// transactions there with one call. No other package names the driver, libsql-client-go: to use
// another one, change Open.
//
// A transaction whose answer was lost may have been committed or not. The caller finds out by
// reading.
package libsql
