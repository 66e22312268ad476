package libsql_test

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

	"regedge/replicate/registry/libsql"
)

// TestAnswersWithoutResultsAreErrors: the driver looks at the first result of each.
func TestAnswersWithoutResultsAreErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	db, err := libsql.Open(server.URL, "")
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	require.ErrorIs(t, err, libsql.ErrAnswer)
	_, err = db.QueryContext(t.Context(), "SELECT 1")
	require.ErrorIs(t, err, libsql.ErrAnswer)
	require.ErrorIs(t, libsql.Commit(t.Context(), db, []libsql.Statement{{SQL: "INSERT INTO t VALUES (1)"}}), libsql.ErrAnswer)
}

func TestARowWithoutItsValuesIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"results":[{"type":"ok","response":{"type":"execute","result":`+
			`{"cols":[{"name":"a"},{"name":"b"}],"rows":[[{"type":"integer","value":"1"}]]}}}]}`)
	}))
	defer server.Close()
	db, err := libsql.Open(server.URL, "")
	require.NoError(t, err)
	defer db.Close()
	require.ErrorIs(t, db.QueryRowContext(t.Context(), "SELECT a, b FROM t").Scan(new(int), new(int)), libsql.ErrAnswer)
}

// TestAnAnswerLeadsNoConnectionAwayForGood: the driver goes on at the address that an answer names, which is wrong when
// another program had the port for a moment.
func TestAnAnswerLeadsNoConnectionAwayForGood(t *testing.T) {
	const one = `{"type":"ok","response":{"type":"execute","result":{"cols":[{"name":"1"}],"rows":[[{"type":"integer","value":"1"}]]}}}`
	for name, results := range map[string]string{"without results": "[]", "with results": "[" + one + "]"} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) == 1 {
					_, _ = io.WriteString(w, `{"baton":"x","base_url":"http://127.0.0.1:1","results":`+results+`}`)
					return
				}
				_, _ = io.WriteString(w, `{"results":[`+one+`]}`)
			}))
			defer server.Close()
			db, err := libsql.Open(server.URL, "")
			require.NoError(t, err)
			defer db.Close()
			db.SetMaxOpenConns(1)
			var got int
			for range 2 {
				_ = db.QueryRowContext(t.Context(), "SELECT 1").Scan(&got)
			}
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT 1").Scan(&got))
		})
	}
}

// TestThePageOfAnotherServiceIsNamed: a network's sign-in page answers whatever it is asked.
func TestThePageOfAnotherServiceIsNamed(t *testing.T) {
	for _, page := range []string{"<html>Please sign in</html>", "[]", "", "{"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, page)
		}))
		db, err := libsql.Open(server.URL, "")
		require.NoError(t, err)
		_, err = db.QueryContext(t.Context(), "SELECT 1")
		require.ErrorIs(t, err, libsql.ErrAnswer, page)
		_, err = db.BeginTx(t.Context(), nil)
		require.ErrorIs(t, err, libsql.ErrAnswer, page)
		require.NoError(t, db.Close())
		server.Close()
	}
}

// TestAnAnswerWithoutAnEndIsGivenUp, since the driver keeps all of it in memory.
func TestAnAnswerWithoutAnEndIsGivenUp(t *testing.T) {
	var sent atomic.Int64
	var status atomic.Int64
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		for block := make([]byte, 1<<20); sent.Load() < 1<<30; sent.Add(int64(len(block))) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	db, err := libsql.Open(server.URL, "")
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "SELECT 1")
	require.ErrorIs(t, err, libsql.ErrAnswer)
	require.Less(t, sent.Load(), int64(1<<28))

	status.Store(http.StatusBadGateway)
	_, err = db.ExecContext(t.Context(), "SELECT 1")
	require.ErrorContains(t, err, "error code 502")
	require.Less(t, len(err.Error()), 8<<10, "it gets into the log")
	require.Greater(t, len(err.Error()), 2<<10, "its beginning says why")
}

// TestAReplicaThatCountsAnewIsReadAgain: the server was at 100 and begins anew. Like sqld, it lets whoever asks
// for more than it has wait.
func TestAReplicaThatCountsAnewIsReadAgain(t *testing.T) {
	var waits atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if waits.Load() && strings.Contains(string(body), "replication_index") {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"baton":"x","base_url":null,"results":[{"type":"ok","response":{"type":"execute","result":`+
			`{"cols":[{"name":"1"}],"rows":[[{"type":"integer","value":"1"}]],"affected_row_count":0,"last_insert_rowid":null,"replication_index":"100"}}},`+
			`{"type":"ok","response":{"type":"close"}}]}`)
	}))
	defer server.Close()
	db, err := libsql.Open(server.URL, "")
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	ask := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		var one int
		return db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	}
	require.NoError(t, ask(time.Minute))
	waits.Store(true)
	require.ErrorIs(t, ask(100*time.Millisecond), context.DeadlineExceeded)
	require.NoError(t, ask(time.Minute), "a new connection asks for nothing that was")
}

func TestANewTokenIsOfNewConnections(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	token := libsql.NewToken("first")
	db, err := libsql.OpenRenewed(server.URL, token)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxIdleConns(0)
	_, _ = db.ExecContext(t.Context(), "SELECT 1")
	token.Set("second")
	seen = nil
	_, _ = db.ExecContext(t.Context(), "SELECT 1")
	require.Contains(t, seen, "Bearer second")
	require.NotContains(t, seen, "Bearer first")
	require.NotNil(t, db.Driver())
}

// TestAConnectionWithATokenThatWasReplacedIsNotUsedAgain: an edge asks each second, so that its connections stay, and each would
// be refused once the token before has ended.
func TestAConnectionWithATokenThatWasReplacedIsNotUsedAgain(t *testing.T) {
	var good atomic.Value
	good.Store("Bearer first")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != good.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"baton":"x","results":[{"type":"ok","response":{"type":"execute","result":{"cols":[{"name":"1"}],"rows":[[{"type":"integer","value":"1"}]]}}}]}`)
	}))
	defer server.Close()
	token := libsql.NewToken("first")
	db, err := libsql.OpenRenewed(server.URL, token)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxIdleConns(8)
	ask := func() error { return db.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int)) }
	var open []*sql.Conn
	for range 8 {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		open = append(open, conn)
	}
	for _, conn := range open {
		require.NoError(t, conn.Close())
	}
	require.NoError(t, ask())
	token.Set("second")
	good.Store("Bearer second")
	require.NoError(t, ask())
	require.NoError(t, ask())
}
