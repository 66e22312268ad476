package sqlite_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
	"regedge/schema"
)

// TestAnIndexThatIsCutShort reads a database, in a process of its own, while the index of its WAL is
// truncated again and again. Statements may fail; the process goes on, and so do the statements.
func TestAnIndexThatIsCutShort(t *testing.T) {
	inChild(t, func(path string) { readWhileCut(t, path) })
}

// TestAnIndexThatIsCutShortUnderAReplica does the same to what an edge looks at each second: the newest
// heartbeat, and, while a push is under way, what all connections hold.
func TestAnIndexThatIsCutShortUnderAReplica(t *testing.T) {
	inChild(t, func(path string) { refreshWhileCut(t, path) })
}

// inChild runs a test in a process of its own, which may end by a signal, with a path for its database.
func inChild(t *testing.T, run func(path string)) {
	const variable = "REGEDGE_TEST_CUT_INDEX"
	if path := os.Getenv(variable); path != "" {
		run(path)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), variable+"="+filepath.Join(t.TempDir(), "some.db"))
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out[:min(len(out), 2000)])
	require.Contains(t, string(out), "PASS")
}

func readWhileCut(t *testing.T, path string) {
	owner, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, owner.Exec("PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0;"+people)) // it stays open, and is not used
	s, err := sqlite.Open(sqlite.Config{Path: path, Connections: 2, ReadTx: time.Millisecond, CacheResults: true})
	require.NoError(t, err)
	defer s.Close()
	var got handler.Result
	failed := 0
	for cut := range 20 {
		require.NoError(t, os.Truncate(path+"-shm", 0))
		time.Sleep(2 * time.Millisecond) // the timer ends the transaction
		for deadline := time.Now().Add(time.Minute); ; {
			statement := fmt.Sprintf("SELECT name FROM person WHERE id = 1 AND %d = %d", cut, cut)
			if err = s.Query(t.Context(), statement, nil, &got); err == nil || time.Now().After(deadline) {
				break
			}
			failed++
		}
		require.NoError(t, err)
		require.Equal(t, "Asha", got.Values[0].Text)
	}
	require.Positive(t, failed, "else the index was not in use")
}

func refreshWhileCut(t *testing.T, path string) {
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close() // it stays open, and is used for the push only
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	_, err = db.Exec("INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('one', 1, 0, 0, 0, 0, 0)")
	require.NoError(t, err)
	r, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Registry, File: path, Connections: 2, ReadTx: time.Millisecond, Now: time.Now})
	require.NoError(t, err)
	defer r.Close()
	failed := 0
	refresh := func() {
		for deadline := time.Now().Add(time.Minute); ; {
			if err = r.Refresh(); err == nil || time.Now().After(deadline) {
				break
			}
			failed++
		}
		require.NoError(t, err)
	}
	cut := func() {
		require.NoError(t, os.Truncate(path+"-shm", 0))
		time.Sleep(2 * time.Millisecond) // the timer ends the transactions
	}
	for range 10 {
		cut()
		refresh()
		var got handler.Result
		require.NoError(t, r.Query(t.Context(), "SELECT id FROM release", nil, &got))
	}
	require.Positive(t, failed, "else the index was not in use")
	_, err = db.Exec("INSERT INTO pushing (id, release, back, token, claimed, batch) VALUES (1, 'two', 0, 't', 't', 0)")
	require.NoError(t, err)
	for range 10 {
		cut()
		refresh()
	}
}
