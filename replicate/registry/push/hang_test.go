package push

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/registry/sqld"
)

// TestAFileIsNotLeftToAPrimaryThatHangs: it would take it long after the push has ended.
func TestAFileIsNotLeftToAPrimaryThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Dir(sqld.SeedFile(dir)), 0o700))
		require.NoError(t, os.WriteFile(sqld.SeedFile(dir), nil, 0o600))
		db := testkit.HangingDB()
		defer db.Close()
		p := &pusher{config: Config{Primary: db, PrimaryDir: sqld.Seed(dir), Now: time.Now, Pause: pause}, there: &side{db: db}}
		began := time.Now()
		require.ErrorIs(t, p.awaitSeed(t.Context()), ErrNotTaken)
		require.LessOrEqual(t, time.Since(began), takenLimit+callLimit)
		_, err := os.Stat(sqld.SeedFile(dir))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

// TestAPushSaysThatItWaitsForAnotherOne, once: that may have been stopped by Ctrl-Z. Ctrl-C ends the wait.
func TestAPushSaysThatItWaitsForAnotherOne(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var said []Progress
		other, err := lockFolder(t.Context(), dir, func(p Progress) { said = append(said, p) })
		require.NoError(t, err)
		defer other.Close()
		require.Empty(t, said)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = lockFolder(ctx, dir, func(p Progress) { said = append(said, p) })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []Progress{{Stage: Waiting}}, said)
	})
}
