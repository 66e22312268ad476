package server

import (
	"net"
	"testing"

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
