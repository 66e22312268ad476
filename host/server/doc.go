// Package server is the HTTP server around whatever answers the lookups: it bounds what
// a client can take (time, sizes, requests at once), vouches for the client's address,
// logs and counts each request, and serves the host's own pages. Everything else goes
// to the Answerer as it came.
//
// A transport reads requests and writes answers: plain HTTP/1.1 (plain.go), where every
// microsecond counts, or HTTP/1.1 and HTTP/2 over TLS (secure.go). All that lies between is the
// same for both, and the tests run on both.
//
// Promises: every response to a request that was parsed carries X-Request-Id. No log
// line and no metric holds a key, a query, a path parameter or a body. A request that
// has begun is finished before Run returns, within Config.DrainTimeout.
package server
