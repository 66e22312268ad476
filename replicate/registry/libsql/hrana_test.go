package libsql_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/freeport"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// start runs a server and returns a client of it.
func start(t *testing.T) (*libsql.Client, *sqld.Server) {
	t.Helper()
	server := sqldtest.Start(t, sqld.Config{HTTP: freeport.ForTest(t)})
	client := libsql.New(server.URL(), "")
	t.Cleanup(func() { client.Close() })
	return client, server
}

func TestValuesGoThereAndBack(t *testing.T) {
	client, _ := start(t)
	args := []any{nil, int64(-1 << 62), "é\x00'\"<&>", []byte{0, 255, 1}, "", []byte{}, true, 7}
	result, err := client.Query(t.Context(), "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1.5", args...)
	require.NoError(t, err)
	require.Equal(t, [][]libsql.Value{{
		{}, {Kind: libsql.Integer, Int: -1 << 62}, {Kind: libsql.Text, Text: "é\x00'\"<&>"},
		{Kind: libsql.Blob, Text: "\x00\xff\x01"}, {Kind: libsql.Text}, {Kind: libsql.Blob},
		{Kind: libsql.Integer, Int: 1}, {Kind: libsql.Integer, Int: 7}, {Kind: libsql.Float, Float: 1.5},
	}}, result.Rows)
	_, err = client.Query(t.Context(), "SELECT ?1", struct{}{})
	require.ErrorContains(t, err, "parameter 1")
	sent, received := client.Bytes()
	require.Positive(t, sent)
	require.Positive(t, received)
}

func TestATransactionIsWholeOrNothing(t *testing.T) {
	client, server := start(t)
	ctx := t.Context()
	insert := func(id any) libsql.Statement {
		return libsql.Statement{SQL: "INSERT INTO t VALUES (?1)", Args: []any{id}}
	}
	require.NoError(t, client.Commit(ctx, []libsql.Statement{{SQL: "CREATE TABLE t (id INTEGER PRIMARY KEY)"}, insert(1), insert(2)}))
	var refused *libsql.Error
	require.ErrorAs(t, client.Commit(ctx, []libsql.Statement{insert(3), insert(1), insert(4)}), &refused)
	require.Contains(t, refused.Error(), "UNIQUE")
	count := func() int64 {
		result, err := client.Query(ctx, "SELECT count(*) FROM t")
		require.NoError(t, err)
		return result.Int(0, 0)
	}
	require.EqualValues(t, 2, count())
	_, err := client.Query(ctx, "SELECT nothing")
	require.ErrorAs(t, err, &refused)

	server.Kill()
	require.Error(t, client.Commit(ctx, []libsql.Statement{insert(3)}))
	require.NoError(t, server.Start())
	require.NoError(t, server.Await(ctx, ""))
	require.EqualValues(t, 2, count(), "the client goes on with a server that came back")
}

func FuzzAValueIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{
		`{"type":"null"}`, `{"type":"integer","value":"-5"}`, `{"type":"text","value":"x"}`,
		`{"type":"blob","base64":"AP8"}`, `{"type":"blob","base64":"AP8="}`, `{"type":"float","value":1.5}`, `{"type":"x"}`, `[]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v libsql.Value
		if json.Unmarshal([]byte(text), &v) == nil {
			require.LessOrEqual(t, v.Kind, libsql.Blob)
		}
	})
}
