package libsql_test

import (
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

func TestValuesGoThereAndBack(t *testing.T) {
	db := sqldtest.Open(t, sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t)}))
	args := []any{nil, int64(-1 << 62), "é\x00'\"<&>", []byte{0, 255, 1}, "", []byte{}, true, 7}
	got := make([]any, len(args)+1)
	into := make([]any, len(got))
	for i := range got {
		into[i] = &got[i]
	}
	require.NoError(t, db.QueryRow("SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1.5", args...).Scan(into...))
	require.Equal(t, []any{nil, int64(-1 << 62), "é\x00'\"<&>", []byte{0, 255, 1}, "", []byte{}, int64(1), int64(7), 1.5}, got)
}

func TestATransactionIsWholeOrNothing(t *testing.T) {
	server := sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t)})
	db := sqldtest.Open(t, server)
	ctx := t.Context()
	insert := func(id, n int) libsql.Statement {
		return libsql.Statement{SQL: "INSERT INTO t VALUES (?1, ?2 + ?1 - ?1)", Args: []any{id, n}}
	}
	require.NoError(t, libsql.Commit(ctx, db, []libsql.Statement{
		{SQL: "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"}, insert(1, 10), {SQL: "UPDATE t SET n = n + 1"}, insert(2, 20),
	}))
	err := libsql.Commit(ctx, db, []libsql.Statement{insert(3, 0), insert(1, 0), insert(4, 0)})
	require.ErrorIs(t, err, libsql.ErrRefused)
	require.ErrorContains(t, err, "UNIQUE")
	require.NotErrorIs(t, err, libsql.ErrSilent)
	require.Equal(t, "1 11, 2 20", rows(t, db))
	for _, wrong := range []string{"SELECT nothing(", "SELECT nothing FROM t", "SELECT nothing()", "SELECT 1 FROM nothing", "SELECT 'a", "ATTACH 'x' AS x"} {
		_, err = db.Exec(wrong)
		require.ErrorIs(t, libsql.Explain(err), libsql.ErrRefused, wrong)
	}
	_, err = db.Exec("INSERT INTO t VALUES (?1, ?2)", 5)
	require.ErrorIs(t, libsql.Explain(err), libsql.ErrRefused, "a parameter is lacking")

	server.Kill()
	err = libsql.Commit(ctx, db, []libsql.Statement{insert(3, 0)})
	require.Error(t, err)
	require.NotErrorIs(t, err, libsql.ErrRefused)
	require.NoError(t, server.Start())
	require.NoError(t, server.Await(ctx, ""))
	require.Equal(t, "1 11, 2 20", rows(t, db), "the connections go on with a server that was started again")
}

func rows(t *testing.T, db *sql.DB) (text string) {
	t.Helper()
	require.NoError(t, db.QueryRow("SELECT group_concat(id || ' ' || n, ', ') FROM t").Scan(&text))
	return text
}

func TestAnAddressThatIsNoURL(t *testing.T) {
	for _, address := range []string{"registry.db", "ftp://127.0.0.1", "http://127.0.0.1?x=1"} {
		_, err := libsql.Open(address, "")
		require.ErrorContains(t, err, "open database "+address)
		_, err = libsql.OpenRenewed(address, libsql.NewToken(""))
		require.ErrorContains(t, err, "open database "+address)
	}
}

func TestErrorsOfTheDiskAreKnown(t *testing.T) {
	for text, want := range map[string]bool{
		"failed to execute SQL: SQLite error: disk I/O error":                 true,
		"failed to execute SQL: SQLite error: database or disk is full":       true,
		"failed to execute SQL: SQLite error: UNIQUE constraint failed: t.id": false,
		"connection refused": false,
	} {
		require.Equal(t, want, libsql.OfDisk(errors.New(text)), text)
	}
}

// TestErrorsOfTheDriverAreToldApart by the texts of sqld and of the gate. Only what
// is refused is not tried again.
func TestErrorsOfTheDriverAreToldApart(t *testing.T) {
	all := []error{libsql.ErrUnauthorized, libsql.ErrForwarded, libsql.ErrRefused}
	for text, want := range map[string][]error{
		"failed to execute SQL: SQLite error: UNIQUE constraint failed: t.id":                   {libsql.ErrRefused},
		"failed to execute SQL: SQL input error: no such column: x (at offset 7)":               {libsql.ErrRefused},
		"failed to execute SQL: SQLite error: database is locked":                               nil,
		"error code 401: Unauthorized":                                                          {libsql.ErrUnauthorized},
		"error code 500: status: PermissionDenied, message: \"no\"":                             {libsql.ErrUnauthorized},
		"error code 500: status: PermissionDenied, message: \"" + libsql.OnlyReplication + "\"": {libsql.ErrUnauthorized, libsql.ErrForwarded},
		"error code 403: Forbidden":                                                             {libsql.ErrUnauthorized},
		"failed to execute SQL: Authorization forbidden: write is not allowed":                  {libsql.ErrUnauthorized},
		"connection refused": nil,
	} {
		explained := libsql.Explain(errors.New(text))
		require.ErrorContains(t, explained, text)
		for _, e := range all {
			require.Equal(t, slices.Contains(want, e), errors.Is(explained, e), "%s: %v", text, e)
		}
	}
}
