package devdata_test

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/devdata"
	"regedge/host/service"
	"regedge/schema"
)

// TestAnInterruptedFirstStartIsResumed: the next start imports the sample, and those after it do not.
func TestAnInterruptedFirstStartIsResumed(t *testing.T) {
	dir := t.TempDir()
	start := func(ctx context.Context) (sampled bool, err error) {
		var closers service.Closers
		data, err := devdata.Open(ctx, dir, "", time.Now, io.Discard, &closers)
		require.NoError(t, closers.Close())
		return err == nil && data.Sampled, err
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := start(interrupted)
	require.ErrorIs(t, err, context.Canceled)
	var made [2]int
	for i := range made {
		sampled, err := start(t.Context())
		require.NoError(t, err)
		require.True(t, sampled)
		db, err := schema.OpenReadOnly(filepath.Join(dir, "registry.db"))
		require.NoError(t, err)
		require.NoError(t, db.QueryRow("SELECT count(*) FROM release").Scan(&made[i]))
		require.NoError(t, db.Close())
	}
	require.Positive(t, made[0])
	require.Equal(t, made[0], made[1])
}
