package edge_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/host/server"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
)

// feed is a connection in memory: it gives a request at each read, and takes all answers.
type feed struct {
	next   func() []byte // nil at the end
	answer string        // that the first write must begin with
	wrong  string        // the first write, if it does not
	seen   bool
	once   sync.Once
	closed chan struct{}
}

func (f *feed) Read(p []byte) (int, error) {
	request := f.next()
	if request == nil {
		return 0, io.EOF
	}
	return copy(p, request), nil
}

func (f *feed) Write(p []byte) (int, error) {
	if !f.seen && !strings.HasPrefix(string(p), f.answer) {
		f.wrong = string(p)
	}
	f.seen = true
	return len(p), nil
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (f *feed) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (f *feed) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
func (f *feed) SetDeadline(time.Time) error      { return nil }
func (f *feed) SetReadDeadline(time.Time) error  { return nil }
func (f *feed) SetWriteDeadline(time.Time) error { return nil }

// feeds is a listener of such connections.
type feeds struct {
	conns chan net.Conn
	ended context.Context
}

func (l *feeds) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.ended.Done():
		return nil, net.ErrClosed
	}
}

func (l *feeds) Close() error   { return nil }
func (l *feeds) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// BenchmarkRefusalByTheServer is the cost of a refusal from the bytes of its request to those of its
// answer, with its log line and its metrics: all but the kernel's part. The peer is a trusted proxy, which is
// never held up.
func BenchmarkRefusalByTheServer(b *testing.B) {
	s := newScreened(b)
	s.useUpRates(b)
	proxies, err := server.ParseProxies([]string{"192.0.2.1"})
	require.NoError(b, err)
	config := server.Config{
		Answerer: s.component, Screen: s.screen, Proxies: proxies, DocsURL: "http://docs.example", MaxConnections: 1,
		Log: slog.New(slog.NewJSONHandler(server.NewLogBuffer(io.Discard), nil)), NewRequestID: func() string { return "" },
	}
	request := func(key string) []byte {
		return []byte("GET /v1/companies/" + sampletest.CompanyEveryField + " HTTP/1.1\r\nHost: localhost:8080\r\n" +
			"Authorization: Bearer " + key + "\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n")
	}
	madeUp := make([][]byte, 1024)
	for n := range madeUp {
		madeUp[n] = request(ident.NewKey(func(p []byte) {
			for i := range p {
				p[i] = byte(200 + n>>(8*(i%2)))
			}
		}))
	}
	for _, c := range []struct {
		name, status string
		requests     [][]byte
	}{
		{"sandbox over its rate", "429", [][]byte{request(ident.SandboxKey)}}, {"a live key over its rate", "429", [][]byte{request(liveKey)}},
		{"a made-up key", "401", madeUp}, {"a made-up key with a wrong checksum", "401", [][]byte{request(brokenKey)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			config := config
			config.Metrics = prometheus.NewRegistry()
			web, err := server.New(config)
			require.NoError(b, err)
			ctx, cancel := context.WithCancel(b.Context())
			listener, done := &feeds{make(chan net.Conn), ctx}, make(chan struct{})
			go func() {
				defer close(done)
				_ = web.Run(ctx, listener)
			}()
			at := 0
			conn := &feed{closed: make(chan struct{}), answer: "HTTP/1.1 " + c.status, next: func() []byte {
				if at++; at > b.N {
					return nil
				}
				return c.requests[at%len(c.requests)]
			}}
			b.ReportAllocs()
			b.ResetTimer()
			begun := testkit.ProcessorTime(b)
			listener.conns <- conn
			<-conn.closed
			b.ReportMetric(float64(testkit.ProcessorTime(b)-begun)/float64(b.N), "cpu-ns/op")
			b.StopTimer()
			cancel()
			<-done
			require.Empty(b, conn.wrong)
		})
	}
	b.Run("over the connections", func(b *testing.B) {
		config := config
		config.Metrics = prometheus.NewRegistry()
		web, err := server.New(config)
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		listener, done := &feeds{make(chan net.Conn, 64), ctx}, make(chan struct{})
		go func() {
			defer close(done)
			_ = web.Run(ctx, listener)
		}()
		silent := &feed{closed: make(chan struct{}), next: func() []byte { <-ctx.Done(); return nil }}
		listener.conns <- silent
		over := make([]*feed, b.N)
		for n := range over {
			over[n] = &feed{closed: make(chan struct{})}
		}
		b.ReportAllocs()
		b.ResetTimer()
		begun := testkit.ProcessorTime(b)
		for _, conn := range over {
			listener.conns <- conn
		}
		<-over[b.N-1].closed
		b.ReportMetric(float64(testkit.ProcessorTime(b)-begun)/float64(b.N), "cpu-ns/op")
		b.StopTimer()
		cancel()
		<-done
	})
}
