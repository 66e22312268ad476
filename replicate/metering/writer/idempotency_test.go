package writer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// changeAs sends a change under an Idempotency-Key to a writer in this process.
func changeAs(t testing.TB, w *writer.Writer, bearer, key, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+bearer)
	r.Header.Set(writer.IdempotencyHeader, key)
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, r)
	return recorder
}

// runAt runs a writer on files in dir, with a clock.
func runAt(t *testing.T, dir string, now func() time.Time) (*writer.Writer, *writer.Client, func()) {
	t.Helper()
	ledger, access := openDatabases(t, dir)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: token, Now: now})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(end)
	return w, newClient(w, token), end
}

const (
	changeKey  = "8e03978e-40d5-43dd-bc93-6894a57f9324"
	ownerToken = "owner token" // a change of TestTheSameChangeIsMadeOnce
)

// serves reports whether a route, such as "PATCH /v1/keys/:id", serves a path.
func serves(route, method, path string) bool {
	template, found := strings.CutPrefix(route, method+" ")
	parts, wanted := strings.Split(path, "/"), strings.Split(template, "/")
	if !found || len(parts) != len(wanted) {
		return false
	}
	for i, part := range wanted {
		if part != parts[i] && !strings.HasPrefix(part, ":") {
			return false
		}
	}
	return true
}

// TestTheSameChangeIsMadeOnce makes every kind of change three times under one key, the last time after
// a restart of the writer. The answers are the same, secrets included, and the ledger does not hold
// the secrets.
func TestTheSameChangeIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	w, _, end := runAt(t, dir, time.Now)
	changes := []struct{ name, method, path, body, table string }{
		{"account", "POST", "/v1/accounts", `{"name":"made-up","plan":"starter"}`, "account"},
		{"credits", "POST", "/v1/accounts/1/credits", `{"amount":100}`, "credit_entry"},
		{"key", "POST", "/v1/accounts/1/keys", `{"name":"key"}`, "api_key"},
		{"key change", "PATCH", "/v1/keys/1", `{"name":"changed"}`, "api_key WHERE name = 'changed'"},
		{"rotate", "POST", "/v1/keys/1/rotate", `{"overlap_seconds":60}`, "api_key WHERE old_hash IS NOT NULL"},
		{"revoke", "DELETE", "/v1/keys/1", ``, "api_key WHERE revoked_at IS NOT NULL"},
		{"node", "POST", "/v1/nodes", `{"name":"edge-1"}`, "node"},
		{"node token", "POST", "/v1/nodes/edge-1/token", ``, "node"},
		{"read tokens", "PUT", "/v1/nodes/edge-1/read-tokens", `{"read_tokens":{"registry":"made-up-secret"}}`, "node"},
		{"retire", "POST", "/v1/nodes/edge-1/retire", `{}`, "node WHERE retired"},
		{"plan", "PUT", "/v1/plans/own", `{"per_minute":1}`, "plan WHERE id = 'own'"},
		{"plan change", "PATCH", "/v1/plans/own", `{"per_minute":2}`, "plan WHERE per_minute = 2"},
		{"token", "POST", "/v1/tokens", `{"name":"ci","role":"read","life_seconds":60}`, "operator_token"},
		{"end", "DELETE", "/v1/tokens/ci", ``, "operator_token"},
		{"invitation", "POST", "/v1/invitations", `{"email":"a@example.com","account":1}`, "invitation"},
		{"change", "PATCH", "/v1/accounts/1", `{"name":"renamed"}`, "account WHERE name = 'renamed'"},
		{"unresolved", "POST", "/v1/unresolved/01M/credit", ``, "credit_entry WHERE kind = 'compensated'"},
		{ownerToken, "POST", "/v1/accounts/1/tokens", `{"name":"ci","role":"all","life_seconds":60}`, "owner_token"},
		{"other token", "POST", "/v1/accounts/1/tokens", `{"name":"other","role":"read","life_seconds":60}`, "owner_token WHERE name = 'other'"},
		{"other end", "DELETE", "/v1/owner-tokens/2", ``, "owner_token WHERE ends_at < created_at + 60000"},
		{"own key", "POST", "/v1/account/keys", `{"name":"own"}`, "api_key WHERE name = 'own'"},
		{"own change", "PATCH", "/v1/account/keys/2", `{"name":"own changed"}`, "api_key WHERE name = 'own changed'"},
		{"own rotate", "POST", "/v1/account/keys/2/rotate", `{"overlap_seconds":60}`, "api_key WHERE id = 2 AND old_hash IS NOT NULL"},
		{"own revoke", "DELETE", "/v1/account/keys/2", ``, "api_key WHERE id = 2 AND revoked_at IS NOT NULL"},
	}
	missing := w.ChangingRoutes()
	for _, c := range changes {
		missing = slices.DeleteFunc(missing, func(route string) bool { return serves(route, c.method, c.path) })
	}
	require.Empty(t, missing, "changes that this test does not make")
	_, err := openLedger(t, dir).Exec(`INSERT INTO unresolved (id, account, key, node, at) VALUES ('01M', 1, 1, 'edge-1', 1)`)
	require.NoError(t, err)
	answers := map[string]string{}
	by := func(path string) string { // the token for it
		var made writer.NewOwnerToken
		if strings.HasPrefix(path, "/v1/account/") {
			require.NoError(t, json.Unmarshal([]byte(answers[ownerToken]), &made))
			return made.Token
		}
		return token
	}
	for _, c := range changes {
		for n := range 2 {
			got := changeAs(t, w, by(c.path), changeKey+"-"+strings.ReplaceAll(c.name, " ", "-"), c.method, c.path, c.body)
			require.Equal(t, http.StatusOK, got.Code, "%s: %s", c.name, got.Body)
			require.Equal(t, n == 1, got.Header().Get(writer.ReplayedHeader) == "true", c.name)
			if n == 0 {
				answers[c.name] = got.Body.String()
			}
			require.Equal(t, answers[c.name], got.Body.String(), c.name)
		}
		require.Equal(t, 1, count(t, openLedger(t, dir), "SELECT count(*) FROM "+c.table), c.name)
	}
	require.Equal(t, len(changes), count(t, openLedger(t, dir), "SELECT count(*) FROM audit"), "each is audited once")
	end()

	w, client, end := runAt(t, dir, time.Now)
	for _, c := range changes {
		got := changeAs(t, w, by(c.path), changeKey+"-"+strings.ReplaceAll(c.name, " ", "-"), c.method, c.path, c.body)
		require.Equal(t, http.StatusOK, got.Code, "%s: %s", c.name, got.Body)
		require.Equal(t, answers[c.name], got.Body.String(), c.name)
	}
	a, err := client.Account(t.Context(), 1)
	require.NoError(t, err)
	require.EqualValues(t, 100, a.Bought)
	require.EqualValues(t, 1, a.Compensated)
	end()

	for _, secret := range []string{"reg_live_", "reg_node_", "reg_operator_", "reg_owner_", "made-up-secret", changeKey} {
		for _, file := range []string{"ledger.db", "ledger.db-wal"} {
			content, err := os.ReadFile(filepath.Join(dir, file))
			if !os.IsNotExist(err) {
				require.NoError(t, err)
			}
			require.NotContains(t, string(content), secret)
		}
	}
	require.Contains(t, answers["key"], "reg_live_", "the answers hold what the ledger must not")
	require.Contains(t, answers["node token"], "reg_node_")
}

