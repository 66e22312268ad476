package testkit

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// HTTP2 starts a server with TLS and HTTP/2, and returns a client that trusts it.
func HTTP2(t testing.TB, handler http.Handler) (*httptest.Server, *http.Client) {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, server.Client()
}

// Losing passes connections on to an address, until they are lost: then it takes what they send and says nothing, as
// a firewall that has forgotten them. New ones are passed on.
type Losing struct {
	Address string
	lost    atomic.Int64 // connections up to this number
	last    atomic.Int64
}

// NewLosing starts a Losing, which ends with the test.
func NewLosing(t testing.TB, to string) *Losing {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Losing{Address: listener.Addr().String()}
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

// Lose loses the connections that there are.
func (l *Losing) Lose() { l.lost.Store(l.last.Load()) }

type losingWriter struct {
	io.Writer
	of     *Losing
	number int64
}

// Write implements io.Writer.
func (w losingWriter) Write(p []byte) (int, error) {
	if w.number <= w.of.lost.Load() {
		return len(p), nil
	}
	return w.Writer.Write(p)
}
