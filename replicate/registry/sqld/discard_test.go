package sqld

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestADatabaseIsRemovedWhileOthersOpenIt: SQLite makes files beside a database that it opens, also while a replica removes it.
func TestADatabaseIsRemovedWhileOthersOpenIt(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir()}}
	database := filepath.Dir(File(s.Dir))
	ended, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_ = os.WriteFile(File(s.Dir)+"-shm", nil, 0o600)
			}
		}
	}()
	for range 300 {
		require.NoError(t, os.MkdirAll(database, 0o700))
		for _, name := range []string{"data", "data-wal", "client_wal_index"} {
			require.NoError(t, os.WriteFile(filepath.Join(database, name), nil, 0o600))
		}
		require.NoError(t, s.discard())
		require.NoDirExists(t, database)
	}
	close(end)
	<-ended
}
