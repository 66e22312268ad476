package server

import (
	"log/slog"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// exhausted is a listener that at first fails for want of file descriptors.
type exhausted struct {
	net.Listener
	times int
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.times--; l.times >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAcceptContinuesAfterRunningOutOfDescriptors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := newConnections(&exhausted{listener, 3}, slog.New(slog.DiscardHandler))
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", c.(*connection).peer.text)
	require.Len(t, l.open, 1)
	require.NoError(t, c.Close())
	require.Empty(t, l.open)
	require.NoError(t, listener.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
