package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/host/server"
)

// liveKey returns a key of the right form, the same for the same n.
func liveKey(n byte) string {
	return ident.NewKey(func(p []byte) {
		for i := range p {
			p[i] = n
		}
	})
}

// from makes a client with connections of its own, from an address of this machine.
func (r *running) from(t *testing.T, address string, http2 bool) *http.Client {
	t.Helper()
	transport := r.client.Transport.(*http.Transport).Clone()
	transport.DialContext, transport.ForceAttemptHTTP2 = dialer(address).DialContext, http2
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func ask(client *http.Client, url, key string) (status int) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// TestNobodyTakesTheShareOfAnother holds as many lookups of an attacker in flight as the server takes.
func TestNobodyTakesTheShareOfAnother(t *testing.T) {
	for name, start := range map[string]starter{"plain": start, "TLS": startSecure, "HTTP2": startSecure} {
		for attack, c := range map[string]struct {
			key     func(n int) string
			address func(n int) string
		}{
			"the sandbox": {func(int) string { return ident.SandboxKey }, func(int) string { return "127.0.0.2" }},
			"the sandbox from many addresses": {func(int) string { return ident.SandboxKey },
				func(n int) string { return fmt.Sprintf("127.0.1.%d", n%100+1) }},
			"an account from many addresses": {func(int) string { return liveKey(1) },
				func(n int) string { return fmt.Sprintf("127.0.1.%d", n%100+1) }},
			"made-up keys from one address": {func(n int) string { return liveKey(byte(n%100 + 10)) },
				func(int) string { return "127.0.0.2" }},
		} {
			t.Run(name+"/"+attack, func(t *testing.T) {
				leave := make(chan struct{})
				end := sync.OnceFunc(func() { close(leave) })
				defer end()
				// Under the race detector 300 handshakes take longer than the usual timeout, and net/http's client
				// begins more connections meanwhile than an address may have.
				r := start(t, server.Config{ReadHeaderTimeout: time.Minute, MaxConnectionsPerAddress: 8192, Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
					if q.ClientAddr() != "127.0.0.1" {
						<-leave
					}
					return fine(ctx, q, a)
				})})
				clients := map[string]*http.Client{}
				answers := make(chan int, 300)
				for n := range 300 {
					address := c.address(n)
					if clients[address] == nil {
						clients[address] = r.from(t, address, name == "HTTP2")
					}
					attacker := clients[address]
					go func() { answers <- ask(attacker, r.url+"/v1/llps/a", c.key(n)) }()
				}
				require.Equal(t, 503, <-answers, "the attacker has more than it gets")
				customer := r.from(t, "127.0.0.1", name == "HTTP2")
				for n := range 50 {
					require.Equal(t, 200, ask(customer, r.url+"/v1/llps/a", liveKey(2)), "request %d", n)
				}
				end()
			})
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		trusted, err := server.ParseProxies([]string{"127.0.0.9"})
		require.NoError(t, err)
		r := start(t, server.Config{Answerer: fine, MaxConnections: 8, MaxConnectionsPerAddress: 3, Proxies: trusted, ReadHeaderTimeout: time.Hour})
		for _, c := range []struct {
			address   string
			open, get int
		}{{"127.0.0.2", 3, 3}, {"127.0.0.2", 2, 0}, {"127.0.0.9", 5, 5}, {"127.0.0.3", 1, 0}} {
			for n := range c.open {
				conn, err := dialer(c.address).Dial("tcp", r.addr)
				require.NoError(t, err)
				defer conn.Close()
				patience := time.Minute // until it is closed
				if n < c.get {
					patience = 20 * time.Millisecond // it is not
				}
				require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
				_, err = conn.Read(make([]byte, 1))
				require.Equal(t, n < c.get, errors.Is(err, os.ErrDeadlineExceeded), "connection %d of %s: %v", n, c.address, err)
			}
		}
		require.NoError(t, r.stop())
		require.EqualValues(t, 3, r.counted(t, "regedge_connections_refused_total"))
	})
}

// screenFunc refuses with a function.
type screenFunc func(*handler.Request, *handler.Response) bool

func (f screenFunc) Refuse(_ context.Context, q *handler.Request, a *handler.Response) bool {
	return f(q, a)
}

// TestWhoWasRefusedIsScreened counts the requests that reach the Answerer once it has refused one.
func TestWhoWasRefusedIsScreened(t *testing.T) {
	const tooMany, unknown = 429, 401
	for name, start := range map[string]starter{"plain": start, "TLS": startSecure, "HTTP2": startSecure} {
		for attack, c := range map[string]struct {
			key    func(n int) string
			status int
		}{
			"the sandbox":           {func(int) string { return ident.SandboxKey }, tooMany},
			"a live key":            {func(int) string { return liveKey(1) }, tooMany},
			"made-up keys":          {func(n int) string { return liveKey(byte(n + 10)) }, unknown},
			"keys of no known form": {func(n int) string { return fmt.Sprint(n) }, unknown},
		} {
			t.Run(name+"/"+attack, func(t *testing.T) {
				var answered, screened atomic.Int64
				refuse := func(count *atomic.Int64) func(*handler.Request, *handler.Response) bool {
					return func(q *handler.Request, a *handler.Response) bool {
						if q.ClientAddr() == "127.0.0.1" {
							return false
						}
						count.Add(1)
						a.Status = c.status
						return true
					}
				}
				byAnswerer := refuse(&answered)
				r := start(t, server.Config{Screen: screenFunc(refuse(&screened)),
					Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
						if byAnswerer(q, a) {
							return nil
						}
						return fine(ctx, q, a)
					})})
				attacker, customer := r.from(t, "127.0.0.2", name == "HTTP2"), r.from(t, "127.0.0.1", name == "HTTP2")
				for n := range 100 {
					require.Equal(t, c.status, ask(attacker, r.url+"/v1/llps/a", c.key(n)))
					require.Equal(t, 200, ask(customer, r.url+"/v1/llps/a", liveKey(2)))
				}
				require.EqualValues(t, 1, answered.Load())
				require.EqualValues(t, 99, screened.Load())
				require.EqualValues(t, 99, r.counted(t, "regedge_requests_screened_total"))
			})
		}
	}
}
