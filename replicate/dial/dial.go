// Package dial connects to the servers of a cluster: to the address of a name that answers first.
package dial

import (
	"context"
	"net"
	"os"
	"time"
)

// pause is how long an address is waited for before the next one is tried, too (RFC 8305, section 5).
const pause = 250 * time.Millisecond

// Any returns a DialContext that connects, within the dialer's timeout, to the address of a name that answers first. Go's
// dialer gives an address that does not answer at least 2 s of its time: behind four of them, it never tries the one that
// does. The dialer must have a timeout, and its Resolver may be nil.
func Any(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return anyAfter(d, pause)
}

func anyAfter(d *net.Dialer, pause time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, d.Timeout)
		defer cancel()
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		own := *d
		if own.Resolver == nil {
			own.Resolver = net.DefaultResolver
		}
		found, err := own.Resolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		addresses := make([]string, len(found))
		for i, ip := range found {
			addresses[i] = net.JoinHostPort(ip.Unmap().String(), port)
		}
		conn, err := dialFirst(ctx, &own, network, addresses, pause)
		if conn == nil && ctx.Err() != nil {
			err = &net.OpError{Op: "dial", Net: network, Addr: hostPort(address), Err: os.ErrDeadlineExceeded}
		}
		return conn, err
	}
}

// dialFirst tries addresses, one more after each pause and each failure, and returns the first connection, or the last error.
func dialFirst(ctx context.Context, d *net.Dialer, network string, left []string, pause time.Duration) (net.Conn, error) {
	type dialled struct {
		conn net.Conn
		err  error
	}
	results := make(chan dialled)
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
	var err error
	for trying := 0; trying > 0 || len(left) > 0; {
		var next <-chan time.Time
		if len(left) > 0 {
			go try(left[0])
			left, trying, next = left[1:], trying+1, time.After(pause)
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, ctx.Err()
		case result := <-results:
			if result.err == nil {
				return result.conn, nil
			}
			err, trying = result.err, trying-1
		}
	}
	return nil, err
}

// hostPort is an address that may have a name in place of a number.
type hostPort string

// Network implements net.Addr.
func (hostPort) Network() string { return "tcp" }

// String implements net.Addr.
func (a hostPort) String() string { return string(a) }
