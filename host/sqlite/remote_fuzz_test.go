package sqlite_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
	"regedge/replicate/registry/libsql"
)

// FuzzHranaResults lets a libSQL server answer a statement with any bytes. A result that is accepted is
// whole rows within the limits.
func FuzzHranaResults(f *testing.F) {
	const (
		before  = `{"baton":null,"base_url":null,"results":[{"type":"ok","response":{"type":"execute","result":{"cols":[{"name":"a","decltype":"TEXT"},{"name":"b"}],"rows":`
		after   = `,"affected_row_count":0,"last_insert_rowid":null,"replication_index":"1"}}},{"type":"ok","response":{"type":"close"}}]}`
		maxRows = 3
	)
	for _, rows := range []string{
		`[]`, `[[{"type":"integer","value":"1"},{"type":"text","value":"x"}]]`, `[[{"type":"null"},{"type":"blob","base64":"AP8="}]]`,
		`[[{"type":"float","value":1.5},{"type":"integer","value":"9223372036854775808"}]]`, `[[{"type":"integer","value":"1"}]]`,
		`[[{"type":"blob","base64":"!"},{"type":"never"}]]`, `[[],[],[],[]]`, `null`, `[null]`, `[[null,null,null]]`,
		`[` + strings.Repeat(`[{"type":"null"},{"type":"null"}],`, 2*maxRows) + `[{"type":"null"},{"type":"null"}]]`,
	} {
		f.Add(200, before+rows+after)
	}
	f.Add(200, `{"results":[{"type":"error","error":{"message":"no such table","code":"SQLITE_ERROR"}}]}`)
	f.Add(200, `{"baton":"x","base_url":"http://elsewhere.example","results":[]}`)
	f.Add(401, `{"error":"no"}`)
	f.Add(200, "")
	var status atomic.Int64
	var body atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte(*body.Load()))
	}))
	f.Cleanup(server.Close)
	db, err := libsql.Open(server.URL, "")
	require.NoError(f, err)
	remote := sqlite.NewRemote(db, sqlite.Config{MaxRows: maxRows})
	f.Cleanup(func() { remote.Close() })
	f.Fuzz(func(t *testing.T, code int, text string) {
		status.Store(int64(200 + uint(code)%400))
		body.Store(&text)
		var result handler.Result
		if err := remote.Query(context.Background(), "SELECT a, b FROM t WHERE c = ?1", []handler.Value{{Kind: handler.Integer, Int: 1}}, &result); err != nil {
			require.Empty(t, result.Values)
			return
		}
		require.LessOrEqual(t, result.Rows(), maxRows)
		require.Len(t, result.Values, result.Rows()*result.Columns)
	})
}
