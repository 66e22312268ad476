package testkit

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// RequireLostIsGivenUp checks that a transport gives up a lost connection that all requests share, as with HTTP/2 to a
// proxy, and makes a new one. The connection is lost as at a firewall that has forgotten it: what is sent is dropped.
func RequireLostIsGivenUp(t testing.TB, transport *http.Transport) {
	t.Helper()
	server, trusting := http2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	way := newLosing(t, server.Listener.Addr().String())
	transport.TLSClientConfig = trusting.Transport.(*http.Transport).TLSClientConfig.Clone() // closing the server writes to its own
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: time.Second}
	ask := func() string {
		answer, err := client.Get("https://" + way.address)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		said, _ := io.ReadAll(answer.Body)
		return string(said)
	}
	require.Eventually(t, func() bool { return ask() == "HTTP/2.0" }, time.Minute, time.Millisecond)
	way.lose()
	require.Contains(t, ask(), "exceeded")
	require.Eventually(t, func() bool { return ask() == "HTTP/2.0" }, time.Minute, time.Millisecond)
}

// http2 starts a server with TLS and HTTP/2, and returns a client that trusts it.
func http2(t testing.TB, handler http.Handler) (*httptest.Server, *http.Client) {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, server.Client()
}

// losing passes connections on to an address, until they are lost: then it accepts what they send and answers nothing,
// like a firewall that has forgotten them. New connections are passed on.
type losing struct {
	address string
	lost    atomic.Int64 // connections up to this number
	last    atomic.Int64
}

// newLosing starts a proxy that can lose its connections. It ends with the test.
func newLosing(t testing.TB, to string) *losing {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &losing{address: listener.Addr().String()}
	var running sync.WaitGroup
	var open []net.Conn // of the goroutine that accepts
	running.Go(func() {
		defer func() {
			for _, conn := range open {
				conn.Close()
			}
		}()
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			open = append(open, near)
			far, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			open = append(open, far)
			number := l.last.Add(1)
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				running.Go(func() {
					_, _ = io.Copy(losingWriter{way[1], l, number}, way[0])
					way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() { listener.Close(); running.Wait() })
	return l
}

// lose loses all present connections.
func (l *losing) lose() { l.lost.Store(l.last.Load()) }

type losingWriter struct {
	io.Writer
	of     *losing
	number int64
}

// Write implements io.Writer.
func (w losingWriter) Write(p []byte) (int, error) {
	if w.number <= w.of.lost.Load() {
		return len(p), nil
	}
	return w.Writer.Write(p)
}
