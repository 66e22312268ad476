package meter_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
)

// post sends a request to a meter's server and returns status and headers.
func post(t *testing.T, server *httptest.Server, token, target string) (int, http.Header) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+target, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := server.Client().Do(r)
	require.NoError(t, err)
	response.Body.Close()
	return response.StatusCode, response.Header
}

func TestMeterOverHTTP(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	server := httptest.NewServer(e.Handler("meter-token"))
	defer server.Close()
	account := c.account("growth", 10)
	r := request(account, charge.Found)

	t.Run("needs the token", func(t *testing.T) {
		status, _ := post(t, server, "another", r.Target())
		require.Equal(t, http.StatusUnauthorized, status)
	})
	t.Run("gives the verdict of the meter", func(t *testing.T) {
		status, header := post(t, server, "meter-token", r.Target())
		v, err := charge.ParseVerdict(status, header.Get)
		require.NoError(t, err)
		require.Equal(t, "", v.Code)
		require.EqualValues(t, 9, v.CreditsRemaining)
		require.Equal(t, v, e.Charge(t.Context(), r))
	})
	t.Run("voids", func(t *testing.T) {
		status, _ := post(t, server, "meter-token", charge.VoidTarget(r.ID))
		require.Equal(t, http.StatusNoContent, status)
		status, header := post(t, server, "meter-token", r.Target())
		v, err := charge.ParseVerdict(status, header.Get)
		require.NoError(t, err)
		require.Equal(t, charge.MeteringUnavailable, v.Code)
	})
	t.Run("refuses a malformed request", func(t *testing.T) {
		status, _ := post(t, server, "meter-token", charge.ChargePath+"?id=x")
		require.Equal(t, http.StatusBadRequest, status)
		status, _ = post(t, server, "meter-token", charge.VoidPath)
		require.Equal(t, http.StatusBadRequest, status)
	})
}

// lostAnswer is a response whose client has gone.
type lostAnswer struct{ *httptest.ResponseRecorder }

func (lostAnswer) FlushError() error { return http.ErrHandlerTimeout }

// TestADoubtThatComesAfterTheRepeatedCall: the first call's answer is known to be lost only once the second one's arrived.
func TestADoubtThatComesAfterTheRepeatedCall(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("growth", 10)
	meter := e.Handler("meter-token")
	call := func(w http.ResponseWriter, r charge.Request) {
		asked := httptest.NewRequestWithContext(t.Context(), http.MethodPost, r.Target(), nil)
		asked.Header.Set("Authorization", "Bearer meter-token")
		meter.ServeHTTP(w, asked)
	}
	for key, sameID := range map[string]bool{"a": true, "b": false} {
		t.Run(map[bool]string{true: "under its id", false: "under its Idempotency-Key"}[sameID], func(t *testing.T) {
			first, again := keyed(account, key, "c"), keyed(account, key, "c")
			if sameID {
				again = first
			}
			call(httptest.NewRecorder(), first)
			arrived := httptest.NewRecorder()
			call(arrived, again)
			require.Equal(t, http.StatusOK, arrived.Code)
			call(lostAnswer{httptest.NewRecorder()}, first)
			require.Zero(t, e.Stats().Unresolved)
		})
	}
}

func TestWriterThatAnswersGarbage(t *testing.T) {
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }))
	defer garbage.Close()
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: meter.OverHTTP(garbage.URL, "token", nil), WaitLimit: time.Second})
	require.NoError(t, err)
	e := &edge{Meter: m}
	stop := e.start(m)
	defer stop()
	require.Equal(t, charge.MeteringUnavailable, e.found(1))
	require.ErrorIs(t, e.Ready(), meter.ErrNoEpoch)
}

// replaying is a Transport that keeps the first reply, and returns it again when replay is
// set.
type replaying struct {
	meter.Transport
	first  []byte
	replay bool
}

func (k *replaying) Sync(ctx context.Context, message []byte) ([]byte, error) {
	if k.replay {
		k.replay = false
		return k.first, nil
	}
	reply, err := k.Transport.Sync(ctx, message)
	if k.first == nil {
		k.first = reply
	}
	return reply, err
}

// TestOldReplyIsRefused starts an edge that spent a credit again on an empty disk, and replays
// the reply to its first Hello. In that epoch it would spend the credit a second time.
func TestOldReplyIsRefused(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	client := &http.Client{Transport: writer.InProcess(c.writer.Load().Handler())}
	transport := &replaying{Transport: meter.OverHTTP("http://writer", node.Token, client)}
	open := func() *edge {
		m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: transport, WaitLimit: c.wait})
		require.NoError(t, err)
		return &edge{Meter: m, name: "one"}
	}
	account := c.account("growth", 1)
	first := open()
	stop := first.start(first.Meter)
	require.Equal(t, "", first.charge(account, charge.Found).Code)
	stop()

	again := open()
	defer again.Close()
	transport.replay = true
	require.ErrorContains(t, again.Exchange(t.Context()), "answers another message")
	require.Zero(t, again.Epoch())
	require.NoError(t, again.Exchange(t.Context()))
	require.Greater(t, again.Epoch(), first.Epoch())
}

// TestASyncFollowsNoRedirect: token and messages are for the writer alone.
func TestASyncFollowsNoRedirect(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	_, err := meter.OverHTTP(server.URL, "token", nil).Sync(t.Context(), []byte("message"))
	require.ErrorContains(t, err, "307")
	require.Zero(t, asked.Load())
}
