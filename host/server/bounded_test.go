package server

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAConnectionThatIsClosedTwiceCountsOnce: the second time would make room for one too many, or none for its
// address. Nothing is kept of an address without connections.
func TestAConnectionThatIsClosedTwiceCountsOnce(t *testing.T) {
	s, _ := without(t, Config{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	l, err := s.newBounded(listener)
	require.NoError(t, err)
	accepted := func() net.Conn {
		client, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		conn, err := l.Accept()
		require.NoError(t, err)
		return conn
	}
	first, second := accepted(), accepted()
	require.Equal(t, 2.0, l.count())
	require.NoError(t, first.Close())
	_ = first.Close()
	require.Equal(t, 1.0, l.count())
	require.Equal(t, map[string]int{"127.0.0.1": 1}, l.of)
	require.NoError(t, second.Close())
	require.Empty(t, l.of)
}

// remote is a connection from an address.
type remote struct {
	net.Conn
	address string
}

func (r remote) RemoteAddr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", r.address)
	return addr
}

// TestConnectionsOfAnIPv6NetworkAreThoseOfOneAddress: a client has all of its 64 bits.
func TestConnectionsOfAnIPv6NetworkAreThoseOfOneAddress(t *testing.T) {
	s, _ := without(t, Config{MaxConnectionsPerAddress: 2})
	l, err := s.newBounded(nil)
	require.NoError(t, err)
	for _, c := range []struct {
		address string
		admits  bool
	}{
		{"[2001:db8::1]:1", true}, {"[2001:db8::2]:1", true}, {"[2001:db8::3]:1", false}, {"[2001:db8:0:1::1]:1", true},
		{"192.0.2.1:1", true}, {"[::ffff:192.0.2.1]:1", true}, {"192.0.2.1:2", false}, {"192.0.2.2:1", true},
	} {
		_, ok := l.admit(remote{address: c.address})
		require.Equal(t, c.admits, ok, c.address)
	}
}

// TestAConnectionIsHeldUpForSecondsAtMost: until its time is over, or it is closed, or the server stops.
func TestAConnectionIsHeldUpForSecondsAtMost(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		do    func(*Server, *counted)
	}{
		"to the end":          {10 * time.Second, func(*Server, *counted) {}},
		"until it is closed":  {time.Second, func(_ *Server, c *counted) { _ = c.Close() }},
		"until a stop begins": {time.Second, func(s *Server, _ *counted) { close(s.stopping) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := without(t, Config{})
				conn, _ := net.Pipe()
				held := &counted{Conn: conn, of: &bounded{server: s, admission: newAdmission(1, 1)}, address: "192.0.2.1", closed: make(chan struct{})}
				require.True(t, held.of.take(held.address))
				for range 100 {
					held.hold(time.Second)
				}
				time.AfterFunc(time.Second, func() { c.do(s, held) })
				began := time.Now()
				held.wait()
				require.Equal(t, c.after, time.Since(began))
				proxy := &counted{of: held.of}
				proxy.hold(time.Hour)
				require.Zero(t, proxy.until.Load(), "its connections carry the requests of others")
			})
		})
	}
}

// TestANewConnectionIsNoWayOut: reconnecting does not end a hold.
func TestANewConnectionIsNoWayOut(t *testing.T) {
	s, _ := without(t, Config{})
	connect := func() bool {
		c := &counted{address: "192.0.2.1"}
		s.paceConnection(c)
		return c.until.Load() > 0
	}
	require.False(t, connect())
	for range 2 * unpaidBurst {
		s.paces.unpaidAddress.note(s.shares.slot("192.0.2.1"), time.Now())
	}
	require.True(t, connect())
}
