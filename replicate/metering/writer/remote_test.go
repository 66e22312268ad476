package writer_test

import (
	"context"
	"database/sql"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// server is a libSQL server that runs until the test ends.
func server(t *testing.T) *sql.DB {
	return sqldtest.Open(t, sqldtest.Primary(t))
}

// TestALedgerOnAServer runs a writer and a meter on libSQL servers.
func TestALedgerOnAServer(t *testing.T) {
	ledger, access := server(t), server(t)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: token})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- w.Run(ctx) }()
	client := newClient(w, token)

	a, err := client.AddAccount(t.Context(), "made-up", "", "scale")
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 10})
	require.NoError(t, err)
	key, err := client.AddKey(t.Context(), a.ID, "key")
	require.NoError(t, err)
	projected(t, w)
	require.Equal(t, 1, count(t, access, `SELECT count(*) FROM api_key WHERE id = ?`, key.ID))
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)

	m, err := meter.Open(meter.Config{
		State: t.TempDir(), WaitLimit: 10 * time.Second,
		Writer: meter.OverHTTP("http://writer", node.Token, &http.Client{Transport: writer.InProcess(w.Handler())}),
	})
	require.NoError(t, err)
	go func() { done <- m.Run(ctx) }()
	for i := range 3 {
		v := m.Charge(t.Context(), charge.Request{
			ID: "request-" + string(rune('a'+i)), Account: a.ID, Key: key.ID, PerMinute: 100,
			Endpoint: charge.Companies, Outcome: charge.Found,
		})
		require.Equal(t, "", v.Code)
		require.EqualValues(t, 9-i, v.CreditsRemaining)
	}
	require.Eventually(t, func() bool {
		a, err = client.Account(t.Context(), a.ID)
		return err == nil && a.Spent == 3
	}, time.Minute, 50*time.Millisecond)
	rows, err := client.Usage(t.Context(), writer.UsageQuery{Account: a.ID})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	_, err = client.RetireNode(t.Context(), "one", false)
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.NoError(t, m.Close())
}

// TestRefusalsOfContent: a server and a file refuse what a table can't hold, and that is told from a
// mistake in a statement.
func TestRefusalsOfContent(t *testing.T) {
	file, _ := openDatabases(t, t.TempDir())
	for name, db := range map[string]*sql.DB{"file": file, "server": server(t)} {
		_, err := db.Exec(`CREATE TABLE held (id INTEGER PRIMARY KEY, n INTEGER CHECK (n >= 0)) STRICT`)
		require.NoError(t, err)
		for _, values := range []string{"1, -1", "1, 9223372036854775807 + 1", "9223372036854775807 + 1, 1"} {
			_, err = db.Exec(`INSERT INTO held VALUES (` + values + `)`)
			require.True(t, schema.Refused(err), "%s: %v", name, err)
		}
		_, err = db.Exec(`INSERT INTO missing VALUES (1)`)
		require.Error(t, err)
		require.False(t, schema.Refused(err), "%s: %v", name, err)
	}
	require.False(t, schema.Refused(nil))
}

// TestUsageIsReadOfAServer, which refuses to answer with all rows at once. Many rows are of one hour.
func TestUsageIsReadOfAServer(t *testing.T) {
	ledger := server(t)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: server(t), OperatorToken: token})
	require.NoError(t, err)
	client := newClient(w, token)
	stored := 0
	for _, rows := range []int{0, writer.UsageAtOnce - 1, writer.UsageAtOnce, writer.UsageAtOnce + 1, 60_000} {
		_, err = ledger.Exec(`WITH RECURSIVE n (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
			INSERT INTO usage (hour, account, key, endpoint, outcome, count) SELECT i / 9000, 1 + i / 3 % 3000, i, i % 5 + 1, i % 3 + 1, 1 FROM n WHERE i < ?2`, stored, rows)
		require.NoError(t, err)
		usage, err := client.Usage(t.Context(), writer.UsageQuery{})
		require.NoError(t, err)
		require.Len(t, usage, rows)
		seen := map[int64]bool{}
		for _, u := range usage {
			require.Equal(t, u.Hour.Unix()/3600, u.Key/9000)
			seen[u.Key] = true
		}
		require.Len(t, seen, rows, "each once")
		stored = rows
	}
}
