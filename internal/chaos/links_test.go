package chaos

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// fate is what a link does to what it carries.
type fate int

const (
	carries   fate = iota
	refuses        // connections are closed
	deaf           // what the near side sends is lost, without a word
	mute           // what the far side sends is lost: a request is done, and not answered
	blackHole      // both
	fates
)

// link carries TCP connections to a server, as a network does.
type link struct {
	listener net.Listener
	target   string

	mu   sync.Mutex
	fate fate
	open map[net.Conn]bool
}

// newLink makes a link to an address.
func newLink(t *testing.T, target string) *link {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{listener: listener, target: target, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() { l.serve(&all) })
	t.Cleanup(func() {
		listener.Close()
		l.set(refuses)
		all.Wait()
	})
	return l
}

func (l *link) url() string { return "http://" + l.listener.Addr().String() }

// set changes what happens from now on. Connections of which something may have been lost end.
func (l *link) set(to fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fate = to; to == carries || to == refuses {
		for c := range l.open {
			c.Close()
		}
	}
}

func (l *link) serve(all *sync.WaitGroup) {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer near.Close()
			far, err := net.Dial("tcp", l.target)
			if err != nil {
				return
			}
			defer far.Close()
			if !l.keep(near, far) {
				return
			}
			defer l.drop(near, far)
			var both sync.WaitGroup
			both.Go(func() { l.carry(near, far, deaf) })
			both.Go(func() { l.carry(far, near, mute) })
			both.Wait()
		})
	}
}

// carry copies one direction of a connection, but for what is lost in it.
func (l *link) carry(from, to net.Conn, loses fate) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if now := l.now(); now == loses || now == blackHole {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (l *link) now() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fate
}

// keep registers connections, and reports whether there is a way.
func (l *link) keep(list ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range list {
		l.open[c] = true
	}
	return l.fate != refuses
}

func (l *link) drop(list ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range list {
		delete(l.open, c)
	}
}
