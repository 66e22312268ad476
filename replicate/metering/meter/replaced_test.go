package meter_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAJournalThatIsTakenAwayIsNoticed deletes, cuts and replaces the file of a running journal.
// All that was charged goes into a new one, and a kill after that loses nothing.
func TestAJournalThatIsTakenAwayIsNoticed(t *testing.T) {
	const charges = 20
	for name, test := range map[string]struct {
		take    func(path string) error
		corrupt int // files that are set aside
	}{
		"deleted": {os.Remove, 0},
		"cut":     {func(path string) error { return os.Truncate(path, 100) }, 1},
		"emptied": {func(path string) error { return os.Truncate(path, 0) }, 1},
		"replaced": {func(path string) error {
			if err := os.WriteFile(path+"~", make([]byte, 1<<20), 0o600); err != nil {
				return err
			}
			return os.Rename(path+"~", path)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := startCentre(t, nil)
			e := c.edge("one")
			account := c.account("scale", 1000)
			require.Equal(t, "", e.found(account))
			c.cutAfterReport(e, account, 1)
			for range charges {
				require.Equal(t, "", e.found(account))
			}
			taken := segments(t, e.state)[0]
			require.NoError(t, test.take(taken))
			// Within a second, with slack for a busy machine.
			require.Eventually(t, func() bool {
				now := segments(t, e.state)
				return e.Stats().Replaced == 1 && len(now) == 1 && now[0] != taken && e.Ready() == nil
			}, 5*time.Second, 10*time.Millisecond)
			require.Equal(t, test.corrupt, e.Corrupt())
			require.Equal(t, "", e.found(account))

			state := t.TempDir()
			require.NoError(t, os.CopyFS(state, os.DirFS(e.state)))
			e.stop()
			e.state = state
			c.cut["one"].Store(false)
			c.run(e)
			eventually(t, func() bool { return c.read(account).Spent == charges+2 }, "all are reported")
		})
	}
}
