package writer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// scrapeWriter returns the samples of /metrics by name and labels.
func scrapeWriter(t *testing.T, w *Writer) map[string]float64 {
	t.Helper()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+firstOperator)
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, r)
	require.Equal(t, http.StatusOK, answer.Code)
	samples := map[string]float64{}
	for line := range strings.Lines(answer.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			number, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err, line)
			samples[name] = number
		}
	}
	return samples
}

// TestABackupIsAsOldAsTheWritersClockSays, as every other age.
func TestABackupIsAsOldAsTheWritersClockSays(t *testing.T) {
	before, clock := openUnrun(t)
	config := before.config
	config.TakeOver, config.Backup = true, filepath.Join(t.TempDir(), "backup.db")
	require.NoError(t, os.WriteFile(config.Backup, nil, 0o600))
	w, err := Open(t.Context(), config)
	require.NoError(t, err)
	defer w.Close()
	clock.pass(1000 * time.Hour)
	require.Greater(t, scrapeWriter(t, w)["regedge_writer_backup_age_seconds"], 999*time.Hour.Seconds())
}

// TestABackupThatMetAFullDiskIsNone, however new it is: the alarm for an old one fires.
func TestABackupThatMetAFullDiskIsNone(t *testing.T) {
	before, _ := openUnrun(t)
	config := before.config
	config.TakeOver, config.Backup = true, filepath.Join(t.TempDir(), "backup.db")
	w, err := Open(t.Context(), config)
	require.NoError(t, err)
	defer w.Close()
	age := func() float64 { return scrapeWriter(t, w)["regedge_writer_backup_age_seconds"] }
	_, err = config.Ledger.Exec("VACUUM INTO ?", config.Backup)
	require.NoError(t, err)
	require.Less(t, age(), 1e9)
	for _, size := range []int64{4096, 0} {
		require.NoError(t, os.Truncate(config.Backup, size))
		require.Greater(t, age(), 1e18, "%d bytes", size)
	}
}

// TestABackupOfATimeToComeIsNone: it was written by a clock that was ahead, and nobody would hear of the next ones that fail.
func TestABackupOfATimeToComeIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backup.db")
	db, err := schema.OpenFile(file)
	require.NoError(t, err)
	require.NoError(t, errors.Join(schema.Migrate(t.Context(), db, schema.Ledger), db.Close()))
	now := time.Now()
	for ahead, old := range map[time.Duration]bool{0: false, time.Minute: false, time.Minute + time.Second: true, 8760 * time.Hour: true} {
		require.NoError(t, os.Chtimes(file, now.Add(ahead), now.Add(ahead)))
		require.Equal(t, old, backupAge(file, now) > 93_600, ahead)
	}
}

// TestTheRoomForABackupIsThatOfItsOwnDisk, and unknown while its folder is not there.
func TestTheRoomForABackupIsThatOfItsOwnDisk(t *testing.T) {
	before, _ := openUnrun(t)
	config := before.config
	dir := filepath.Join(t.TempDir(), "mounted later")
	config.TakeOver, config.Backup = true, filepath.Join(dir, "backup.db")
	w, err := Open(t.Context(), config)
	require.NoError(t, err)
	defer w.Close()
	require.Contains(t, scrapeWriter(t, w), `regedge_disk_free_bytes{directory="ledger"}`)
	require.NotContains(t, scrapeWriter(t, w), `regedge_disk_free_bytes{directory="backup"}`)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.Contains(t, scrapeWriter(t, w), `regedge_disk_free_bytes{directory="backup"}`)
}

