package server_test

import (
	"context"
	"flag"
	"io"
	"net/http"
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
