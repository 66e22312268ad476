package engine

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
)

// memoryOf copies an instance's whole memory.
func memoryOf(t *testing.T, i *instance) []byte {
	t.Helper()
	whole, err := i.wholeMemory()
	require.NoError(t, err)
	return bytes.Clone(whole)
}

func TestSecretOfOneRequestIsNotInTheNext(t *testing.T) {
	const secret = "s3cret-of-a-client"
	real := func(t *testing.T) (Config, *handler.Request) {
		databases, key := newDatabases(t)
		req := lookup("/v1/companies/"+madeUpCIN+"?note="+secret, key)
		req.Headers = append(req.Headers, handler.Header{Name: "authorization", Value: secret})
		return realConfig(databases, newLedger()), req
	}
	hostile := func(t *testing.T) (Config, *handler.Request) {
		return hostileConfig(t, newLedger()), lookup("/S"+secret, "")
	}
	for name, given := range map[string]func(*testing.T) (Config, *handler.Request){"service": real, "hostile": hostile} {
		t.Run(name, func(t *testing.T) {
			config, req := given(t)
			e := newEngine(t, config)
			i, err := e.acquire(t.Context())
			require.NoError(t, err)
			pristine := memoryOf(t, i)

			var resp handler.Response
			require.NoError(t, i.serve(t.Context(), req, &resp))
			require.True(t, bytes.Contains(memoryOf(t, i), []byte(secret)), "the guest had the secret")
			e.release(t.Context(), i, false)

			next, err := e.acquire(t.Context())
			require.NoError(t, err)
			defer e.release(t.Context(), next, false)
			require.Same(t, i, next, "the instance is used again")
			require.True(t, bytes.Equal(pristine, memoryOf(t, next)), "memory is as it was at the start")
			for n, g := range next.globals {
				require.Equal(t, e.snapshot.globals[n], g.Get(), "global %d", n)
			}
			requireNothingKept(t, next, secret)
		})
	}
}

// requireNothingKept checks the host's lists up to their capacities.
func requireNothingKept(t *testing.T, i *instance, secret string) {
	t.Helper()
	for _, list := range i.fields[:cap(i.fields)] {
		for _, h := range list.entries[:cap(list.entries)] {
			require.NotContains(t, h.Value, secret)
		}
	}
	for _, r := range i.requests[:cap(i.requests)] {
		require.Empty(t, r)
	}
	for _, v := range i.parameters[:cap(i.parameters)] {
		require.Empty(t, v)
	}
	for _, v := range i.result.Values[:cap(i.result.Values)] {
		require.Empty(t, v)
	}
	for _, id := range i.charges[:cap(i.charges)] {
		require.Empty(t, id)
	}
	require.Empty(t, i.charges)
	require.Empty(t, i.handles.slots)
	require.Empty(t, i.handles.free)
	require.Zero(t, i.lowered)
	require.Zero(t, i.calls+i.statements+i.outgoing)
	require.Nil(t, i.request)
	require.Nil(t, i.response)
}

// TestEveryRequestGetsTheSameHandles: a guest that could tell how many requests came before, or
// reach a handle of one, would not be isolated.
func TestEveryRequestGetsTheSameHandles(t *testing.T) {
	e := newEngine(t, hostileConfig(t, newLedger()))
	i, err := e.acquire(t.Context())
	require.NoError(t, err)
	defer e.release(t.Context(), i, false)
	var first [2]uint64
	for n := range maxHandles {
		var resp handler.Response
		require.NoError(t, i.serve(t.Context(), lookup("/H", ""), &resp), "request %d", n)
		require.NoError(t, e.snapshot.restore(i))
		if n == 0 {
			first = i.handleStack
		}
		require.Equal(t, first, i.handleStack, "request %d", n)
	}
	requireNothingKept(t, i, "hostile")
}

// everyKindOfRequest covers each route, each refusal before the meter, and malformed input.
func everyKindOfRequest(key string) []*handler.Request {
	requests := []*handler.Request{
		lookup("/v1/companies/"+madeUpCIN, key),
		lookup("/v1/companies/"+madeUpCIN, "reg_sandbox_public"),
		lookup("/v1/companies/"+strings.ToLower(madeUpCIN), key),
		lookup("/v1/companies/U72900KA2015PTC990002", key),
		lookup("/v1/companies/nothing", key),
		lookup("/v1/directors/1", key),
		lookup("/v1/directors/99", key),
		lookup("/v1/llps/AAA-1234", key),
		lookup("/v1/search/companies?name=made", key),
		lookup("/v1/search/companies?name=%C3%A9t%C3%A9&limit=3", key),
		lookup("/v1/search/companies?name=\xff\xfe\x80", key),
		lookup("/v1/search/companies?name="+strings.Repeat("w", 300), key),
		lookup("/v1/search/llps?llpin=AAA1234", key),
		lookup("/v1/companies/"+madeUpCIN, "reg_live_unknown"),
		lookup("/", key),
		lookup("*", key),
		{Method: "GET", Target: "/v1/companies/" + madeUpCIN},
	}
	for _, method := range append([]string{"BREW", "get", ""}, methodCases[:]...) {
		requests = append(requests, &handler.Request{Method: method, Target: "/v1/companies/" + madeUpCIN})
	}
	return requests
}

func TestPooledFreshAndNativeGiveTheSameBytes(t *testing.T) {
	databases, key := newDatabases(t)
	pooled := newEngine(t, realConfig(databases, newLedger()))
	freshConfig := realConfig(databases, newLedger())
	freshConfig.Fresh = true
	fresh := newEngine(t, freshConfig)
	native := newNative(databases, newLedger())
	for _, req := range everyKindOfRequest(key) {
		var a, b handler.Response
		require.NoError(t, pooled.Answer(t.Context(), req, &a))
		require.NoError(t, fresh.Answer(t.Context(), req, &b))
		require.Equal(t, a, b, "%s %s", req.Method, req.Target)
		var want handler.Response
		require.NoError(t, native.Answer(t.Context(), req, &want))
		require.Equal(t, want.Status, a.Status, "%s %s", req.Method, req.Target)
		require.Equal(t, string(want.Body), string(a.Body), "%s %s", req.Method, req.Target)
		for _, h := range want.Headers {
			require.Equal(t, h.Value, header(&a, h.Name), "%s %s: %s", req.Method, req.Target, h.Name)
		}
	}
	require.Zero(t, pooled.Stats().Discarded, "no request of the service costs an instance")
	require.Equal(t, int64(1), pooled.Stats().Created)
}
