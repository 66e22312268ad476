package server

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// admission counts open connections, in total and for each address, and refuses those beyond its limits.
type admission struct {
	most, mostPerAddress int

	mu   sync.Mutex
	open int
	of   map[string]int // by network; proxies are not in it
}

func newAdmission(most, mostPerAddress int) admission {
	return admission{most: most, mostPerAddress: mostPerAddress, of: make(map[string]int)}
}

// take counts a connection, and returns false if there are too many. A trusted proxy's, with an empty address, counts
// only in the total.
func (a *admission) take(address string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open >= a.most || address != "" && a.of[address] >= a.mostPerAddress {
		return false
	}
	a.open++
	if address != "" {
		a.of[address]++
	}
	return true
}

// release takes back a connection.
func (a *admission) release(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if address == "" {
		return
	}
	if a.of[address]--; a.of[address] == 0 {
		delete(a.of, address)
	}
}

func (a *admission) count() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return float64(a.open)
}

// refusedPause is the minimum time between two log lines about refused connections.
const refusedPause = time.Minute

// Bound returns a listener that closes connections beyond a limit at once. The limit is DefaultMaxConnections, or a
// quarter of the files that the process may open if that is less; one address (for IPv6, one network of 64 bits) may
// have half of it. It is for servers other than an edge's, such as the writer's, whose clients could otherwise take all
// of the process's files and memory.
func Bound(listener net.Listener, log *slog.Logger) net.Listener {
	most := DefaultMaxConnections
	if files := openFiles(); files > 0 {
		most = min(most, max(2, files/4))
	}
	return newBound(listener, most, log)
}

func newBound(listener net.Listener, most int, log *slog.Logger) *bound {
	return &bound{Listener: listener, admission: newAdmission(most, most/2), log: log}
}

// bound is the listener that Bound returns.
type bound struct {
	net.Listener
	admission
	log     *slog.Logger
	refused int // since the last line of the log; Accept has one caller
	told    time.Time
}

// Accept returns the next connection within the limits.
func (b *bound) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := network(parsePeer(conn.RemoteAddr().String()).text)
		if b.take(address) {
			return &admitted{Conn: conn, release: sync.OnceFunc(func() { b.release(address) })}, nil
		}
		_ = conn.Close()
		b.tell(address)
	}
}

// tell logs a refused connection, the first one and then at most one line a minute.
func (b *bound) tell(address string) {
	b.refused++
	if !b.told.IsZero() && time.Since(b.told) < refusedPause {
		return
	}
	b.log.Warn("connections are closed: too many are open, in all or from one address", "refused", b.refused, "last_address", address,
		"open", b.count(), "most", b.most, "most_of_one_address", b.mostPerAddress)
	b.refused, b.told = 0, time.Now()
}

// admitted is a connection that counts until it is closed.
type admitted struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (a *admitted) Close() error {
	a.release()
	return a.Conn.Close()
}
