package meter_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
)

// keyed makes a request with an Idempotency-Key, for a target.
func keyed(account int64, key, target string) charge.Request {
	r := request(account, charge.Found)
	r.IdempotencyHash, r.TargetHash = strings.Repeat(key, charge.HashLength), strings.Repeat(target, charge.HashLength)
	return r
}

// outcome is the code of a verdict, or "replayed".
func outcome(v charge.Verdict) string {
	if v.Replayed {
		return "replayed" + v.Code
	}
	return v.Code
}

func TestRetriesAtTheSameTimeAreChargedOnce(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("growth", 10)
	require.Equal(t, "", e.found(account), "the lease is there")
	var wg sync.WaitGroup
	var charged, replayed atomic.Int64
	for range 50 {
		wg.Go(func() {
			switch outcome(e.Charge(t.Context(), keyed(account, "a", "b"))) {
			case "":
				charged.Add(1)
			case "replayed":
				replayed.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, charged.Load())
	require.EqualValues(t, 49, replayed.Load())
	eventually(t, func() bool { return c.read(account).Spent == 2 }, "one credit is spent")
}

// TestIdempotencyKeysSurviveARestart fills several segments of the journal after the charge.
func TestIdempotencyKeysSurviveARestart(t *testing.T) {
	c := startCentre(t, nil)
	c.segment = 4 << 10
	e := c.edge("one")
	account := c.account("growth", 10_000)
	require.Equal(t, "", outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
	for range 300 {
		require.Equal(t, "", e.found(account))
		require.NoError(t, e.Flush())
		require.NoError(t, e.Rotate())
	}
	e.stop()
	c.run(e)
	require.Equal(t, "replayed", outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
	require.Equal(t, charge.IdempotencyKeyReused, outcome(e.Charge(t.Context(), keyed(account, "a", "c"))))
	eventually(t, func() bool { return c.read(account).Spent == 301 }, "each charge counts once")
}

// TestARetryAfterTheClockWasSetIsChargedOnce: the edge's clock is set by a day, either way, between a charge and its retry.
func TestARetryAfterTheClockWasSetIsChargedOnce(t *testing.T) {
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		c := startCentre(t, nil)
		var set, elapsed atomic.Int64
		c.now = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
		c.elapsed = func() time.Duration { return time.Duration(elapsed.Load()) }
		e := c.edge("one")
		account := c.account("growth", 10)
		require.Equal(t, "", outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
		set.Store(int64(jump))
		elapsed.Store(int64(10*time.Minute - time.Millisecond))
		require.Equal(t, "replayed", outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
		elapsed.Store(int64(10 * time.Minute))
		require.NotContains(t, outcome(e.Charge(t.Context(), keyed(account, "a", "b"))), "replayed", "its ten minutes are over")
	}
}

// TestARetryAfterTheClockWasSetAndARestart: the new run has the clock alone.
func TestARetryAfterTheClockWasSetAndARestart(t *testing.T) {
	c := startCentre(t, nil)
	var set atomic.Int64
	c.now = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
	began := time.Now()
	c.elapsed = func() time.Duration { return time.Since(began) }
	e := c.edge("one")
	account := c.account("growth", 10)
	require.Equal(t, "", outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
	set.Store(int64(24 * time.Hour))
	require.NoError(t, e.Exchange(t.Context()))
	e.stop()
	c.run(e)
	require.Equal(t, "replayed", outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
}

func TestARetryOfAChargeThatFailedToBeWritten(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "full")
	require.NoError(t, err)
	c.connect("full")
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := fillingDir{Dir: dir, full: &atomic.Bool{}}
	e := &edge{name: "full", token: node.Token}
	c.files = disk
	c.run(e)
	defer func() { e.stop() }()
	account := c.account("scale", 100)
	require.Equal(t, "", e.found(account))

	disk.full.Store(true)
	require.Equal(t, charge.MeteringUnavailable, outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
	require.Equal(t, charge.MeteringUnavailable, outcome(e.Charge(t.Context(), keyed(account, "a", "b"))), "nor is it free")
	disk.full.Store(false)
	require.Equal(t, "", outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
	require.Equal(t, "replayed", outcome(e.Charge(t.Context(), keyed(account, "a", "b"))))
	eventually(t, func() bool { return c.read(account).Spent == 2 }, "two charges count")
}

// TestARetryOverHTTP asks as a component on Spin does: the first charge is voided, then one stands.
func TestARetryOverHTTP(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	server := httptest.NewServer(e.Handler("meter-token"))
	defer server.Close()
	account := c.account("growth", 10)
	ask := func(r charge.Request) string {
		status, header := post(t, server, "meter-token", r.Target())
		v, err := charge.ParseVerdict(status, header.Get)
		require.NoError(t, err)
		return outcome(v)
	}
	first := keyed(account, "a", "b")
	require.Equal(t, "", ask(first))
	require.Equal(t, "", ask(first), "the call repeated under its id gets its verdict")
	second := keyed(account, "a", "b")
	require.Equal(t, "replayed", ask(second))
	status, _ := post(t, server, "meter-token", charge.VoidTarget(second.ID))
	require.Equal(t, http.StatusNoContent, status)
	require.Equal(t, "replayed", ask(keyed(account, "a", "b")), "the void of a retry takes nothing back")
	status, _ = post(t, server, "meter-token", charge.VoidTarget(first.ID))
	require.Equal(t, http.StatusNoContent, status)
	require.Equal(t, "", ask(keyed(account, "a", "b")), "the void of the charge does")
	require.Equal(t, charge.IdempotencyKeyReused, ask(keyed(account, "a", "c")))
	eventually(t, func() bool { return c.read(account).Spent == 1 }, "one credit is spent")
}
