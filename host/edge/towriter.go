package edge

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync/atomic"
	"time"

	"regedge/replicate/metering/writer"
)

const (
	// dialLimit is how long a request waits for a connection to the writer. It is below the timeout of a report or a
	// meter's message, so that the error says what did not answer.
	dialLimit = 4 * time.Second
	// connectLimit is how long a dial may take in all; beyond dialLimit it goes on for a later request. A first name server that does not
	// answer takes 5 s: with dialLimit alone, the second one would never be asked.
	connectLimit = 8 * time.Second
)

// ToWriter is the transport of what a node sends to the writer.
var ToWriter http.RoundTripper = newToWriter()

func newToWriter() *toWriter { return &toWriter{writer.DialWithin(connectLimit), dialLimit} }

// toWriter gives up a request that has no connection after some time. The dial goes on, for the next request.
type toWriter struct {
	*http.Transport
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t *toWriter) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	var looking atomic.Bool // looking up the host's address
	late := time.AfterFunc(t.limit, func() { cancel(unconnected(r, looking.Load())) })
	defer late.Stop()
	return t.Transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { looking.Store(true) },
		DNSDone:  func(httptrace.DNSDoneInfo) { looking.Store(false) },
		GotConn:  func(httptrace.GotConnInfo) { late.Stop() },
	})))
}

// unconnected says what a request without a connection waits for: the name servers or the writer's machine.
func unconnected(r *http.Request, looking bool) error {
	if looking {
		return &net.DNSError{Err: "i/o timeout", Name: r.URL.Hostname(), IsTimeout: true}
	}
	return fmt.Errorf("connect to %s: %w", r.URL.Host, os.ErrDeadlineExceeded)
}
