package libsql_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/replicate/registry/libsql"
)

// TestABusyEdgeKeepsItsConnections: each that is closed takes a port for a minute.
func TestABusyEdgeKeepsItsConnections(t *testing.T) {
	var opened, calls atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		calls.Add(1)
		_, _ = io.WriteString(w, `{"baton":"x","base_url":null,"results":[{"type":"ok","response":{"type":"execute","result":`+
			`{"cols":[{"name":"1"}],"rows":[[{"type":"integer","value":"1"}]],"affected_row_count":0,"last_insert_rowid":null,"replication_index":null}}}]}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	db, err := libsql.Open(server.URL, "")
	require.NoError(t, err)
	defer db.Close()
	const callers = 32
	db.SetMaxIdleConns(callers)
	var busy sync.WaitGroup
	for range callers {
		busy.Go(func() {
			for range 100 {
				assert.NoError(t, db.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int)))
			}
		})
	}
	busy.Wait()
	require.Less(t, opened.Load(), calls.Load()/10)
}
