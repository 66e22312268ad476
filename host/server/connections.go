package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connection is one whose peer is worked out once for all requests.
type connection struct {
	net.Conn
	peer *peer
	of   *connections
	// lingers is set when the client may still be sending what nobody reads.
	lingers atomic.Bool
}

// lingerTime is how long a client has to take the last answer and stop sending.
const lingerTime = 500 * time.Millisecond

// Close closes the connection. What arrives at a closed connection is answered with a reset,
// which can reach the client before it has read the last answer (RFC 9112, section 9.6): so
// what the client still sends is taken for a while.
func (c *connection) Close() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok && c.lingers.Swap(false) && tcp.CloseWrite() == nil {
		_ = tcp.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.Copy(io.Discard, tcp)
	}
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// connections is a listener that knows what it took.
type connections struct {
	net.Listener
	log  *slog.Logger
	mu   sync.Mutex
	open map[*connection]struct{}
}

// newConnections takes a listener over.
func newConnections(listener net.Listener, log *slog.Logger) *connections {
	return &connections{Listener: listener, log: log, open: make(map[*connection]struct{})}
}

// The pause after a connection could not be taken, as when the process has no file descriptor
// left, begins with the shorter one and doubles.
const (
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = time.Second
)

// Accept fails only once the listener is closed.
func (l *connections) Accept() (net.Conn, error) {
	for pause := firstAcceptPause; ; pause = min(2*pause, lastAcceptPause) {
		conn, err := l.Listener.Accept()
		if err == nil {
			c := &connection{Conn: conn, peer: parsePeer(conn.RemoteAddr().String()), of: l}
			l.mu.Lock()
			l.open[c] = struct{}{}
			l.mu.Unlock()
			return c, nil
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		l.log.Error("a connection can't be taken", "error", err)
		time.Sleep(pause)
	}
}

// wait waits until all connections are closed, or ctx is done.
func (l *connections) wait(ctx context.Context) error {
	for {
		l.mu.Lock()
		left := len(l.open)
		l.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// closeAll cuts all connections off.
func (l *connections) closeAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for c := range l.open {
		errs = append(errs, c.Conn.Close())
	}
	clear(l.open)
	return errors.Join(errs...)
}
