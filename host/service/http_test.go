package service

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// started runs a server until stop, which returns how it ended.
func started(t *testing.T, handler http.HandlerFunc) (address string, log *testkit.Log, stop func() error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	log = new(testkit.Log)
	s := HTTP("api", listener, handler, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return listener.Addr().String(), log, func() error { cancel(); return <-ended }
}

// asked sends a request, and tells when it was answered.
func asked(address string) (answered chan error) {
	answered = make(chan error, 1)
	go func() {
		answer, err := http.Get("http://" + address)
		if err == nil {
			answer.Body.Close()
		}
		answered <- err
	}()
	return answered
}

// TestAStopDoesNotWaitForUnusedConnections, which clients open in advance.
func TestAStopDoesNotWaitForUnusedConnections(t *testing.T) {
	address, log, stop := started(t, func(http.ResponseWriter, *http.Request) {})
	unused, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer unused.Close()
	answer, err := http.Get("http://" + address) // the one before was accepted by then
	require.NoError(t, err)
	answer.Body.Close()
	require.NoError(t, stop())
	_, err = unused.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Empty(t, log.String())
}

// TestAConnectionThatComesWithTheStopIsClosed: it was accepted just before the listener was closed.
func TestAConnectionThatComesWithTheStopIsClosed(t *testing.T) {
	web := &http.Server{}
	unused := watchUnused(web)
	unused.close()
	client, accepted := net.Pipe()
	defer client.Close()
	require.NoError(t, client.SetReadDeadline(time.Now().Add(10*time.Second)))
	web.ConnState(accepted, http.StateNew)
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// TestAStopWaitsForRequestsInFlight as long as it said, and says when one was cut off.
func TestAStopWaitsForRequestsInFlight(t *testing.T) {
	for name, ends := range map[string]bool{"one that ends": true, "one that hangs": false} {
		t.Run(name, func(t *testing.T) {
			begun, proceed := make(chan struct{}), make(chan struct{})
			address, log, stop := started(t, func(w http.ResponseWriter, r *http.Request) {
				close(begun)
				<-proceed
			})
			answered := asked(address)
			<-begun
			if ends {
				go func() {
					for { // until it has begun to stop
						conn, err := net.Dial("tcp", address)
						if err != nil {
							close(proceed)
							return
						}
						conn.Close()
					}
				}()
			} else {
				defer close(proceed)
			}
			require.NoError(t, stop())
			if ends {
				require.NoError(t, <-answered)
				require.Empty(t, log.String())
			} else {
				require.Error(t, <-answered)
				require.Contains(t, log.String(), "requests were cut off at the end")
			}
		})
	}
}

// TestRequestsLearnOfTheStop: long polls, such as an edge's sync, end at once.
func TestRequestsLearnOfTheStop(t *testing.T) {
	begun := make(chan struct{})
	address, log, stop := started(t, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	answered := asked(address)
	<-begun
	require.NoError(t, stop())
	require.NoError(t, <-answered)
	require.Empty(t, log.String())
}
