package server

import (
	"fmt"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// bounded is a listener that closes connections beyond the limits at once, before they cost a
// goroutine, a buffer or a handshake.
type bounded struct {
	net.Listener
	most, mostPerAddress int
	proxies              Proxies
	refused              prometheus.Counter

	mu   sync.Mutex
	open int
	of   map[string]int // by network; proxies are not in it
}

func newBounded(listener net.Listener, config Config) (*bounded, error) {
	l := &bounded{
		Listener: listener, most: config.MaxConnections, mostPerAddress: config.MaxConnectionsPerAddress,
		proxies: config.Proxies, of: make(map[string]int),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "regedge_connections_refused_total", Help: "Connections closed because there were too many, in all or of one address.",
		}),
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "regedge_connections_open", Help: "Open connections of clients.",
	}, l.count)
	for _, collector := range []prometheus.Collector{l.refused, open} {
		if err := config.Metrics.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return l, nil
}

func (l *bounded) count() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.open)
}

// Accept returns the next connection within the limits.
func (l *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if address, ok := l.admit(conn); ok {
			return &counted{Conn: conn, of: l, address: address}, nil
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most || address != "" && l.of[address] >= l.mostPerAddress {
		return "", false
	}
	l.open++
	if address != "" {
		l.of[address]++
	}
	return address, true
}

func (l *bounded) release(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if address == "" {
		return
	}
	if l.of[address]--; l.of[address] == 0 {
		delete(l.of, address)
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	of      *bounded
	address string
	once    sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() { c.of.release(c.address) })
	return c.Conn.Close()
}

// CloseWrite tells the client that nothing more comes.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}
