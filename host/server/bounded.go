package server

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// bounded is a listener that closes connections beyond the limits at once, before they cost a
// goroutine, a buffer or a handshake.
type bounded struct {
	net.Listener
	admission
	proxies Proxies
	refused prometheus.Counter
	unread  prometheus.Counter
	writing atomic.Int64 // answers that wait for their clients to read
	server  *Server
}

func (s *Server) newBounded(listener net.Listener) (*bounded, error) {
	config := s.config
	l := &bounded{
		Listener: listener, admission: newAdmission(affordable(config.MaxConnections, openFiles(), runtime.GOMAXPROCS(0)), config.MaxConnectionsPerAddress),
		proxies: config.Proxies, server: s,
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "regedge_connections_refused_total", Help: "Connections closed because there were too many, in all or of one address.",
		}),
		unread: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "regedge_connections_unread_total", Help: "Connections, or streams of HTTP/2 with an answer of more than 4 KB, that ended because their client did not read an answer in time.",
		}),
	}
	if l.most < config.MaxConnections {
		config.Log.Warn("the process may open too few files for --max-connections: raise LimitNOFILE= of its unit, or ulimit -n",
			"open_files", openFiles(), "max_connections", config.MaxConnections, "connections", l.most)
	}
	writing := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "regedge_connections_writing", Help: "Connections, or streams of HTTP/2 with an answer of more than 4 KB, whose client has not yet taken an answer.",
	}, func() float64 { return float64(l.writing.Load()) })
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "regedge_connections_open", Help: "Open connections of clients.",
	}, l.count)
	for _, collector := range []prometheus.Collector{l.refused, l.unread, writing, open} {
		if err := config.Metrics.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return l, nil
}

// A node needs files for its journal, its probes and the writer, and for the statements of each processor: two at a
// time on each of two databases, of three files each.
const ownFiles, ownFilesPerProcessor = 128, 12

// affordable returns how many connections to allow when the process may open so many files; 0 files means any number.
// At least half of the files are for connections.
func affordable(connections, files, processors int) int {
	if files == 0 {
		return connections
	}
	return max(1, min(connections, max(files-ownFiles-processors*ownFilesPerProcessor, files/2)))
}

// Accept returns the next connection within the limits.
func (l *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if address, ok := l.admit(conn); ok {
			return l.newCounted(conn, address), nil
		}
		l.refused.Inc()
		_ = conn.Close()
	}
}

// admit counts a connection. address is empty for a trusted proxy.
func (l *bounded) admit(conn net.Conn) (address string, ok bool) {
	from := parsePeer(conn.RemoteAddr().String())
	if !l.proxies.trust(from.addr) {
		address = network(from.text)
	}
	return address, l.take(address)
}

// counted is a connection that counts until it is closed. It may be held up: not read for a while.
type counted struct {
	net.Conn
	of      *bounded
	address string // empty for a trusted proxy, which is never held up
	once    sync.Once
	closed  chan struct{}
	until   atomic.Int64 // when it is read again: nanoseconds of sinceStart
	streams sync.Mutex   // of HTTP/2, while they take turns
	leave   func()       // leaves the lane; nil outside it. Used only by the handshake
}

func (l *bounded) newCounted(conn net.Conn, address string) *counted {
	boundBuffers(conn)
	c := &counted{Conn: conn, of: l, address: address, closed: make(chan struct{})}
	if address != "" {
		l.server.paceConnection(c)
	}
	return c
}

// countedOf finds the connection below others, such as one with TLS.
func countedOf(conn net.Conn) *counted {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			c, _ := conn.(*counted)
			return c
		}
		conn = above.NetConn()
	}
}

// hold delays the next read. The delays of several requests add up, to longestHolds.
func (c *counted) hold(more time.Duration) {
	if c == nil || c.address == "" || more <= 0 {
		return
	}
	now := sinceStart()
	c.until.Store(int64(min(max(c.heldUntil(), now)+more, now+longestHolds)))
}

var start = time.Now()

// sinceStart is the monotonic clock of holds.
func sinceStart() time.Duration { return time.Since(start) }

func (c *counted) heldUntil() time.Duration { return time.Duration(c.until.Load()) }

// wait returns once the connection is no longer held up, is closed, or the server stops. It returns how long that took.
func (c *counted) wait() (took time.Duration) {
	if c == nil || c.until.Load() == 0 {
		return 0
	}
	begun := sinceStart()
	if begun >= c.heldUntil() {
		return 0
	}
	for now := begun; now < c.heldUntil(); now = sinceStart() {
		timer := time.NewTimer(c.heldUntil() - now)
		select {
		case <-timer.C:
			continue
		case <-c.closed:
		case <-c.of.server.stopping:
		}
		timer.Stop()
		break
	}
	return sinceStart() - begun
}

// Read implements net.Conn.
func (c *counted) Read(p []byte) (int, error) {
	c.wait()
	return c.Conn.Read(p)
}

// Write implements net.Conn. It counts as writing until the client takes the data, or the write times
// out, which closes the connection: TLS would wait 5 s more, to take leave of its client.
func (c *counted) Write(p []byte) (int, error) {
	c.leaveLane()
	c.of.writing.Add(1)
	defer c.of.writing.Add(-1)
	n, err := c.Conn.Write(p)
	if late, ok := err.(net.Error); ok && late.Timeout() {
		c.of.unread.Inc()
		_ = c.Conn.Close()
	}
	return n, err
}

func (c *counted) leaveLane() {
	if c != nil && c.leave != nil {
		c.leave()
		c.leave = nil
	}
}

// stream counts an HTTP/2 stream whose answer was given to net/http as writing, until the client has
// taken the answer or the stream has timed out. net/http keeps an answer of at most 4 KB for itself, and ends the
// context at once.
func (c *counted) stream(ended context.Context, within time.Duration) {
	if c == nil {
		return
	}
	c.of.writing.Add(1)
	began := time.Now()
	context.AfterFunc(ended, func() {
		c.of.writing.Add(-1)
		if time.Since(began) >= within {
			c.of.unread.Inc()
		}
	})
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.of.release(c.address)
	})
	return c.Conn.Close()
}

// CloseWrite closes the sending side of the connection.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}
