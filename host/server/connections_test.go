package server

import (
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// exhausted is a listener of a process that has no file descriptor left at first.
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

func TestConnectionsAreTakenOnceThereIsRoomAgain(t *testing.T) {
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

// TestAConnectionGivesWhatItReadAhead reads a stream in pieces of every size around the memory
// for what is read ahead.
func TestAConnectionGivesWhatItReadAhead(t *testing.T) {
	sent := make([]byte, 4*readAhead)
	for i := range sent {
		sent[i] = byte(i % 251)
	}
	for _, size := range []int{1, 2, readAhead - 1, readAhead, readAhead + 1, len(sent)} {
		client, server := net.Pipe()
		go func() {
			client.Write(sent[:readAhead/2])
			client.Write(sent[readAhead/2:])
			client.Close()
		}()
		c := &connection{Conn: server}
		var got []byte
		for first := true; ; first = false {
			piece := make([]byte, size)
			if first {
				piece = piece[:1] // as the server begins a request
			}
			n, err := c.Read(piece)
			got = append(got, piece[:n]...)
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				require.Zero(t, n)
				break
			}
			require.Positive(t, n)
		}
		require.Equal(t, sent, got, "pieces of %d bytes", size)
	}
}
