package service

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheInitSystemIsTold(t *testing.T) {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", socket.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "20000")
	next := func() string {
		message := make([]byte, 100)
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := socket.Read(message)
		require.NoError(t, err)
		return string(message[:n])
	}
	ctx, cancel := context.WithCancel(t.Context())
	draining, drained := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Service{"drains", func(ctx context.Context) error {
			<-ctx.Done()
			close(draining)
			<-drained
			return nil
		}})
	}()
	require.Equal(t, "READY=1", next())
	require.Equal(t, "WATCHDOG=1", next())
	require.Equal(t, "WATCHDOG=1", next())
	cancel()
	<-draining
	for message := "WATCHDOG=1"; message != "STOPPING=1"; {
		message = next()
		require.Contains(t, []string{"WATCHDOG=1", "STOPPING=1"}, message)
	}
	close(drained)
	require.NoError(t, <-ended)
}

// TestTheWatchdogIsToldInTime: within half of the time after which the init system ends the process.
func TestTheWatchdogIsToldInTime(t *testing.T) {
	const within = 4 * time.Second
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(within.Microseconds(), 10))
	began := time.Now()
	due, stop := watchdog()
	defer stop()
	<-due
	require.Less(t, time.Since(began), within)
}

// TestNobodyIsToldWhoDoesNotAsk: a watchdog without a time would tick all the time.
func TestNobodyIsToldWhoDoesNotAsk(t *testing.T) {
	for _, within := range []string{"", "0", "-1", "soon"} {
		t.Setenv("WATCHDOG_USEC", within)
		due, stop := watchdog()
		require.Nil(t, due, within)
		stop()
	}
}
