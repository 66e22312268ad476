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

// connection is a connection with its parsed peer address, a read-ahead buffer, and deadlines that
// are set on the socket only when they matter. Without the buffer and the lazy deadlines a mix of
// lookups and searches takes 1.055 times the processor time, lookups alone 1.028 times (500,000
// companies, medians of 150 pairs of slices, 2026-11-23).
type connection struct {
	net.Conn
	peer *peer
	of   *connections
	// ahead is the unread part of buffer.
	ahead  []byte
	buffer [readAhead]byte
	// readBy is the deadline for reading. readSet and writeSet are the deadlines that the
	// socket has. Only one goroutine reads, writes and sets deadlines.
	readBy, readSet, writeSet time.Time
	// lingers is set if the client may still be sending data that is not read.
	lingers atomic.Bool
	state   atomic.Int32
}

// The states of a connection. A drain ends a connection only while it waits, in one step with
// the receipt of a request's first bytes: a request is either answered, or was never begun.
const (
	waiting int32 = iota // for the first bytes of a request
	busy                 // with a request
	ended                // what arrives now is not read as a request
)

// readAhead holds most requests completely, in bytes. Every connection has a buffer of this size,
// idle ones too.
const readAhead = 512

// Read implements net.Conn. The server waits for the first byte of a request with a buffer of one
// byte, because it takes no memory for more until then. Reading ahead what arrives with that byte
// saves a system call a request.
func (c *connection) Read(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		if len(p) >= len(c.buffer) {
			return c.receive(p)
		}
		n, err := c.receive(c.buffer[:])
		if n == 0 {
			return 0, err
		}
		c.ahead = c.buffer[:n]
	}
	n := copy(p, c.ahead)
	c.ahead = c.ahead[n:]
	return n, nil
}

// receive reads from the socket. It fails with net.ErrClosed once a drain has ended the connection.
func (c *connection) receive(p []byte) (int, error) {
	if held := c.peer.conn.wait(); held > 0 && !c.readBy.IsZero() {
		c.readBy = c.readBy.Add(held) // the client could not hurry
	}
	if differ(c.readSet, c.readBy) {
		if err := c.Conn.SetReadDeadline(c.readBy); err != nil {
			return 0, err
		}
		c.readSet = c.readBy
	}
	if c.state.Load() == ended { // its deadline may just have been replaced
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(p)
	if n > 0 && c.state.Load() != busy && !c.state.CompareAndSwap(waiting, busy) {
		c.lingers.Store(true)
		return 0, net.ErrClosed
	}
	return n, err
}

// begin begins with a request that was read. It reports false if a drain has ended the connection: a
// request that came in one piece with those before it is then not answered, and must not be charged.
func (c *connection) begin() bool {
	if c.state.Load() == busy || c.state.CompareAndSwap(waiting, busy) {
		return true
	}
	c.lingers.Store(true)
	return false
}

// await is called after an answer was sent: the next bytes begin a request. It returns when the
// connection is no longer held up, since the next request may have been read already.
func (c *connection) await() {
	c.state.Store(waiting)
	if c.of.draining.Load() {
		c.end()
	}
	c.peer.conn.wait()
}

// end ends the connection if it waits for a request. The goroutine that reads from it closes it:
// at once if the client hangs up too.
func (c *connection) end() {
	if !c.state.CompareAndSwap(waiting, ended) {
		return
	}
	if half, ok := c.Conn.(halfCloser); ok {
		_ = half.CloseWrite()
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
}

// deadlineSlack is how inexact a deadline may be. The server sets three for each request, and each
// costs a timer of the scheduler.
const deadlineSlack = 50 * time.Millisecond

// differ reports whether two deadlines differ by more than the slack. The zero time is no deadline.
func differ(a, b time.Time) bool {
	return a.IsZero() != b.IsZero() || a.Sub(b).Abs() > deadlineSlack
}

// SetReadDeadline implements net.Conn for later calls of Read. It is free when nothing is read before
// the next call.
func (c *connection) SetReadDeadline(t time.Time) error {
	c.readBy = t
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *connection) SetWriteDeadline(t time.Time) error {
	if !differ(c.writeSet, t) {
		return nil
	}
	c.writeSet = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// halfCloser is a connection, with TLS or without, whose sending side can be closed alone.
type halfCloser interface{ CloseWrite() error }

// lingerTime is how long a client has to read the last answer and stop sending.
const lingerTime = 500 * time.Millisecond

// Close closes the connection. Data that arrives at a closed connection is answered with a reset,
// which can discard the last answer before the client has read it (RFC 9112, section 9.6). So if the
// client may still be sending, its data is drained for a while first.
func (c *connection) Close() error {
	if half, ok := c.Conn.(halfCloser); ok && c.lingers.Swap(false) && half.CloseWrite() == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.Copy(io.Discard, c.Conn)
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
	// draining is set before the open connections are ended, and read after one was added or
	// begins to wait, so that none is missed.
	draining atomic.Bool
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
	conn, err := accept(l.Listener, l.log)
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, peer: peerAt(conn), of: l}
	l.mu.Lock()
	l.open[c] = struct{}{}
	l.mu.Unlock()
	if l.draining.Load() {
		c.end()
	}
	return c, nil
}

// accept fails only once the listener is closed.
func accept(from net.Listener, log *slog.Logger) (net.Conn, error) {
	for pause := firstAcceptPause; ; pause = min(2*pause, lastAcceptPause) {
		conn, err := from.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return conn, err
		}
		log.Error("accept a connection", "error", err)
		time.Sleep(pause)
	}
}

// handOver is a listener whose connections another goroutine has accepted.
type handOver struct {
	addr   net.Addr
	conns  chan net.Conn
	closed context.Context
	cancel context.CancelFunc
}

func newHandOver(addr net.Addr) *handOver {
	closed, cancel := context.WithCancel(context.Background())
	return &handOver{addr, make(chan net.Conn), closed, cancel}
}

// give passes a connection on, or closes it after Close.
func (h *handOver) give(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed.Done():
		_ = c.Close()
	}
}

func (h *handOver) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed.Done():
		return nil, net.ErrClosed
	}
}

func (h *handOver) Close() error {
	h.cancel()
	return nil
}

func (h *handOver) Addr() net.Addr { return h.addr }

// drain accepts no more connections, and ends those that wait for a request. The others end after
// their answer.
func (l *connections) drain() {
	l.draining.Store(true)
	_ = l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		go c.end() // TLS takes leave of a client that reads nothing for 5 s; wait waits for it
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

// closeAll closes all connections at once. With TLS it does not take leave of their clients.
func (l *connections) closeAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for c := range l.open {
		var under io.Closer = c.Conn
		if counted := countedOf(c.Conn); counted != nil {
			under = counted
		}
		errs = append(errs, under.Close())
	}
	clear(l.open)
	return errors.Join(errs...)
}
