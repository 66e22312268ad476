// Package server is the HTTP server in front of an Answerer, which answers the lookups. It
// limits what a client can take (time, sizes, requests at once), determines the client's
// address, logs and counts each request, and serves the host's own pages. Everything else
// goes to the Answerer unchanged.
//
// There are two transports: plain HTTP/1.1 (plain.go), which is the fast path, and HTTP/1.1
// and HTTP/2 over TLS (secure.go). Everything between them and the Answerer is shared, and
// the tests run on both.
//
// Promises: every response to a request that could be parsed has X-Request-Id. No log line
// and no metric contains a key, a query, a path parameter or a body. A lookup that has
// begun is answered before Run returns, within Config.DrainTimeout, and no other is charged.
package server
