package meter_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
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

// transportFunc is a Transport.
type transportFunc func(ctx context.Context, message []byte) ([]byte, error)

func (f transportFunc) Sync(ctx context.Context, message []byte) ([]byte, error) {
	return f(ctx, message)
}

// TestTheLastReportPausesWhenNothingIsTaken: a writer that answers and books nothing is not asked as fast as it answers.
func TestTheLastReportPausesWhenNothingIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t, 10)
		var asked, deaf atomic.Int64
		m, err := meter.Open(meter.Config{State: t.TempDir(), LastReport: 450 * time.Millisecond, Writer: transportFunc(func(ctx context.Context, message []byte) ([]byte, error) {
			if deaf.Load() == 0 {
				return b.Sync(ctx, message)
			}
			asked.Add(1)
			sent, err := syncproto.DecodeMessage(message)
			if err != nil {
				return nil, err
			}
			reply := syncproto.Reply{Answers: sent.Number, Status: syncproto.Stranger, Generation: 1, Live: 1, NowMillis: time.Now().UnixMilli()}
			return reply.Encode(), nil
		})})
		require.NoError(t, err)
		defer m.Close()
		e := &edge{Meter: m}
		granted(t, e)
		require.Equal(t, "", e.found(bookedAccount))
		deaf.Store(1)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, m.Run(ended))
		require.Positive(t, asked.Load())
		require.LessOrEqual(t, asked.Load(), int64(20))
	})
}
