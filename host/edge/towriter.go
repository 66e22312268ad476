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
	// attemptPause is how long an address is waited for before the next one is tried, too (RFC 8305, section 5).
	attemptPause = 250 * time.Millisecond
)

// ToWriter is the transport of what a node sends to the writer.
var ToWriter http.RoundTripper = newToWriter()

func newToWriter() *toWriter {
	transport := writer.DialWithin(connectLimit)
	transport.DialContext = dialAny(&net.Dialer{Timeout: connectLimit, KeepAlive: 30 * time.Second}, attemptPause)
	return &toWriter{transport, dialLimit}
}

// dialAny connects to the address of a name that answers first. Go's dialer gives an address that does not answer at least
// 2 s of its time: behind four of them, it never tries the one that does.
func dialAny(d *net.Dialer, pause time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	type dialled struct {
		conn net.Conn
		err  error
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, d.Timeout)
		defer cancel()
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		left, err := d.Resolver.LookupNetIP(ctx, "ip", host) // a nil Resolver is Go's default
		if err != nil {
			return nil, err
		}
		results, trying := make(chan dialled), 0
		try := func(address string) {
			conn, err := d.DialContext(ctx, network, address)
			select {
			case results <- dialled{conn, err}:
			case <-ctx.Done():
				if conn != nil {
					_ = conn.Close()
				}
			}
		}
		for err == nil || trying > 0 || len(left) > 0 {
			var next <-chan time.Time
			if len(left) > 0 {
				go try(net.JoinHostPort(left[0].Unmap().String(), port))
				left, trying, next = left[1:], trying+1, time.After(pause)
			}
			select {
			case <-next:
			case <-ctx.Done():
				return nil, fmt.Errorf("connect to %s: %w", address, os.ErrDeadlineExceeded)
			case result := <-results:
				if result.err == nil {
					return result.conn, nil
				}
				err, trying = result.err, trying-1
			}
		}
		return nil, err
	}
}

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
