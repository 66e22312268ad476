package push

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// ofSnapshot is a push of a snapshot to a primary that is a file, which another push filled.
func ofSnapshot(t *testing.T) *pusher {
	t.Helper()
	p, _ := onFile(t, pushed)
	p.config.Snapshots = t.TempDir()
	release, err := Snapshot(t.Context(), registryFile(t), p.config.Snapshots, nil)
	require.NoError(t, err)
	p.config.Release = release
	p.local, err = openSnapshot(t.Context(), p.config.Snapshots, release)
	require.NoError(t, err)
	t.Cleanup(func() { p.local.Close() })
	p.here = &side{db: p.local}
	return p
}

// TestAnEarlierHandOverLeavesNothingInTheNextFile: SQLite would take the pages of a log beside a file that
// was cut off into the file of another release.
func TestAnEarlierHandOverLeavesNothingInTheNextFile(t *testing.T) {
	p := ofSnapshot(t)
	path := filepath.Join(t.TempDir(), "seed.part")
	require.NoError(t, p.makeSeed(t.Context(), path))
	left, err := schema.OpenFile(path, false)
	require.NoError(t, err)
	_, err = left.Exec(`UPDATE company SET city = 'LEFT OVER'`)
	require.NoError(t, err)
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	require.NoError(t, left.Close())
	require.NoError(t, os.WriteFile(path+"-wal", log, 0o600))

	require.NoError(t, p.makeSeed(t.Context(), path))
	made, err := schema.OpenFile(path, true)
	require.NoError(t, err)
	defer made.Close()
	require.Equal(t, []string{"[{0 true}]"}, dump(t, made, `SELECT count(*) FROM company WHERE city = 'LEFT OVER'`))
}

// TestAPrimaryWithOtherContentIsNotCompleted, although it has as many records of each kind.
func TestAPrimaryWithOtherContentIsNotCompleted(t *testing.T) {
	p := ofSnapshot(t)
	primary, err := schema.OpenFile(registryFile(t), false)
	require.NoError(t, err)
	defer primary.Close()
	p.there.db, p.config.Primary = primary, primary
	_, err = primary.Exec(`UPDATE content SET hash = hash + 1 WHERE kind = 1 AND key = (SELECT min(key) FROM content WHERE kind = 1)`)
	require.NoError(t, err)
	require.ErrorIs(t, p.finish(t.Context()), ErrDiffers)
}

// TestEdgesSeeAPushBeforeItsFirstRecord: they hold the release before from then on, and look each second.
// A first push, and a file, change nothing that they serve.
func TestEdgesSeeAPushBeforeItsFirstRecord(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, schema.Migrate(t.Context(), f.client, schema.Registry))
	for _, c := range []struct {
		before state
		whole  bool
		pauses []time.Duration
	}{
		{state{current: "r-1"}, false, []time.Duration{holdPause}}, {state{}, false, nil}, {state{current: "r-1"}, true, nil},
	} {
		var pauses []time.Duration
		p := &pusher{config: f.config("r-2"), there: &side{db: f.client}, token: "own"}
		p.report.Whole = c.whole
		p.config.Pause = func(_ context.Context, d time.Duration) {
			pauses = append(pauses, d)
			require.Equal(t, []string{"[{r-2 true}]"}, dump(t, f.primary(), `SELECT release FROM pushing WHERE token = 'own'`), "it is claimed")
		}
		require.NoError(t, p.begin(t.Context(), c.before))
		require.Equal(t, c.pauses, pauses, "%+v", c)
	}
	require.Greater(t, holdPause, 2*time.Second, "two looks of an edge")
}
