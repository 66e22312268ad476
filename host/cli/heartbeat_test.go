package cli

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/schema"
)

// TestAFreshClusterAndAPushLogNoErrors: the registry is empty until the first push, and a push holds its
// lock for a moment. A primary that is down is an error.
func TestAFreshClusterAndAPushLogNoErrors(t *testing.T) {
	primary := sqldtest.Primary(t)
	db := sqldtest.Open(t, primary)
	log := new(testkit.Log)
	beats := heartbeat("registry", db, time.Now, slog.New(slog.NewTextHandler(log, nil)))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- beats.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	says := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, time.Minute, 10*time.Millisecond, log.String())
	}
	says("no heartbeat yet")
	other := sqldtest.Open(t, primary)
	require.NoError(t, schema.Migrate(ctx, other, schema.Registry))
	says("heartbeats are written")

	tx, err := other.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, "UPDATE heartbeat SET beat = beat")
	require.NoError(t, err)
	time.Sleep(2 * heartbeatInterval)
	require.NoError(t, tx.Rollback())
	var before, now int64
	require.NoError(t, db.QueryRow("SELECT beat FROM heartbeat").Scan(&before))
	require.Eventually(t, func() bool {
		return db.QueryRow("SELECT beat FROM heartbeat").Scan(&now) == nil && now > before
	}, time.Minute, 10*time.Millisecond)
	require.NotContains(t, log.String(), "level=ERROR")
	require.Equal(t, 1, strings.Count(log.String(), "no heartbeat yet"))

	primary.Kill()
	says("level=ERROR")
	require.NoError(t, primary.Start())
	require.Eventually(t, func() bool { return strings.Count(log.String(), "heartbeats are written") == 2 }, time.Minute, 10*time.Millisecond)
}

func TestALockThatStaysIsAnError(t *testing.T) {
	log := new(testkit.Log)
	h := heartbeatLog{log: slog.New(slog.NewTextHandler(log, nil))}
	at := time.Unix(0, 0)
	h.note(nil, at)
	h.note(errLocked{}, at)
	h.note(errLocked{}, at.Add(lockedPatience-1))
	require.Empty(t, log.String())
	h.note(nil, at)
	h.note(errLocked{}, at.Add(lockedPatience))
	require.Empty(t, log.String(), "it was free meanwhile")
	h.note(errLocked{}, at.Add(2*lockedPatience))
	h.note(context.DeadlineExceeded, at.Add(3*lockedPatience))
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))

	// A table that was there is missed at once.
	log = new(testkit.Log)
	h = heartbeatLog{log: slog.New(slog.NewTextHandler(log, nil))}
	h.note(nil, at)
	h.note(errMissing{}, at)
	require.Contains(t, log.String(), "level=ERROR")
}

type errLocked struct{}

func (errLocked) Error() string { return "SQLite error: database is locked" }

type errMissing struct{}

func (errMissing) Error() string { return "SQLite error: no such table: heartbeat" }

// TestAHeartbeatNeverGoesBack with the writer's clock: edges would take the copy before for the newer one.
func TestAHeartbeatNeverGoesBack(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "access.db"), false)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	for _, c := range []struct{ clock, want int64 }{{1000, 1000}, {3000, 3000}, {2000, 3001}, {3001, 3002}, {9000, 9000}} {
		_, err := db.Exec(putHeartbeat, c.clock)
		require.NoError(t, err)
		var beat int64
		require.NoError(t, db.QueryRow("SELECT beat FROM heartbeat").Scan(&beat))
		require.Equal(t, c.want, beat)
	}
}
