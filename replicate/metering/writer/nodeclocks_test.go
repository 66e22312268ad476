package writer

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/syncproto"
)

// TestTheClockOfMostNodesIsBelieved: when it is another than the writer's, people are told; one wrong
// node is not.
func TestTheClockOfMostNodesIsBelieved(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		nodes  []time.Duration // how far each is ahead of the right time
		writer time.Duration
		off    time.Duration
		agrees bool
		says   string
	}{
		"no node":                   {nil, hour, 0, false, ""},
		"right":                     {[]time.Duration{0, 0}, 0, 0, true, ""},
		"within 5 s":                {[]time.Duration{0}, 5 * time.Second, 5 * time.Second, true, ""},
		"the writer is ahead":       {[]time.Duration{0, 0, 0}, 720 * hour, 720 * hour, false, "720h0m0s ahead"},
		"the writer is behind":      {[]time.Duration{0}, -hour, -hour, false, "1h0m0s behind"},
		"one node of three is off":  {[]time.Duration{-hour, 0, 0}, 0, 0, true, ""},
		"two nodes of three are":    {[]time.Duration{hour, hour, 0}, 0, -hour, false, "1h0m0s behind"},
		"nobody knows of two":       {[]time.Duration{hour, 0}, 0, 0, false, ""},
		"of two that are off":       {[]time.Duration{3 * hour, hour}, 0, -hour, false, "1h0m0s behind"},
		"nor of two, one behind":    {[]time.Duration{-hour, 0}, 0, 0, false, ""},
		"of two that are behind":    {[]time.Duration{-3 * hour, -hour}, 0, hour, false, "1h0m0s ahead"},
		"a node without a time":     {[]time.Duration{-1 << 62, 0, 0}, 0, 0, true, ""},
		"all are off as the writer": {[]time.Duration{hour, hour}, hour, 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var set atomic.Int64
				log := new(testkit.Log)
				clocks := newNodeClocks(func() time.Time { return time.Now().Add(time.Duration(set.Load())) }, slog.New(slog.NewTextHandler(log, nil)))
				time.Sleep(time.Minute)
				for n, ahead := range c.nodes {
					at := time.Now().Add(ahead).UnixMilli()
					m := syncproto.Message{Sync: &syncproto.Sync{NowMillis: at, HoldMillis: int64(n-1) * 10_000}}
					if n == 0 {
						m = syncproto.Message{Hello: &syncproto.Hello{NowMillis: at}}
					}
					clocks.note(strings.Repeat("x", n), m)
				}
				set.Store(int64(c.writer)) // after the messages: no new one is needed
				time.Sleep(10 * time.Second)
				by, ok := clocks.off()
				require.Equal(t, len(c.nodes) > 0, ok)
				require.InDelta(t, c.off.Seconds(), by.Seconds(), 0.01)
				require.Equal(t, c.agrees, clocks.agrees())
				if c.says == "" {
					require.Empty(t, clocks.wrong())
				}
				require.Contains(t, clocks.wrong(), c.says)
				clocks.tell()
				clocks.tell()
				require.Equal(t, c.says != "", strings.Count(log.String(), "level=ERROR") == 1, log.String())

				metrics := prometheus.NewRegistry()
				metrics.MustRegister(clocks)
				families, err := metrics.Gather()
				require.NoError(t, err)
				require.Equal(t, ok, len(families) == 1)

				time.Sleep(clockHeard)
				_, ok = clocks.off()
				require.False(t, ok, "what was heard too long ago does not count")
				require.False(t, clocks.agrees())
				clocks.tell()
				require.Equal(t, c.says != "", strings.Contains(log.String(), "that of most nodes again"))
			})
		})
	}
}

// TestAWriterWithAnotherClockThanItsNodesSaysSo where people and monitoring look, though it serves.
func TestAWriterWithAnotherClockThanItsNodesSaysSo(t *testing.T) {
	w, client, _ := runForRoles(t)
	node, err := client.AddNode(t.Context(), "pune")
	require.NoError(t, err)
	ready := func() (int, string) {
		answer := answerTo(w, "", http.MethodGet, "/readyz", nil)
		return answer.Code, answer.Body.String()
	}
	_, asked := ready()
	require.Equal(t, "ready\n", asked)
	hello := syncproto.Message{Hello: &syncproto.Hello{NowMillis: w.now() - time.Hour.Milliseconds()}}
	answerTo(w, node.Token, http.MethodPost, SyncPath, bytes.NewReader(hello.Encode()))
	status, asked := ready()
	require.Equal(t, 200, status)
	require.Contains(t, asked, "the clock of this machine is 1h0m0s ahead of most nodes'")
	require.InDelta(t, 3600, scrapeWriter(t, w)["regedge_writer_clock_ahead_seconds"], 30)
	require.False(t, w.ClockAgrees())
	hello.Hello.NowMillis = w.now()
	answerTo(w, node.Token, http.MethodPost, SyncPath, bytes.NewReader(hello.Encode()))
	_, asked = ready()
	require.Equal(t, "ready\n", asked)
	require.True(t, w.ClockAgrees())
}

// TestEachMessageOfANodeHasItsClock: one that says Hello once, and goes on for days, is heard all the time.
func TestEachMessageOfANodeHasItsClock(t *testing.T) {
	w, client, _ := runForRoles(t)
	node, err := client.AddNode(t.Context(), "pune")
	require.NoError(t, err)
	syncAs(w, node.Token, syncproto.Message{Hello: &syncproto.Hello{NowMillis: w.now()}})
	require.True(t, w.ClockAgrees())
	syncAs(w, node.Token, syncproto.Message{Sync: &syncproto.Sync{NowMillis: w.now() + time.Hour.Milliseconds()}})
	require.False(t, w.ClockAgrees())
	_, text := readiness(w)
	require.Contains(t, text, "the clock of this machine is 1h0m0s behind most nodes'")
}
