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
	// ahead is what was read and not asked for yet, in space.
	ahead []byte
	space [readAhead]byte
	// readBy is when reading has to end, and readUntil and writeUntil are what the connection was
	// told of that and of writing. One goroutine reads, writes and sets them.
	readBy, readUntil, writeUntil time.Time
	// lingers is set when the client may still be sending what nobody reads.
	lingers atomic.Bool
}

// readAhead holds most requests whole, in bytes. Each connection has so much, also an idle one.
const readAhead = 512

// Read fills p with what has come. The server waits for the first byte of a request alone,
// because it has no memory for more until then: what comes with that byte is read with it, which
// saves a system call a request.
func (c *connection) Read(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		if apart(c.readUntil, c.readBy) {
			if err := c.Conn.SetReadDeadline(c.readBy); err != nil {
				return 0, err
			}
			c.readUntil = c.readBy
		}
		if len(p) >= len(c.space) {
			return c.Conn.Read(p)
		}
		n, err := c.Conn.Read(c.space[:])
		if n == 0 {
			return 0, err
		}
		c.ahead = c.space[:n]
	}
	n := copy(p, c.ahead)
	c.ahead = c.ahead[n:]
	return n, nil
}

// deadlineSlack is how much a deadline may be off: the server sets three for each request, and each
// is a timer of the scheduler.
const deadlineSlack = 50 * time.Millisecond

// apart reports whether two deadlines are not about the same. The zero time is none.
func apart(a, b time.Time) bool {
	return a.IsZero() != b.IsZero() || a.Sub(b).Abs() > deadlineSlack
}

// SetReadDeadline bounds the reading from now on, but not one that waits already. Where nothing is
// read until the next one is set, it costs nothing.
func (c *connection) SetReadDeadline(t time.Time) error {
	c.readBy = t
	return nil
}

// SetWriteDeadline bounds the writing from now on.
func (c *connection) SetWriteDeadline(t time.Time) error {
	if !apart(c.writeUntil, t) {
		return nil
	}
	c.writeUntil = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline bounds both.
func (c *connection) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
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
