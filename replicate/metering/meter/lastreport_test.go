package meter_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestAStopRightAfterTheWritersReturnReportsAll stops an edge that could not reach the writer, as soon as it
// can: it has no session then.
func TestAStopRightAfterTheWritersReturnReportsAll(t *testing.T) {
	const charges = 40
	var log testkit.Log
	c := startCentre(t, nil)
	c.last, c.edgeLog = time.Minute, slog.New(slog.NewTextHandler(&log, nil))
	e := c.edge("one")
	account := c.account("scale", 1000)
	require.Equal(t, "", e.found(account))
	c.cutAfterReport(e, account, 1)
	c.restart() // no session outlives it
	for range charges {
		require.Equal(t, "", e.found(account))
	}
	eventually(t, func() bool { return e.Stats().Unreachable }, "it has noticed")
	go func() {
		time.Sleep(300 * time.Millisecond)
		c.cut["one"].Store(false)
	}()
	e.stop()
	require.EqualValues(t, charges+1, c.read(account).Spent)
	require.NotContains(t, log.String(), "charges were not reported")

	c.last = 50 * time.Millisecond
	c.run(e)
	require.Equal(t, "", e.found(account))
	c.cutAfterReport(e, account, charges+2)
	for range 3 {
		require.Equal(t, "", e.found(account))
	}
	e.stop()
	require.Contains(t, log.String(), "charges=3")
}
