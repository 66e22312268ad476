// Package handler answers the requests of the registry lookup service: routing of
// /v1, authentication, validation, the SQL of each lookup, the envelope and the
// errors of the specification. It is plain Go that TinyGo compiles too, and it
// reaches the world only through the interfaces in this file.
package handler

import "regedge/handler/charge"

// Request is one HTTP request as the handler needs to see it.
type Request struct {
	// Method is the request method as sent, such as "GET".
	Method string
	// Target is the path and query as sent on the request line, undecoded.
	Target string
	// Authorization holds the values of the Authorization header, in order.
	Authorization []string
	// ClientAddr returns the address of the client, without a port, as the host vouches
	// for it; empty when unknown. It counts the sandbox key's requests, and is not
	// called for others.
	ClientAddr func() string
}

// Header is one response header field.
type Header struct{ Name, Value string }

// Response is a complete answer. Body is never changed after it is returned.
type Response struct {
	Status  int
	Headers []Header
	Body    []byte
}

// Kind tells which field of a Value is set.
type Kind uint8

// The storage classes of SQLite that the service's schemas use.
const (
	Null Kind = iota
	Integer
	Text
	Blob
)

// Value is one SQL parameter or one column of a row.
type Value struct {
	Kind Kind
	Int  int64  // set for Integer
	Text string // set for Text and, as raw bytes, for Blob
}

// Result is what one statement returned: rows of Columns values each, end to end.
type Result struct {
	Columns int
	Values  []Value
}

// Rows is the number of rows.
func (r *Result) Rows() int {
	if r.Columns == 0 {
		return 0
	}
	return len(r.Values) / r.Columns
}

// Row returns the values of row i, 0 <= i < Rows().
func (r *Result) Row(i int) []Value {
	return r.Values[i*r.Columns : (i+1)*r.Columns]
}

// Store answers one read-only SQL statement with numbered parameters (?1, ?2, …).
// An error means that the database could not be asked; its text is for the log.
type Store interface {
	Query(statement string, args []Value) (*Result, error)
}

// Meter decides whether an authenticated request may be answered, and charges it.
//
// Charge is idempotent by the request's ID: asking again returns the same verdict
// and charges once. An error means that the verdict is unknown: the charge may or
// may not stand. Void takes the charge of a request id back, if there is one; after
// a nil error no charge of that id stands or ever will.
type Meter interface {
	Charge(charge.Request) (charge.Verdict, error)
	Void(requestID string) error
}

// Clock tells the time as Unix milliseconds, UTC.
type Clock interface{ UnixMilli() int64 }

// Random fills p with cryptographically secure random bytes.
type Random interface{ Read(p []byte) }
