package writer_test

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
)

const token = "operator-token-of-tests"

// start runs a writer on files in dir and returns an operator's client.
func start(t testing.TB, dir string) (*writer.Client, *sql.DB, *writer.Writer) {
	ledger, access := openDatabases(t, dir)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: token})
	require.NoError(t, err)
	runUntilEnd(t, w)
	return newClient(w, token), access, w
}

// runUntilEnd runs a writer until the test ends.
func runUntilEnd(t testing.TB, w *writer.Writer) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// openDatabases opens the ledger and the access database in dir, until the test ends.
func openDatabases(t testing.TB, dir string) (ledger, access *sql.DB) {
	t.Helper()
	return openLedger(t, dir), writer.OpenAccess(t, dir)
}

func newClient(w *writer.Writer, token string) *writer.Client {
	return writer.NewClient("http://writer", token, &http.Client{Transport: writer.InProcess(w.Handler())})
}

func count(t *testing.T, db *sql.DB, query string, args ...any) (n int) {
	require.NoError(t, db.QueryRow(query, args...).Scan(&n))
	return n
}

func TestKeys(t *testing.T) {
	client, access, _ := start(t, t.TempDir())
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	var keys []writer.NewKey
	for range 5 {
		k, err := client.AddKey(t.Context(), a.ID, "key")
		require.NoError(t, err)
		require.True(t, ident.ValidKey(k.Secret))
		require.Equal(t, ident.KeyShown(k.Secret), k.Shown)
		keys = append(keys, k)
	}

	t.Run("are at most five, revoked ones not counted", func(t *testing.T) {
		_, err := client.AddKey(t.Context(), a.ID, "sixth")
		require.ErrorIs(t, err, writer.ErrTooManyKeys)
		require.ErrorContains(t, err, "revoke one first")
		revoked, err := client.RevokeKey(t.Context(), keys[0].ID)
		require.NoError(t, err)
		require.NotNil(t, revoked.Revoked)
		again, err := client.RevokeKey(t.Context(), keys[0].ID)
		require.NoError(t, err)
		require.Equal(t, revoked, again)
		_, err = client.AddKey(t.Context(), a.ID, "sixth")
		require.NoError(t, err)
	})
	t.Run("are listed without their secrets, revoked ones too", func(t *testing.T) {
		list, err := client.Keys(t.Context(), a.ID)
		require.NoError(t, err)
		require.Len(t, list, 6)
	})
	t.Run("that are valid are in the access database", func(t *testing.T) {
		require.Equal(t, 5, count(t, access, `SELECT count(*) FROM api_key WHERE account = ?`, a.ID))
		require.Zero(t, count(t, access, `SELECT count(*) FROM api_key WHERE id = ?`, keys[0].ID))
	})
}

func TestTheClientReturnsTheErrorsOfTheServer(t *testing.T) {
	client, _, w := start(t, t.TempDir())
	_, err := client.Account(t.Context(), 99)
	require.ErrorIs(t, err, writer.ErrNotFound)
	_, err = client.AddAccount(t.Context(), "made-up", "", "no-such-plan")
	require.ErrorIs(t, err, writer.ErrUnknownPlan)
	_, err = client.AddAccount(t.Context(), " ", "", "free")
	require.ErrorIs(t, err, writer.ErrMalformed)
	_, err = client.ChangeCredits(t.Context(), 99, writer.CreditChange{Amount: 1})
	require.ErrorIs(t, err, writer.ErrNotFound)
	_, err = client.AddNode(t.Context(), "Not A Name")
	require.ErrorIs(t, err, writer.ErrMalformed)
	_, err = client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	_, err = client.AddNode(t.Context(), "one")
	require.ErrorIs(t, err, writer.ErrTaken)
	_, err = newClient(w, "another-token-of-tests").Accounts(t.Context())
	require.ErrorIs(t, err, writer.ErrUnauthorized)
	node, err := client.AddNode(t.Context(), "two")
	require.NoError(t, err)
	_, err = newClient(w, node.Token).Accounts(t.Context())
	require.ErrorIs(t, err, writer.ErrUnauthorized, "the token of an edge is no operators' token")
}

func TestABalanceIsTheSumOfItsEntriesAndNeverNegative(t *testing.T) {
	client, _, _ := start(t, t.TempDir())
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	for _, change := range []writer.CreditChange{
		{Amount: 100, Note: "order 1"}, {Amount: 5, Kind: writer.Compensated, Note: "sorry"}, {Amount: -200, AtMost: true},
	} {
		a, err = client.ChangeCredits(t.Context(), a.ID, change)
		require.NoError(t, err)
	}
	require.Zero(t, a.Balance, "an adjustment never takes a balance below zero")
	require.Zero(t, a.Deducting)
	entries, err := client.Credits(t.Context(), a.ID)
	require.NoError(t, err)
	sum := int64(0)
	for _, e := range entries {
		sum += e.Amount
	}
	require.Equal(t, a.Balance, sum)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 7})
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: -8})
	require.ErrorIs(t, err, writer.ErrBeyondBalance)
	after, err := client.Account(t.Context(), a.ID)
	require.NoError(t, err)
	require.EqualValues(t, 7, after.Balance, "what was refused takes nothing")
	a, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: -7})
	require.NoError(t, err)
	require.Zero(t, a.Balance)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{})
	require.ErrorIs(t, err, writer.ErrMalformed)
}

