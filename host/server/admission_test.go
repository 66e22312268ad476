package server

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestABoundListenerKeepsPlacesForOthers: one address has at most half of them, and each that it gives back can be taken again,
// once. The log says so without a line for each.
func TestABoundListenerKeepsPlacesForOthers(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	log := new(testkit.Log)
	l := newBound(inner, 4, slog.New(slog.NewTextHandler(log, nil)))
	defer l.Close()
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("served"))
			accepted <- conn
		}
	}()
	served := func(from byte) bool {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}).Dial("tcp", inner.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.ReadFull(conn, make([]byte, len("served")))
		return err == nil
	}
	for range 2 {
		require.True(t, served(1))
	}
	for range 3 {
		require.False(t, served(1), "more than half")
	}
	require.True(t, served(2))
	require.True(t, served(3))
	require.False(t, served(4), "more than all")
	first := <-accepted
	require.NoError(t, first.Close())
	_ = first.Close()
	require.True(t, served(4), "in its place")
	require.False(t, served(5), "which is one alone")
	require.Equal(t, 1, strings.Count(log.String(), "connections are closed"), log.String())
	require.Contains(t, log.String(), "refused=1 last_address=127.0.0.1 open=2 most=4 most_of_one_address=2")
}

// TestConnectionsThatWereRefusedAreToldOnce: a line counts those since the one before.
func TestConnectionsThatWereRefusedAreToldOnce(t *testing.T) {
	log := new(testkit.Log)
	l := newBound(nil, 4, slog.New(slog.NewTextHandler(log, nil)))
	for range 3 {
		l.tell("192.0.2.1")
	}
	l.told = l.told.Add(-refusedPause)
	l.tell("192.0.2.2")
	require.Equal(t, 2, strings.Count(log.String(), "connections are closed"), log.String())
	require.Contains(t, log.String(), "refused=3 last_address=192.0.2.2")
}
