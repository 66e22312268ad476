package store

import (
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
)

func TestAStatementIsCompiledOnce(t *testing.T) {
	path := t.TempDir() + "/some.db"
	writer, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, writer.Exec("CREATE TABLE t (v); INSERT INTO t VALUES (1), (2), (3)"))
	require.NoError(t, writer.Close())
	s, err := Open(Config{Path: path, Connections: 1})
	require.NoError(t, err)
	defer s.Close()
	const limited = "SELECT v FROM t LIMIT ?1"
	for n := range int64(4) {
		var dst handler.Result
		require.NoError(t, s.Query(t.Context(), limited, []handler.Value{{Kind: handler.Integer, Int: n}}, &dst))
		require.EqualValues(t, n, dst.Rows())
	}
	statement := s.idle[0].statements[limited]
	require.Zero(t, statement.Status(sqlite3.STMTSTATUS_REPREPARE, false))
}
