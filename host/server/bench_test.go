package server_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/host/server"
)

// BenchmarkServer is what the server itself costs: a constant answer over one
// connection, with the log and the metrics, beside net/http alone.
func BenchmarkServer(b *testing.B) {
	b.Run("net-http", func(b *testing.B) {
		roundTrips(b, func(ctx context.Context, l net.Listener) {
			web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", "2")
				io.WriteString(w, "{}")
			})}
			go web.Serve(l)
			<-ctx.Done()
			web.Close()
		})
	})
	b.Run("server", func(b *testing.B) {
		lines := server.NewLogBuffer(io.Discard)
		s, err := server.New(server.Config{
			Answerer: fine, Log: slog.New(slog.NewJSONHandler(lines, nil)), Metrics: prometheus.NewRegistry(),
			NewRequestID: func() string { return "" },
		})
		require.NoError(b, err)
		roundTrips(b, func(ctx context.Context, l net.Listener) { s.Run(ctx, l) })
	})
}

func roundTrips(b *testing.B, serve func(context.Context, net.Listener)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(ctx, listener)
	}()
	c, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(b, err)
	reader := bufio.NewReader(c)
	request := []byte("GET /v1/companies/U72900KA2015PTC990001 HTTP/1.1\r\nHost: localhost:8080\r\n" +
		"Authorization: Bearer reg_live_0123456789\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil || response.StatusCode != 200 {
			b.Fatal(err)
		}
		io.Copy(io.Discard, response.Body)
	}
	c.Close()
	cancel()
	<-done
}
