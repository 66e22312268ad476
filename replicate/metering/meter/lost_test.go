package meter_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
)

// TestATokenThatHasEndedIsCalledThat, with what to do, in place of a writer that does not answer. Each
// cause is logged once until an exchange succeeds.
func TestATokenThatHasEndedIsCalledThat(t *testing.T) {
	const refused = "the writer refuses this node's token; regedge node token, at the centre, makes another: serving on leases"
	const away = "the writer does not answer: serving on leases"
	var log testkit.Log
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	c.connect("one")
	m, err := meter.Open(meter.Config{
		State: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Writer: meter.OverHTTP("http://writer", node.Token, &http.Client{Transport: link{c, c.cut["one"]}}),
	})
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.Exchange(t.Context()))
	_, err = c.client.NewNodeToken(t.Context(), "one")
	require.NoError(t, err)
	fails := func() {
		for range 3 {
			require.Error(t, m.Exchange(t.Context()))
		}
	}
	fails()
	require.Equal(t, 1, strings.Count(log.String(), refused), log.String())
	require.NotContains(t, log.String(), away)
	require.Contains(t, log.String(), "the token is missing or unknown", "what the writer said")
	require.True(t, m.Stats().Unreachable)

	c.cut["one"].Store(true)
	fails()
	c.cut["one"].Store(false)
	fails()
	require.Equal(t, 1, strings.Count(log.String(), refused))
	require.Equal(t, 1, strings.Count(log.String(), away))
	require.NotContains(t, log.String(), node.Token)
}

// TestAWriterThatIsLostAgainIsLoggedAgain: an operator would else take the outage of today for the one of
// last week.
func TestAWriterThatIsLostAgainIsLoggedAgain(t *testing.T) {
	var log testkit.Log
	b := newBooks(t, 10)
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: b, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer m.Close()
	for outages := 1; outages <= 2; outages++ {
		b.before = func(context.Context, syncproto.Message) error { return errors.New("connection refused") }
		require.Error(t, m.Exchange(t.Context()))
		b.before = nil
		require.NoError(t, m.Exchange(t.Context()))
		require.Equal(t, outages, strings.Count(log.String(), "does not answer"))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, m.Exchange(ended))
	require.Equal(t, 2, strings.Count(log.String(), "does not answer"), "nothing was asked of it at the end")
}

// TestAWriterThatIsLostAgainAndAgainFillsNoLog, as one whose disk is full. A later outage is logged again.
func TestAWriterThatIsLostAgainAndAgainFillsNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		b := newBooks(t, 10)
		m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: b, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		defer m.Close()
		lines := func() int { return strings.Count(log.String(), "does not answer") }
		for range 20 {
			b.before = func(context.Context, syncproto.Message) error { return errors.New("connection refused") }
			require.Error(t, m.Exchange(t.Context()))
			b.before = nil
			require.NoError(t, m.Exchange(t.Context()))
		}
		require.Equal(t, 4, lines())
		time.Sleep(time.Minute)
		b.before = func(context.Context, syncproto.Message) error { return errors.New("connection refused") }
		require.Error(t, m.Exchange(t.Context()))
		require.Equal(t, 5, lines())
	})
}

// TestAnErrorOfTheWriterIsNoSilence: it was reached, and its words say more than "does not answer".
func TestAnErrorOfTheWriterIsNoSilence(t *testing.T) {
	for said, status := range map[string]int{"this node is fenced": http.StatusForbidden, "<html>": http.StatusOK} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			w.Write([]byte(said))
		}))
		defer server.Close()
		var log testkit.Log
		m, err := meter.Open(meter.Config{
			State: t.TempDir(), Writer: meter.OverHTTP(server.URL, "token", nil), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		defer m.Close()
		require.Error(t, m.Exchange(t.Context()))
		require.Contains(t, log.String(), "the writer answers with an error: serving on leases")
		require.NotContains(t, log.String(), "does not answer")
	}
}

// TestAFullDiskIsNotBlamedOnTheWriter: nothing is sent before what it reports is durable.
func TestAFullDiskIsNotBlamedOnTheWriter(t *testing.T) {
	var log testkit.Log
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := fillingDir{Dir: dir, full: &atomic.Bool{}}
	m, err := meter.Open(meter.Config{Files: disk, Writer: newBooks(t, 10), Logger: slog.New(slog.NewTextHandler(&log, nil)), WaitLimit: time.Minute})
	require.NoError(t, err)
	defer m.Close()
	granted(t, &edge{Meter: m})
	disk.full.Store(true)
	require.ErrorIs(t, m.Exchange(t.Context()), errFull)
	require.Contains(t, log.String(), "nothing is reported to the writer while the journal can't be written")
	require.NotContains(t, log.String(), "does not answer")
	require.ErrorIs(t, m.Ready(), errFull)
}

// TestExchangesTakeTurns: each changes what the meter knows of the writer.
func TestExchangesTakeTurns(t *testing.T) {
	b := newBooks(t, 10)
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: b})
	require.NoError(t, err)
	defer m.Close()
	var under, most atomic.Int64
	b.before = func(context.Context, syncproto.Message) error {
		most.Store(max(most.Load(), under.Add(1)))
		defer under.Add(-1)
		time.Sleep(50 * time.Millisecond)
		return errors.New("connection refused")
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { assert.Error(t, m.Exchange(t.Context())) })
	}
	all.Wait()
	require.EqualValues(t, 1, most.Load())
}