func TestTheAccessDatabaseIsProjected(t *testing.T) {
	dir := t.TempDir()
	var id int64
	t.Run("plans, accounts and their changes", func(t *testing.T) {
		client, access, _ := start(t, dir)
		require.Equal(t, 4, count(t, access, `SELECT count(*) FROM plan`))
		a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
		require.NoError(t, err)
		id = a.ID
		plan, suspended := "scale", true
		a, err = client.ChangeAccount(t.Context(), id, writer.AccountChange{Plan: &plan, Suspended: &suspended})
		require.NoError(t, err)
		require.Equal(t, "made-up", a.Name)
		require.Equal(t, 1, count(t, access, `SELECT count(*) FROM account WHERE plan = 'scale' AND suspended = 1`))
		_, err = client.AddKey(t.Context(), id, "")
		require.NoError(t, err)
		_, err = client.SetPlan(t.Context(), writer.Plan{ID: "scale", APIAccess: true, PerMinute: 7})
		require.NoError(t, err)
		require.Equal(t, 7, count(t, access, `SELECT per_minute FROM plan WHERE id = 'scale'`))
	})
	t.Run("and reconciled at the next start", func(t *testing.T) {
		access := writer.OpenAccess(t, dir)
		_, err := access.Exec(`DELETE FROM api_key`)
		require.NoError(t, err)
		_, err = access.Exec(`UPDATE account SET suspended = 0`)
		require.NoError(t, err)
		_, err = access.Exec(`INSERT INTO account (id, plan) VALUES (77, 'free')`)
		require.NoError(t, err)
		require.NoError(t, access.Close())
		_, access, _ = start(t, dir)
		require.Equal(t, 1, count(t, access, `SELECT count(*) FROM api_key WHERE account = ?`, id))
		require.Equal(t, 1, count(t, access, `SELECT count(*) FROM account`))
		require.Equal(t, 1, count(t, access, `SELECT suspended FROM account`))
	})
}

func TestANodeGetsAnotherTokenAndIsRetired(t *testing.T) {
	client, _, _ := start(t, t.TempDir())
	first, err := client.AddNode(t.Context(), "edge-1")
	require.NoError(t, err)
	second, err := client.NewNodeToken(t.Context(), "edge-1")
	require.NoError(t, err)
	require.NotEqual(t, first.Token, second.Token)
	_, err = client.NewNodeToken(t.Context(), "edge-2")
	require.ErrorIs(t, err, writer.ErrNotFound)
	node, err := client.RetireNode(t.Context(), "edge-1", false)
	require.NoError(t, err)
	require.True(t, node.Retired)
	nodes, err := client.Nodes(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	health, err := client.Health(t.Context())
	require.NoError(t, err)
	require.Positive(t, health.Generation)
	require.WithinDuration(t, time.Now(), health.Now, time.Minute)
}

func TestAShortOperatorsTokenIsRefused(t *testing.T) {
	_, err := writer.Open(t.Context(), writer.Config{OperatorToken: "short"})
	require.ErrorContains(t, err, "at least 16 characters")
}

func TestACancelledRequestIsNotLoggedAsAnError(t *testing.T) {
	ledger, access := openDatabases(t, t.TempDir())
	var log bytes.Buffer
	w, err := writer.Open(t.Context(), writer.Config{
		Ledger: ledger, Access: access, OperatorToken: token, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequestWithContext(ended, http.MethodDelete, "/v1/keys/1", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, request)
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.NotContains(t, log.String(), "ERROR")
}

// TestAFencedWriterDoesNotAnswerFromMemory checks that a writer whose ledger another one took
// stops telling edges that nothing is left, even while it has nothing to write.
func TestAFencedWriterDoesNotAnswerFromMemory(t *testing.T) {
	ledger, access := openDatabases(t, t.TempDir())
	var ahead atomic.Int64
	config := writer.Config{
		Ledger: ledger, Access: access, OperatorToken: token,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}
	first, err := writer.Open(t.Context(), config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- first.Run(ctx) }()
	defer cancel()
	node, err := newClient(first, token).AddNode(t.Context(), "one")
	require.NoError(t, err)
	e := &testEdge{secret: node.Token, url: "http://writer", client: &http.Client{Transport: writer.InProcess(first.Handler())}}
	require.NoError(t, e.send(t.Context(), syncproto.Message{Hello: &syncproto.Hello{Boot: 1, NowMillis: time.Now().UnixMilli()}}))
	nothing := func() error {
		return e.send(t.Context(), syncproto.Message{Sync: &syncproto.Sync{Session: e.session, Seen: e.seen, NowMillis: time.Now().UnixMilli()}})
	}
	require.NoError(t, nothing())

	config.TakeOver = true
	_, err = writer.Open(t.Context(), config)
	require.NoError(t, err)
	ahead.Store(int64(2 * time.Second))
	require.Error(t, nothing())
	require.ErrorIs(t, <-done, writer.ErrFenced)
}

func TestMetricsAreShownWithAToken(t *testing.T) {
	client, _, w := start(t, t.TempDir())
	_, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, request)
	require.Equal(t, http.StatusUnauthorized, answer.Code)
	request.Header.Set("Authorization", "Bearer "+token)
	answer = httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, request)
	require.Equal(t, http.StatusOK, answer.Code)
	for _, want := range []string{
		"# TYPE regedge_writer_generation gauge\nregedge_writer_generation ",
		"# TYPE regedge_writer_groups_total counter\nregedge_writer_groups_total 0\n",
		"# TYPE regedge_writer_messages_total counter\nregedge_writer_messages_total 0\n",
		"# TYPE regedge_writer_failed_groups_total counter\nregedge_writer_failed_groups_total 0\n",
		"# TYPE regedge_writer_unresolved_charges gauge\nregedge_writer_unresolved_charges 0\n",
	} {
		require.Contains(t, answer.Body.String(), want)
	}
}
