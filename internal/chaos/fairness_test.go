package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// attack is what the nth of the attacker's connections does until ctx ends.
type attack func(ctx context.Context, p *process, n int)

// fewAddresses gives the address that an attacker uses for connection n: it has as few addresses as a limit of 512 connections
// for each allows.
func fewAddresses(n int) string { return fmt.Sprintf("127.0.0.%d", 2+n/500) }

func manyAddresses(n int) string { return fmt.Sprintf("127.0.%d.%d", 1+n/200, 1+n%200) }

func dialer(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
}

// asking sends one lookup after the other.
func asking(key, address func(n int) string) attack {
	return func(ctx context.Context, p *process, n int) {
		transport := &http.Transport{DialContext: dialer(address(n)).DialContext}
		defer transport.CloseIdleConnections()
		for ctx.Err() == nil {
			status(ctx, &http.Client{Transport: transport}, "http://"+p.address, key(n))
		}
	}
}

// status asks an edge for a company and returns the status, 0 without an answer.
func status(ctx context.Context, client *http.Client, edge, key string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, edge+company, nil)
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0
	}
	return response.StatusCode
}

// under runs an attack while a customer asks 50 times a second, for n requests in all, and returns
// the times of the customer's answers. Each has to be 200.
func (p *process) under(t *testing.T, do attack, attackers int, a *account, n int) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range attackers {
		all.Go(func() { do(ctx, p, i) })
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	took, statuses := make([]time.Duration, n), make([]int, n)
	var asked sync.WaitGroup
	pace := time.NewTicker(time.Second / 50)
	defer pace.Stop()
	for i := range n {
		<-pace.C
		asked.Go(func() {
			begun := time.Now()
			statuses[i] = status(t.Context(), client, "http://"+p.address, a.key)
			took[i] = time.Since(begun)
		})
	}
	asked.Wait()
	slices.Sort(took)
	t.Logf("beside %d: p50 %v, p99 %v", attackers, took[n/2], took[n*99/100])
	slices.Sort(statuses)
	require.Equal(t, slices.Repeat([]int{http.StatusOK}, n), statuses)
	return took
}

// TestWaitersTakeNobodysPlace has lookups wait for leases while a customer has one.
func TestWaitersTakeNobodysPlace(t *testing.T) {
	if !*alone {
		t.Skip("beside other tests the customer's own lookups pile up: go test ./internal/chaos -run TakeNobodysPlace -alone")
	}
	c := newCluster(t)
	to, err := url.Parse("http://" + c.writer.address)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	var hangs atomic.Bool
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			_, _ = io.Copy(io.Discard, r.Body) // or its end would not be noticed
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer func() { between.CloseClientConnections(); between.Close() }()
	p := c.edge("here", between.URL, c.path("here"), "--engine", "wazero")
	p.start()
	defer p.Kill() // before the proxy, whose requests it holds
	p.await("/readyz", http.StatusOK)
	away := c.run("away")
	customer, stuck := c.account(1_000_000), c.account(1000)
	// An edge keeps half of what an account used lately: enough for the 100 beside a hanging writer.
	require.Equal(t, http.StatusOK, customer.asks(p, 900))
	require.Equal(t, http.StatusOK, stuck.asksUntilHeard(away), "it has all credits now")
	away.Kill()

	t.Run("of an account whose credits are at an edge that is away", func(t *testing.T) {
		p.under(t, asking(func(int) string { return stuck.key }, fewAddresses), 300, customer, 100)
	})
	t.Run("of 300 accounts while the writer hangs", func(t *testing.T) {
		keys := c.keys(300)
		hangs.Store(true)
		p.under(t, asking(func(n int) string { return keys[n] }, manyAddresses), 300, customer, 100)
	})
}

// keys makes accounts with credits and a key each.
func (c *cluster) keys(n int) []string {
	keys := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			made, err := c.client.AddAccount(c.t.Context(), "chaos", "", "unlimited")
			if err == nil {
				_, err = c.client.ChangeCredits(c.t.Context(), made.ID, writer.CreditChange{Amount: 10})
			}
			if err != nil {
				return
			}
			if key, err := c.client.AddKey(c.t.Context(), made.ID, ""); err == nil {
				keys[i] = key.Secret
			}
		})
	}
	all.Wait()
	require.NotContains(c.t, keys, "")
	return keys
}
