package cluster

import (
	"io"
	"net"
	"sync"
)

// Gate is a stretch of network: it passes connections on, until it is shut.
type Gate struct {
	place    Place
	listener net.Listener
	target   string

	mu   sync.Mutex
	shut bool
	open map[net.Conn]bool
	all  sync.WaitGroup
}

// newGate listens on a free address of a place's loopback and passes on to target.
func newGate(place Place, target string) (*Gate, error) {
	g := &Gate{place: place, target: target, open: make(map[net.Conn]bool)}
	err := place.do(func() (err error) {
		g.listener, err = net.Listen("tcp", loopback+":0")
		return err
	})
	if err != nil {
		return nil, err
	}
	g.all.Go(g.serve)
	return g, nil
}

// Address is where the gate is entered.
func (g *Gate) Address() string { return g.listener.Addr().String() }

// Shut cuts all connections, and every new one at once.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for c := range g.open {
		c.Close()
	}
}

// Open lets connections pass again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}

func (g *Gate) close() {
	g.listener.Close()
	g.Shut()
	g.all.Wait()
}

func (g *Gate) serve() {
	for {
		near, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.all.Go(func() { g.pass(near) })
	}
}

// pass carries one connection.
func (g *Gate) pass(near net.Conn) {
	defer near.Close()
	var far net.Conn
	err := g.place.do(func() (err error) {
		far, err = net.Dial("tcp", g.target)
		return err
	})
	if err != nil {
		return
	}
	defer far.Close()
	if !g.enter(near, far) {
		return
	}
	defer g.leave(near, far)
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
		both.Go(func() {
			io.Copy(to, from)
			near.Close()
			far.Close()
		})
	}
	both.Wait()
}

func (g *Gate) enter(list ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range list {
		g.open[c] = true
	}
	return !g.shut
}

func (g *Gate) leave(list ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range list {
		delete(g.open, c)
	}
}
