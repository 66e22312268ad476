// Package libsql speaks to a libSQL server over HTTP (POST /v2/pipeline): one call asks
// one question or commits one transaction, and nothing is kept open between calls, so
// that a server may be restarted at any time. database/sql and libsql-client-go remain
// the way for whoever needs a transaction of several round trips.
//
// A transaction whose answer was lost is unknown: the caller finds out by reading.
package libsql
