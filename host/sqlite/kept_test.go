package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
)

func TestWhatAConnectionRemembersIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	writer, err := sqlite3.Open(path)
	require.NoError(t, err)
	defer writer.Close()
	require.NoError(t, writer.Exec("PRAGMA journal_mode=wal; CREATE TABLE t (a)"))
	s, err := Open(Config{Path: path, Connections: 1, Hold: time.Hour, Remember: true})
	require.NoError(t, err)
	defer s.Close()
	ask := func(statement, text string) map[string]remembered {
		var result handler.Result
		require.NoError(t, s.Query(t.Context(), statement, []handler.Value{{Kind: handler.Text, Text: text}}, &result))
		return s.places[0].idle.memory.results
	}
	require.Len(t, ask("SELECT ?1", "a"), 1)
	require.Len(t, ask("SELECT ?1", "a"), 1, "known")
	require.Len(t, ask("SELECT ?1 WHERE false", "b"), 1, "no rows")
	require.Len(t, ask("SELECT ?1 || zeroblob(1000)", "c"), 1, "too long")
	for i := range 2 * maxRemembered {
		require.LessOrEqual(t, len(ask("SELECT ?1", fmt.Sprint(i))), maxRemembered)
	}
	require.Len(t, ask("SELECT ?1", "a"), maxRemembered)
}
