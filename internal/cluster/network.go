package cluster

import (
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"regedge/replicate/registry/freeport"
)

// loopback is the address that everything listens on by default.
const loopback = "127.0.0.1"

// Place is the network that processes run in. Its zero value is the network of this process.
type Place struct {
	// Host is the IP address that processes there listen on, 127.0.0.1 if empty.
	Host string
	// Enter moves the calling thread to the network, for as long as the thread lives; nil for
	// the network of this process.
	Enter func() error
}

func (p Place) host() string {
	if p.Host == "" {
		return loopback
	}
	return p.Host
}

// Run calls f on a thread that is in the place's network: the sockets that f opens and the
// processes that it starts belong to that network.
func (p Place) Run(f func() error) error {
	if p.Enter == nil {
		return f()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		err := p.Enter()
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// address reserves a port of the place until the cluster stops.
func (c *Cluster) address(p Place) (address string, err error) {
	var release func()
	err = p.Run(func() (err error) {
		address, release, err = freeport.Reserve(p.host())
		return err
	})
	if err == nil {
		c.reserved = append(c.reserved, release)
	}
	return address, err
}

// Gate is a TCP proxy that can be shut, as a network is cut.
type Gate struct {
	place    Place
	listener net.Listener
	target   string
	passed   atomic.Int64 // bytes in both directions

	mu   sync.Mutex
	shut bool
	open map[net.Conn]bool
	all  sync.WaitGroup
}

// newGate listens on a free port of the loopback of a place, and forwards to target.
func newGate(place Place, target string) (*Gate, error) {
	g := &Gate{place: place, target: target, open: make(map[net.Conn]bool)}
	err := place.Run(func() (err error) {
		g.listener, err = net.Listen("tcp", loopback+":0")
		return err
	})
	if err != nil {
		return nil, err
	}
	g.all.Go(g.serve)
	return g, nil
}

// Address is the address that the gate listens on.
func (g *Gate) Address() string { return g.listener.Addr().String() }

// Passed is the number of bytes that went through in both directions.
func (g *Gate) Passed() int64 { return g.passed.Load() }

// Shut closes all connections, and from now on every new one at once.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for c := range g.open {
		c.Close()
	}
}

// Open lets new connections through again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}

// close stops listening, closes all connections, and waits for the goroutines.
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
		g.all.Go(func() { g.forward(near) })
	}
}

// forward copies both directions of one connection until one side closes it.
func (g *Gate) forward(near net.Conn) {
	defer near.Close()
	var far net.Conn
	err := g.place.Run(func() (err error) {
		far, err = net.Dial("tcp", g.target)
		return err
	})
	if err != nil {
		return
	}
	defer far.Close()
	if !g.add(near, far) {
		return
	}
	defer g.remove(near, far)
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
		both.Go(func() {
			io.Copy(to, counted{from, &g.passed})
			near.Close()
			far.Close()
		})
	}
	both.Wait()
}

// counted adds the bytes that are read to a number.
type counted struct {
	io.Reader
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// add registers connections for Shut, and reports whether the gate is open.
func (g *Gate) add(list ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range list {
		g.open[c] = true
	}
	return !g.shut
}

func (g *Gate) remove(list ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range list {
		delete(g.open, c)
	}
}
