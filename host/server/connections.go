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

// connection is a connection with its parsed peer address.
type connection struct {
	net.Conn
	peer *peer
	of   *connections
	// lingers is set if the client may still be sending data that is not read.
	lingers atomic.Bool
}

// lingerTime is how long a client has to read the last answer and stop sending.
const lingerTime = 500 * time.Millisecond

// Close closes the connection. Data that arrives at a closed connection is answered with a reset,
// which can discard the last answer before the client has read it (RFC 9112, section 9.6). So if the
// client may still be sending, its data is drained for a while first.
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

// connections is a listener that keeps track of its open connections.
type connections struct {
	net.Listener
	log  *slog.Logger
	mu   sync.Mutex
	open map[*connection]struct{}
}

// newConnections wraps a listener.
func newConnections(listener net.Listener, log *slog.Logger) *connections {
	return &connections{Listener: listener, log: log, open: make(map[*connection]struct{})}
}

// The pause after a failed accept, for example for want of file descriptors. It doubles each time.
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
		l.log.Error("accept a connection", "error", err)
		time.Sleep(pause)
	}
}

// wait returns when all connections are closed, or ctx is done.
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

// closeAll closes all connections at once.
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