// TestAKeyNamesOneChange: another change under the same key is refused, and another operator's is not
// the same.
func TestAKeyNamesOneChange(t *testing.T) {
	client, _, w := start(t, t.TempDir())
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	other, err := client.AddToken(t.Context(), "other", writer.RoleAccounts, time.Hour)
	require.NoError(t, err)
	const credits = "/v1/accounts/1/credits"
	require.Equal(t, 200, changeAs(t, w, token, changeKey, "POST", credits, `{"amount":1}`).Code)
	for name, got := range map[string]*httptest.ResponseRecorder{
		"body": changeAs(t, w, token, changeKey, "POST", credits, `{"amount":2}`),
		"path": changeAs(t, w, token, changeKey, "POST", "/v1/accounts/1/keys", `{"name":"x"}`),
		// The same body: else the owner of the second account would miss what the first one got.
		"account": changeAs(t, w, token, changeKey, "POST", "/v1/accounts/2/credits", `{"amount":1}`),
	} {
		require.Equal(t, http.StatusUnprocessableEntity, got.Code, name)
		require.Contains(t, got.Body.String(), `"idempotency_key_reused"`, name)
	}
	got := changeAs(t, w, other.Token, changeKey, "POST", credits, `{"amount":1}`)
	require.Equal(t, 200, got.Code)
	require.Empty(t, got.Header().Get(writer.ReplayedHeader), "the key of another operator")
	for _, key := range []string{"short", strings.Repeat("x", 129), "with a space in it", "with\tcontrol-characters", "umläute-in-the-key"} {
		got := changeAs(t, w, token, key, "POST", credits, `{"amount":1}`)
		require.Equal(t, http.StatusBadRequest, got.Code, key)
	}
	a, err = client.Account(t.Context(), a.ID)
	require.NoError(t, err)
	require.EqualValues(t, 2, a.Bought)
}

