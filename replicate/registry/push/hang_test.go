package push

import (
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
