package server_test

import (
	"bufio"
	"context"
	"flag"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/server"
)

// stops is 50 in make soak.
var stops = flag.Int("stops", 3, "graceful stops under load, for each protocol")

// TestEveryChargeOfAStopIsAnswered stops a server while 50 clients send one request after the other
// over connections that are kept. What was charged must have arrived.
func TestEveryChargeOfAStopIsAnswered(t *testing.T) {
	for name, use := range map[string]struct {
		start starter
		http2 bool
	}{"plain": {start, false}, "TLS": {startSecure, false}, "HTTP2": {startSecure, true}} {
		t.Run(name, func(t *testing.T) {
			for range *stops {
				var charged atomic.Int64
				r := use.start(t, server.Config{Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
					charged.Add(1)
					return fine(ctx, q, a)
				})})
				transport := r.client.Transport.(*http.Transport)
				transport.MaxIdleConnsPerHost, transport.ForceAttemptHTTP2 = 50, use.http2
				received, ended := load(r, 50)
				require.Eventually(t, func() bool { return received.Load() > 500 }, time.Minute, time.Millisecond)
				require.NoError(t, r.stop())
				ended()
				require.Equal(t, charged.Load(), received.Load(), "got received, want charged")
			}
		})
	}
}

// load sends requests on so many threads until one fails, and counts the answers with status 200.
func load(r *running, threads int) (received *atomic.Int64, wait func()) {
	var group sync.WaitGroup
	received = new(atomic.Int64)
	for range threads {
		group.Go(func() {
			for {
				response, err := r.client.Get(r.url + "/v1/llps/a")
				if err != nil {
					return
				}
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				if err == nil && response.StatusCode == http.StatusOK {
					received.Add(1)
				}
			}
		})
	}
	return received, group.Wait
}

// TestEveryChargeOfPipelinedRequestsIsAnswered stops a server while clients send requests without waiting
// for answers.
func TestEveryChargeOfPipelinedRequestsIsAnswered(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		for range *stops {
			var charged, received atomic.Int64
			r := start(t, server.Config{Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
				charged.Add(1)
				return fine(ctx, q, a)
			})})
			var clients sync.WaitGroup
			for range 20 {
				conn, err := r.dial()
				require.NoError(t, err)
				defer conn.Close()
				go io.WriteString(conn, strings.Repeat("GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n", 5_000))
				clients.Go(func() {
					from := bufio.NewReader(conn)
					for {
						response, err := http.ReadResponse(from, nil)
						if err != nil {
							return
						}
						if _, err := io.Copy(io.Discard, response.Body); err == nil {
							received.Add(1)
						}
					}
				})
			}
			require.Eventually(t, func() bool { return received.Load() > 500 }, time.Minute, time.Millisecond)
			require.NoError(t, r.stop())
			clients.Wait()
			require.Equal(t, charged.Load(), received.Load(), "got received, want charged")
		}
	})
}