// TestAChangeIsNotAnsweredAsItsOpposite: the same path and body, with another method, is another change.
func TestAChangeIsNotAnsweredAsItsOpposite(t *testing.T) {
	client, _, w := start(t, t.TempDir())
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	k, err := client.AddKey(t.Context(), a.ID, "before")
	require.NoError(t, err)
	path := fmt.Sprintf("/v1/keys/%d", k.ID)
	require.Equal(t, http.StatusOK, changeAs(t, w, token, changeKey, http.MethodPatch, path, `{"name":"after"}`).Code)
	got := changeAs(t, w, token, changeKey, http.MethodDelete, path, `{"name":"after"}`)
	require.Equal(t, http.StatusUnprocessableEntity, got.Code, "whoever revokes a key must not be told that it was done: %s", got.Body)
}

// TestARefusedChangeMayBeMadeLater: what had no effect is not remembered.
func TestARefusedChangeMayBeMadeLater(t *testing.T) {
	client, _, w := start(t, t.TempDir())
	require.Equal(t, 404, changeAs(t, w, token, changeKey, "POST", "/v1/accounts/1/credits", `{"amount":1}`).Code)
	_, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	require.Equal(t, 200, changeAs(t, w, token, changeKey, "POST", "/v1/accounts/1/credits", `{"amount":1}`).Code)
}

// TestAnAnswerIsKeptForSevenDays moves the clock.
func TestAnAnswerIsKeptForSevenDays(t *testing.T) {
	dir := t.TempDir()
	var passed atomic.Int64
	began := time.Now()
	pass := func(d time.Duration) { passed.Add(int64(d)) }
	w, client, _ := runAt(t, dir, func() time.Time { return began.Add(time.Duration(passed.Load())) })
	_, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	credit := func() bool {
		got := changeAs(t, w, token, changeKey, "POST", "/v1/accounts/1/credits", `{"amount":1}`)
		require.Equal(t, 200, got.Code, got.Body)
		return got.Header().Get(writer.ReplayedHeader) == "true"
	}
	require.False(t, credit())
	pass(7*24*time.Hour - time.Second)
	require.True(t, credit())
	pass(2 * time.Second)
	require.False(t, credit())
	for n := range 150 {
		_, err := client.ChangeCredits(t.Context(), 1, writer.CreditChange{Amount: int64(n + 1)})
		require.NoError(t, err)
	}
	pass(8 * 24 * time.Hour)
	for range 2 {
		_, err := client.ChangeCredits(t.Context(), 1, writer.CreditChange{Amount: 1})
		require.NoError(t, err)
	}
	require.Equal(t, 2, count(t, openLedger(t, dir), `SELECT count(*) FROM idempotent_change`), "the old ones are dropped")
}

// TestAChangeWhoseAnswerWasLostIsMadeOnce locks the ledger, so that changes wait, until their callers
// give up. They ask again under the same key, eight at a time, when the ledger is free.
func TestAChangeWhoseAnswerWasLostIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	lock, err := openLedger(t, dir).Conn(t.Context())
	require.NoError(t, err)
	defer lock.Close()
	_, err = lock.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	require.NoError(t, err)
	ask := func(limit time.Duration, check func(writer.Account, error)) {
		ctx, cancel := context.WithTimeout(writer.WithIdempotencyKey(t.Context(), changeKey), limit)
		defer cancel()
		check(client.ChangeCredits(ctx, a.ID, writer.CreditChange{Amount: 100}))
	}
	ask(200*time.Millisecond, func(_ writer.Account, err error) { require.ErrorIs(t, err, writer.ErrUncertain) })
	_, err = lock.ExecContext(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			ask(time.Minute, func(a writer.Account, err error) {
				assert.NoError(t, err)
				assert.EqualValues(t, 100, a.Bought)
			})
		})
	}
	calls.Wait()
	a, err = client.Account(t.Context(), a.ID)
	require.NoError(t, err)
	require.EqualValues(t, 100, a.Bought)
}

// TestTheTokenInForceIsThatOfTheLastCommit makes tokens for one edge at once. The one that the ledger
// has is in force.
func TestTheTokenInForceIsThatOfTheLastCommit(t *testing.T) {
	dir := t.TempDir()
	client, _, w := start(t, dir)
	_, err := client.AddNode(t.Context(), "edge-1")
	require.NoError(t, err)
	for range 20 {
		tokens := make([]string, 8)
		var calls sync.WaitGroup
		for i := range tokens {
			calls.Go(func() {
				made, err := client.NewNodeToken(t.Context(), "edge-1")
				assert.NoError(t, err)
				tokens[i] = made.Token
			})
		}
		calls.Wait()
		var stored []byte
		require.NoError(t, openLedger(t, dir).QueryRow(`SELECT token_hash FROM node`).Scan(&stored))
		for _, made := range tokens {
			hash := sha256.Sum256([]byte(made))
			require.Equal(t, bytes.Equal(hash[:], stored), report(t, w, made) == http.StatusOK)
		}
	}
}

// report sends an edge's report and returns the status.
func report(t *testing.T, w *writer.Writer, token string) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, writer.ReportPath, bytes.NewReader([]byte(`{}`)))
	r.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, r)
	return recorder.Code
}
