package libsql

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestAServerThatHangsHangsNobody: each call ends, also those for which the driver takes no context, and the
// connection is not used again. The limit has room for the answers of a busy machine.
func TestAServerThatHangsHangsNobody(t *testing.T) {
	for word, call := range map[string]func(t *testing.T, db *sql.DB) error{
		"UPDATE": func(_ *testing.T, db *sql.DB) error { _, err := db.Exec("UPDATE t SET n = 1"); return err },
		"SELECT": func(_ *testing.T, db *sql.DB) error { return db.QueryRow("SELECT 1").Scan(new(int)) },
		"BEGIN":  func(_ *testing.T, db *sql.DB) error { _, err := db.Begin(); return err },
		"COMMIT": func(t *testing.T, db *sql.DB) error {
			tx, err := db.BeginTx(context.Background(), nil)
			require.NoError(t, err)
			return tx.Commit()
		},
		"ROLLBACK": func(t *testing.T, db *sql.DB) error {
			tx, err := db.BeginTx(context.Background(), nil)
			require.NoError(t, err)
			return tx.Rollback()
		},
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			var hangs atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if hangs.Load() && strings.Contains(string(body), word) {
					<-r.Context().Done()
					return
				}
				_, _ = io.WriteString(w, `{"baton":"x","base_url":null,"results":[{"type":"ok","response":{"type":"execute","result":`+
					`{"cols":[{"name":"1"}],"rows":[[{"type":"integer","value":"1"}]],"affected_row_count":0,"last_insert_rowid":null,"replication_index":null}}}]}`)
			}))
			defer server.Close()
			defer server.CloseClientConnections()
			connector, err := newConnector(server.URL, "")
			require.NoError(t, err)
			short := connector.(checkedConnector)
			short.limit = time.Second
			db := sql.OpenDB(short)
			defer db.Close()
			db.SetMaxOpenConns(1)
			hangs.Store(true)
			err = call(t, db)
			require.ErrorIs(t, err, ErrSilent)
			require.ErrorContains(t, err, "does not answer for 1s")
			hangs.Store(false)
			require.NoError(t, db.QueryRow("SELECT 1").Scan(new(int)), "over another connection")
		})
	}
}

// TestAConnectionThatIsLostIsGivenUp: before a server may be a proxy with HTTP/2.
func TestAConnectionThatIsLostIsGivenUp(t *testing.T) {
	testkit.RequireLostIsGivenUp(t, newTransport())
}

// TestAnErrorIsOfOneLine, since logs and answers are.
func TestAnErrorIsOfOneLine(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("<p>\n\tpage of another service\n", 1000), http.StatusNotFound)
	}))
	db, err := Open(server.URL, "")
	require.NoError(t, err)
	defer db.Close()
	for _, statement := range []string{"SELECT 1", "UPDATE t SET n = 1"} {
		_, err = db.Exec(statement)
		require.ErrorContains(t, err, "error code 404: <p> page of another service <p>")
		require.NotContains(t, err.Error(), "\n")
	}
	server.Close()
	require.ErrorContains(t, db.QueryRow("SELECT 1").Scan(new(int)), "connection refused")
	require.NotContains(t, db.QueryRow("SELECT 1").Scan(new(int)).Error(), "\n")
}
