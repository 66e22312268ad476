package doctor

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/schema"
)

// TestAStandbyIsExamined beside a Litestream whose destination goes away, and which hangs and ends.
func TestAStandbyIsExamined(t *testing.T) {
	litestream, err := exec.LookPath(cmp.Or(os.Getenv("LITESTREAM"), "litestream"))
	if err != nil {
		testkit.MissingTool(t, "Litestream is not installed: run make tools, and set LITESTREAM to build/bin/litestream")
	}
	dir, address := t.TempDir(), testkit.FreePort(t)
	db, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE made_up (n INTEGER)`)
	require.NoError(t, err)
	config, shipped := filepath.Join(dir, "litestream.yml"), filepath.Join(dir, "shipped")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
addr: %s
validation: {interval: 200ms}
dbs:
  - path: %s
    monitor-interval: 200ms
    replica: {type: file, path: %s, sync-interval: 200ms}
`, address, filepath.Join(dir, "ledger.db"), shipped), 0o600))

	look := func(later time.Duration) Finding {
		e := exam()
		e.Timeout = 500 * time.Millisecond
		e.Now = func() time.Time { return time.Now().Add(later) }
		e.Standby(t.Context(), config)
		require.Len(t, e.Findings, 1)
		return e.Findings[0]
	}
	require.Equal(t, Wrong, look(0).Level, "it does not run")
	p := &testkit.Process{Program: litestream, Args: []string{"replicate", "-config", config}}
	t.Cleanup(p.Kill)
	require.NoError(t, p.Start())
	becomes := func(level Level, found string) {
		t.Helper()
		require.Eventually(t, func() bool {
			_, err := db.Exec(`INSERT INTO made_up VALUES (1)`)
			require.NoError(t, err)
			f := look(0)
			return f.Level == level && f.Found[:min(len(f.Found), len(found))] == found
		}, time.Minute, 100*time.Millisecond, p.Tail())
	}
	require.Eventually(t, func() bool { // before its first write, a copy of nothing is whole
		_, err := os.Stat(shipped)
		return err == nil
	}, time.Minute, 10*time.Millisecond, p.Tail())
	becomes(OK, "the copy of the ledger was found whole ")
	old := look(copyOld + time.Minute)
	require.Equal(t, Wrong, old.Level)
	require.Contains(t, old.Found, "last found whole 6m")

	require.NoError(t, os.Rename(shipped, shipped+"-away"))
	require.NoError(t, os.WriteFile(shipped, nil, 0o600))
	becomes(Wrong, "the copy of the ledger is not reached or not whole, and was last ")
	require.NoError(t, os.Remove(shipped))
	require.NoError(t, os.Rename(shipped+"-away", shipped))
	becomes(OK, "the copy of the ledger was found whole ")

	// As with a full disk, or one that became read-only: what is there can be read, and nothing be added.
	obstructed := obstruct(t, shipped)
	becomes(Wrong, "the ledger changes, and "+shipped+" does not get it")
	for _, name := range obstructed {
		require.NoError(t, os.Remove(name))
	}
	becomes(OK, "the copy of the ledger was found whole ")

	p.Kill()
	require.Contains(t, look(0).Found, "nothing listens at "+address)
	require.NoError(t, os.WriteFile(config, []byte("dbs: []\n"), 0o600))
	require.Equal(t, Soon, look(0).Level)
	require.NoError(t, os.Remove(config))
	require.Equal(t, Wrong, look(0).Level)
}

// obstruct puts directories where Litestream would write its next files in a destination.
func obstruct(t *testing.T, destination string) (names []string) {
	there, err := transactionsIn(destination)
	require.NoError(t, err)
	for n := there.last; n < there.last+1000; n++ {
		name := filepath.Join(destination, "ltx", "0", fmt.Sprintf("%016x-%016x.ltx.tmp", n, n))
		if os.Mkdir(name, 0o700) == nil {
			names = append(names, name)
		}
	}
	return names
}

// TestACopyWithoutABeginningIsFound, as in the directory below a disk that is not mounted any more.
func TestACopyWithoutABeginningIsFound(t *testing.T) {
	destination := t.TempDir()
	level := filepath.Join(destination, "ltx", "0")
	require.NoError(t, os.MkdirAll(level, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(level, "0000000000000002-0000000000001000.ltx"), nil, 0o600))
	e := exam()
	require.False(t, e.arrives(t.Context(), "standby", destination, 0x1000))
	require.Equal(t, Wrong, e.Findings[0].Level)
	require.Contains(t, e.Findings[0].Found, "has no beginning of the ledger")
	snapshots := filepath.Join(destination, "ltx", "9")
	require.NoError(t, os.MkdirAll(snapshots, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(snapshots, "0000000000000001-0000000000000001.ltx"), nil, 0o600))
	require.True(t, exam().arrives(t.Context(), "standby", destination, 0x1000))
}

// TestWhatLitestreamDoesNotSayYetIsNoSuccess, nor is a disk that is full.
func TestWhatLitestreamDoesNotSayYetIsNoSuccess(t *testing.T) {
	const whole = "litestream_last_validation_success{db=\"/l.db\",level=\"0\"} 1\n"
	const checked = "litestream_validation_checks_total{db=\"/l.db\",level=\"0\",result=\"success\"} 2\n"
	at := fmt.Sprintf("litestream_last_validation_success_timestamp_seconds{db=\"/l.db\",level=\"0\"} %d\n", exam().Now().Unix()-30)
	older := fmt.Sprintf("litestream_last_validation_success_timestamp_seconds{db=\"/l.db\",level=\"1\"} %d\n", exam().Now().Unix()-600)
	for metrics, want := range map[string]Finding{
		"":                           {Level: Soon, Found: "does not say whether"},
		whole:                        {Level: Soon, Found: "has not read the copy of the ledger yet"},
		whole + checked + at:         {Level: OK, Found: "whole 30s ago"},
		whole + checked + at + older: {Level: Wrong, Found: "not read any more: it was last found whole 10m0s ago"},
		whole + checked + at + "litestream_last_validation_success{db=\"/l.db\",level=\"1\"} 0\n":                                                 {Level: Wrong, Found: "was last 30s ago"},
		whole + checked + at + "litestream_disk_full{db=\"/l.db\"} 1\n":                                                                           {Level: Wrong, Found: "own disk is full"},
		"litestream_last_validation_success{level=\"0\"} 0\n" + checked:                                                                           {Level: Wrong, Found: "was not since Litestream started"},
		"litestream_last_validation_success{level=\"0\"} 0\n" + checked + "litestream_last_validation_success_timestamp_seconds{level=\"0\"} 0\n": {Level: Wrong, Found: "was not since Litestream started"},
	} {
		e := exam()
		e.shipped("standby", readShipping([]byte(metrics)))
		require.Equal(t, want.Level, e.Findings[0].Level, metrics)
		require.Contains(t, e.Findings[0].Found, want.Found)
	}
	for backup, level := range map[bool]Level{true: OK, false: Soon} {
		e := exam()
		e.NoStandby(backup)
		require.Equal(t, level, e.Findings[0].Level)
	}
}
