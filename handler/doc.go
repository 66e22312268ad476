// Package handler answers the requests of the registry lookup service: routing of /v1,
// authentication, validation, the SQL of each lookup, the envelope and the errors of
// docs/contract.md. It is plain Go that TinyGo compiles too, and it does I/O only through the
// interfaces in handler.go.
//
// Read handler.go first, whose Serve shows the order of the steps, then lookup.go and one of
// company.go, director.go, llp.go and search.go.
package handler