func TestTheWriterShowsItsState(t *testing.T) {
	dir := t.TempDir()
	config := Config{OperatorToken: firstOperator, Metrics: prometheus.NewRegistry(), Backup: filepath.Join(dir, "backup.db")}
	config.Metrics.MustRegister(collectors.NewGoCollector())
	var err error
	config.Ledger, err = schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(t, err)
	defer config.Ledger.Close()
	config.Access = OpenAccess(t, dir)
	w, err := Open(t.Context(), config)
	require.NoError(t, err)
	require.Greater(t, scrapeWriter(t, w)["go_goroutines"], 0.0, "the process's own metrics")
	require.Greater(t, scrapeWriter(t, w)["regedge_writer_backup_age_seconds"], 1e18, "there is no backup")

	// Nothing runs yet: what is asked waits, and the loop stands still.
	w.busySince.Store(new(time.Now().Add(-time.Minute)))
	added := make(chan error, 1)
	go func() {
		_, err := clientOf(w, firstOperator).AddNode(t.Context(), "edge-1")
		added <- err
	}()
	require.Eventually(t, func() bool { return scrapeWriter(t, w)["regedge_writer_queued"] == 1 }, time.Minute, time.Millisecond)
	require.GreaterOrEqual(t, scrapeWriter(t, w)["regedge_writer_loop_seconds"], 60.0)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	require.NoError(t, <-added)
	_, err = clientOf(w, firstOperator).AddNode(t.Context(), "edge-2")
	require.NoError(t, err)
	_, err = clientOf(w, firstOperator).RetireNode(t.Context(), "edge-2", false)
	require.NoError(t, err)
	_, err = config.Ledger.Exec(`VACUUM INTO ?`, config.Backup)
	require.NoError(t, err)
	for name, life := range map[string]time.Duration{"renew": 1000 * time.Hour, "guest": time.Hour, "gone": time.Hour} {
		_, err = clientOf(w, firstOperator).AddToken(t.Context(), name, RoleRead, life)
		require.NoError(t, err)
	}
	_, err = clientOf(w, firstOperator).EndToken(t.Context(), "gone")
	require.NoError(t, err)
	got := scrapeWriter(t, w)
	require.InDelta(t, 3_600_000, got[`regedge_writer_token_ends_seconds{token="renew"}`], 3600)
	require.InDelta(t, 3_600_000, got[`regedge_writer_token_life_seconds{token="renew"}`], 0)
	require.Contains(t, got, `regedge_writer_token_ends_seconds{token="guest"}`)
	require.NotContains(t, got, `regedge_writer_token_ends_seconds{token="gone"}`)
	require.Less(t, got["regedge_writer_loop_seconds"], 60.0)
	require.Zero(t, got["regedge_writer_queued"])
	require.Zero(t, got["regedge_writer_restoring"])
	require.Zero(t, got["regedge_writer_fenced"])
	require.Equal(t, 1.0, got[`regedge_writer_nodes{state="in_service"}`])
	require.Equal(t, 1.0, got[`regedge_writer_nodes{state="retired"}`])
	require.GreaterOrEqual(t, got[`regedge_writer_ledger_bytes{file="ledger"}`], 4096.0)
	require.Greater(t, got[`regedge_writer_ledger_bytes{file="wal"}`], 4096.0)
	require.GreaterOrEqual(t, got["regedge_writer_commit_seconds_count"], 3.0)
	require.Equal(t, 1.0, got[`regedge_writer_request_seconds_count{code="200",method="post",route="/v1/nodes/:name/retire"}`])
	require.Positive(t, got[`regedge_writer_request_seconds_sum{code="200",method="post",route="/v1/nodes/:name/retire"}`])
	require.Less(t, got["regedge_writer_backup_age_seconds"], 3600.0)
	cancel()
	require.NoError(t, <-done)

	_, err = config.Ledger.Exec(`UPDATE node SET epoch = 1 WHERE name = 'edge-1'`) // it has been in contact
	require.NoError(t, err)
	config.Restored, config.Metrics = true, nil
	restored, err := Open(t.Context(), config)
	require.NoError(t, err)
	got = scrapeWriter(t, restored)
	require.Equal(t, 1.0, got["regedge_writer_restoring"])
	_, text := readiness(restored)
	require.Contains(t, text, "it grants no leases until every node has reported or is retired")
	wal, err := os.Stat(filepath.Join(dir, "ledger.db-wal"))
	require.NoError(t, err)
	require.EqualValues(t, wal.Size(), got[`regedge_writer_ledger_bytes{file="wal"}`])
	require.Equal(t, 1.0, got[`regedge_writer_nodes{state="awaited"}`])
	_, err = config.Ledger.Exec(`UPDATE node SET declared = 1 WHERE name = 'edge-1'`)
	require.NoError(t, err)
	require.Zero(t, scrapeWriter(t, restored)[`regedge_writer_nodes{state="awaited"}`])

	require.NoError(t, config.Ledger.Close())
	got = scrapeWriter(t, restored)
	require.NotContains(t, got, "regedge_writer_restoring", "of a ledger that can't be read nothing is said")
	require.NotContains(t, got, `regedge_writer_nodes{state="in_service"}`)
}
