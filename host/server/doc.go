// Package server is the HTTP server in front of an Answerer, which answers the lookups. It
// limits what a client can take (time, sizes, requests at once), determines the client's
// address, logs and counts each request, and serves the host's own pages. Everything else
// goes to the Answerer unchanged.
//
// HTTP/1.1 has one transport, with TLS or without (plain.go); HTTP/2 over TLS has another
// (secure.go, http2.go). Everything between them and the Answerer is shared, and the tests run on both.
//
// What a client can take is limited in these files:
//
//	bounded.go    connections, in all and of an address
//	lane.go       TLS handshakes that compute at once
//	share.go      lookups in flight, in all, of an address and of a key
//	pace.go       answers that nobody pays for: beyond them, a connection is not read for a while
//	streams.go    the header of a request over HTTP/2
//
// Promises: every response has X-Request-Id, also that to bytes that are no request. No log line
// and no metric contains a key (its id, yes), a query, a path parameter or a body. A lookup that has
// begun is answered before Run returns, within Config.DrainTimeout, and no other is charged.
package server
