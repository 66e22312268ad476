package meter_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/journal"
)

// unreported runs an edge that made charges which the writer does not have, and ends it as a kill
// does. It returns the directory as the kill left it, and the ids of the charges.
func (c *centre) unreported(e *edge, account int64, charges int) (state string, ids []string) {
	require.Equal(c.t, "", e.found(account))
	c.cutAfterReport(e, account, 1)
	for range charges {
		r := request(account, charge.Found)
		require.Equal(c.t, "", e.Charge(c.t.Context(), r).Code)
		ids = append(ids, r.ID)
		require.NoError(c.t, e.Flush())
	}
	state = c.t.TempDir()
	require.NoError(c.t, os.CopyFS(state, os.DirFS(e.state)))
	e.stop()
	return state, ids
}

// segments lists the segments of a state directory, oldest first.
func segments(t *testing.T, state string) []string {
	paths, err := filepath.Glob(filepath.Join(state, "journal-*.log"))
	require.NoError(t, err)
	return paths
}

// flip changes one bit of a file.
func flip(t *testing.T, path string, find func(content []byte) int) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	at := find(content)
	require.GreaterOrEqual(t, at, 0)
	content[at] ^= 4
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

// TestAFlippedBitLosesOneCharge flips a bit in the first of 40 charges that were not reported. The others
// are reported and paid for, what is left of the leases goes back, and the edge serves in another epoch.
func TestAFlippedBitLosesOneCharge(t *testing.T) {
	const charges, credits = 40, 1000
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", credits)
	state, ids := c.unreported(e, account, charges)
	newest := segments(t, state)[0]
	flip(t, newest, func(content []byte) int { return bytes.Index(content, []byte(ids[0])) })

	var log testkit.Log
	e.state, c.edgeLog = state, slog.New(slog.NewTextHandler(&log, nil))
	epoch := e.Epoch()
	c.run(e)
	require.True(t, e.Recovered().Lost)
	require.Contains(t, log.String(), "a segment of the journal is damaged")
	require.FileExists(t, newest+".corrupt")
	require.NoError(t, e.Check())
	require.Equal(t, charge.MeteringUnavailable, e.found(account), "its leases may be spent")
	c.cut["one"].Store(false)
	eventually(t, func() bool { return e.Epoch() > epoch && e.Ready() == nil }, "a new epoch")
	require.EqualValues(t, charges, c.read(account).Spent, "all but one, and the first")
	require.Zero(t, c.read(account).Leased)
	require.Equal(t, "", e.found(account))
	require.Equal(t, 1, e.Corrupt())
	e.stop()
	c.run(e)
	require.False(t, e.Recovered().Lost, "it is found once")
	eventually(t, func() bool { return c.read(account).Spent == charges+1 }, "and the one after")
}

// TestAFlippedBitInASnapshotLosesNothing flips a bit in the snapshot that the newest segment begins
// with. The segment before has all of it.
func TestAFlippedBitInASnapshotLosesNothing(t *testing.T) {
	const charges = 200
	c := startCentre(t, nil)
	c.segment = 1 << 10
	e := c.edge("one")
	account := c.account("scale", 1000)
	state, _ := c.unreported(e, account, charges)
	all := segments(t, state)
	require.Greater(t, len(all), 1)
	flip(t, all[len(all)-1], func([]byte) int { return 9 })

	epoch := e.Epoch()
	e.state = state
	c.run(e)
	require.Equal(t, []string{filepath.Base(all[len(all)-1])}, e.Recovered().Damaged)
	require.False(t, e.Recovered().Lost)
	require.Equal(t, "", e.found(account), "from its lease")
	c.cut["one"].Store(false)
	eventually(t, func() bool { return c.read(account).Spent == charges+2 }, "all are reported")
	require.Equal(t, epoch, e.Epoch())
}

// TestAnEdgeWithNothingButDamageBeginsAnew destroys the journal as a whole.
func TestAnEdgeWithNothingButDamageBeginsAnew(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 1000)
	state, _ := c.unreported(e, account, 5)
	for _, path := range segments(t, state) {
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x"), 5000), 0o600))
	}
	e.state = state
	c.cut["one"].Store(false)
	c.run(e)
	require.Equal(t, journal.Replayed{Damaged: e.Recovered().Damaged, Lost: true, IDsLost: true}, e.Recovered())
	eventually(t, func() bool { return e.found(account) == "" }, "it serves")
	require.EqualValues(t, 1, e.Corrupt())
}
