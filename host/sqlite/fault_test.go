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
)

// TestAnIndexThatIsCutShort reads a database, in a process of its own, while the index of its WAL is
// truncated again and again. Statements may fail; the process goes on, and so do the statements.
func TestAnIndexThatIsCutShort(t *testing.T) {
	const inChild = "REGEDGE_TEST_CUT_INDEX"
	if path := os.Getenv(inChild); path != "" {
		readWhileCut(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "some.db")
	child := exec.Command(os.Args[0], "-test.run=^TestAnIndexThatIsCutShort$", "-test.v")
	child.Env = append(os.Environ(), inChild+"="+path)
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
