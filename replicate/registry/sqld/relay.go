package sqld

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// relay passes a replica's connections on to its primary, byte by byte, and ends those whose other side is
// silently gone: a machine that lost its power, a network that forgot the connection. The replica waits
// there for the next changes and sends nothing meanwhile; the probes of sqld 0.24 take over ten minutes
// when unanswered. TLS stays between both ends.
type relay struct {
	listener net.Listener
	primary  string // host:port
	output   *output
	told     atomic.Pointer[string] // the error that was logged last, nil once the primary was reached
	patience time.Duration          // how long a primary may take for its first word
	served   sync.WaitGroup
	ctx      context.Context // of the connections
	end      func()
	held     sync.RWMutex // while it is locked, nothing of the primary is passed on
	fetcher  *fetcher     // nil without certificates, which a gate asks for
}

// keepalive ends a connection after half a minute without a sign of the other side, as the gate of a primary
// does.
var keepalive = net.KeepAliveConfig{Enable: true, Idle: pingTimeout, Interval: 5 * time.Second, Count: 3}

// acceptPause lies between an error and the next connection.
const acceptPause = 100 * time.Millisecond

// holdLimit is how long hold waits.
const holdLimit = time.Second

// lostAfter is how long data may stay without an acknowledgement, where the system can be told.
const lostAfter = 30 * time.Second

// openRelay gives the server another address for its primary, which may take patience for its first word.
func openRelay(config *Config, output *output, patience time.Duration) (*relay, error) {
	to, err := url.Parse(config.Primary)
	if err != nil {
		return nil, err
	}
	if to.Port() == "" {
		to.Host = net.JoinHostPort(to.Hostname(), map[string]string{"http": "80", "https": "443"}[to.Scheme])
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, primary: to.Host, output: output, patience: patience}
	r.ctx, r.end = context.WithCancel(context.Background())
	if config.TLS != nil {
		r.fetcher = newFetcher(config, to, output)
	}
	to.Host = listener.Addr().String()
	config.Primary = to.String()
	r.served.Go(r.serve)
	return r, nil
}

func (r *relay) serve() {
	for {
		conn, err := r.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no more files may be opened now
			time.Sleep(acceptPause)
		default:
			r.served.Go(func() { r.pass(conn) })
		}
	}
}

// dialPrimary connects with a primary. The connection ends when the other side is silently gone.
func dialPrimary(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: handshakeTimeout, KeepAliveConfig: keepalive, Control: boundSilence}
	return dialer.DialContext(ctx, network, address)
}

// pass passes a connection on until either side ends it.
func (r *relay) pass(near net.Conn) {
	defer near.Close()
	if r.fetcher != nil {
		if may, err := r.fetcher.mayFollow(r.ctx); err != nil {
			r.tell(err)
			return
		} else if !may {
			return
		}
	}
	far, err := dialPrimary(r.ctx, "tcp", r.primary)
	if err != nil {
		r.tell(err)
		return
	}
	ended, end := context.WithCancel(r.ctx)
	defer end()
	context.AfterFunc(ended, func() { _ = far.Close() })
	r.served.Go(func() {
		defer end()
		_, _ = io.Copy(far, near)
	})
	// A primary that hangs accepts connections. sqld waits for its side of the handshake without an end.
	_ = far.SetReadDeadline(time.Now().Add(r.patience))
	first := make([]byte, 1<<10)
	n, err := far.Read(first)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.tell(errSaysNothing)
		}
		return
	}
	r.tell(nil)
	_ = far.SetReadDeadline(time.Time{})
	to := heldWriter{near, &r.held}
	if _, err = to.Write(first[:n]); err == nil {
		_, _ = io.Copy(to, far)
	}
}

// hold keeps back what the primary sends, until release. It reports false if the server takes nothing for holdLimit.
// A nil relay holds nothing.
func (r *relay) hold() bool {
	if r == nil {
		return true
	}
	// Who waits for the lock would keep other connections waiting as well.
	for began := time.Now(); !r.held.TryLock(); time.Sleep(time.Millisecond) {
		if time.Since(began) > holdLimit {
			return false
		}
	}
	return true
}

func (r *relay) release() {
	if r != nil {
		r.held.Unlock()
	}
}

// heldWriter writes while nobody holds the relay.
type heldWriter struct {
	io.Writer
	held *sync.RWMutex
}

// Write implements io.Writer.
func (w heldWriter) Write(p []byte) (int, error) {
	w.held.RLock()
	defer w.held.RUnlock()
	return w.Writer.Write(p)
}

// tell logs why the primary is unreachable, once per cause: sqld sees only that its connection ended.
func (r *relay) tell(err error) {
	switch {
	case err == nil:
		r.told.Store(nil)
	case r.ctx.Err() == nil:
		text := err.Error()
		if !errors.Is(err, errCopy) {
			text = "the primary is not reached: " + text
		}
		if before := r.told.Swap(&text); before == nil || *before != text {
			r.output.say(text)
		}
	}
}

// fetched receives the log of a base that was fetched, for which the server is to be started again. Of a nil relay it
// receives nothing.
func (r *relay) fetched() <-chan beginning {
	if r == nil || r.fetcher == nil {
		return nil
	}
	return r.fetcher.fetched
}

// close ends all connections. A nil relay is closed.
func (r *relay) close() {
	if r != nil {
		_ = r.listener.Close()
		r.end()
		r.served.Wait()
	}
}
