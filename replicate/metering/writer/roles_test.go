package writer

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/schema"
)

const firstOperator = "first-token-of-tests"

// runForRoles runs a writer on files whose clock the test sets.
func runForRoles(t testing.TB) (w *Writer, first *Client, clock *fakeClock) {
	t.Helper()
	w, clock = openUnrun(t)
	runToEnd(t, w)
	return w, clientOf(w, firstOperator), clock
}

// runToEnd runs a writer until the test ends.
func runToEnd(t testing.TB, w *Writer) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
}

// secret is the form of keys and tokens, and of an invitation's token.
var secret = regexp.MustCompile(`reg_(live|owner|operator|node)_[0-9A-Za-z]{12}|(^|[^0-9A-Za-z_-])[0-9A-Za-z_-]{43}($|[^0-9A-Za-z_-])|` + firstOperator)

// openUnrun opens a writer that a test runs, or of which it takes single steps. It must not log a secret, whatever
// the test does.
func openUnrun(t testing.TB) (w *Writer, clock *fakeClock) {
	t.Helper()
	dir := t.TempDir()
	log := new(testkit.Log)
	t.Cleanup(func() {
		for line := range strings.Lines(log.String()) {
			require.NotRegexp(t, secret, line)
		}
	})
	config := Config{OperatorToken: firstOperator, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	clock = &fakeClock{start: time.Now()}
	config.Now, config.Elapsed = clock.now, clock.elapsed
	var err error
	config.Ledger, err = schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(t, err)
	t.Cleanup(func() { config.Ledger.Close() })
	config.Access = OpenAccess(t, dir)
	w, err = Open(t.Context(), config)
	require.NoError(t, err)
	return w, clock
}

func clientOf(w *Writer, token string) *Client {
	return NewClient("http://writer", token, &http.Client{Transport: InProcess(w.Handler())})
}

// wantedRoles is what each route needs. It repeats the table on purpose: whoever opens a route to more
// tokens has to say so twice.
var wantedRoles = map[string]Role{
	"GET /healthz": anyone, "GET /readyz": anyone, "GET /v1/openapi.yaml": anyone, "POST /v1/sync": edges, "POST /v1/reports": edges, "POST /v1/requests": edges,
	"GET /metrics": RoleRead, "GET /v1/reports": RoleRead, "GET /v1/health": RoleRead, "GET /v1/accounts": RoleRead,
	"GET /v1/accounts/:id": RoleRead, "GET /v1/accounts/:id/keys": RoleRead, "GET /v1/keys/:id": RoleRead, "GET /v1/accounts/:id/credits": RoleRead,
	"GET /v1/plans": RoleRead, "GET /v1/nodes": RoleRead, "GET /v1/usage": RoleRead, "GET /v1/requests": RoleRead, "GET /v1/audit": RoleRead, "PATCH /v1/keys/:id": RoleAccounts, "POST /v1/keys/:id/rotate": RoleAccounts,
	"GET /v1/unresolved": RoleRead, "GET /v1/accounts/:id/usage": RoleRead,
	"POST /v1/accounts": RoleAccounts, "PATCH /v1/accounts/:id": RoleAccounts, "POST /v1/accounts/:id/keys": RoleAccounts,
	"DELETE /v1/keys/:id": RoleAccounts, "POST /v1/accounts/:id/credits": RoleAccounts, "POST /v1/invitations": RoleAccounts,
	"POST /v1/unresolved/:name/credit": RoleAccounts, "POST /v1/nodes": RoleNodes, "POST /v1/nodes/:name/token": RoleNodes,
	"POST /v1/nodes/:name/retire": RoleNodes, "PUT /v1/nodes/:name/read-tokens": RoleNodes, "PUT /v1/plans/:name": RoleAll, "PATCH /v1/plans/:name": RoleAll, "GET /v1/tokens": RoleAll,
	"POST /v1/tokens": RoleAll, "DELETE /v1/tokens/:name": RoleAll,
	"GET /v1/accounts/:id/tokens": RoleRead, "POST /v1/accounts/:id/tokens": RoleAccounts, "DELETE /v1/owner-tokens/:id": RoleAccounts,
	"GET /v1/account": owners, "GET /v1/account/keys": owners, "POST /v1/account/keys": owners, "GET /v1/account/keys/:id": owners,
	"PATCH /v1/account/keys/:id": owners, "DELETE /v1/account/keys/:id": owners, "POST /v1/account/keys/:id/rotate": owners,
	"GET /v1/account/usage": owners, "GET /v1/account/requests": owners,
}

// may is which roles do what needs a role.
var may = map[Role][]Role{
	RoleRead: {RoleRead, RoleAccounts, RoleNodes, RoleAll}, RoleAccounts: {RoleAccounts, RoleAll},
	RoleNodes: {RoleNodes, RoleAll}, RoleAll: {RoleAll}, edges: {}, owners: {}, anyone: {RoleRead, RoleAccounts, RoleNodes, RoleAll},
}

// TestEveryRouteNeedsItsRole asks every route with a token of every role, with an unknown one, and
// with none.
func TestEveryRouteNeedsItsRole(t *testing.T) {
	w, first, clock := runForRoles(t)
	tokens := map[Role]string{}
	for _, role := range Roles() {
		made, err := first.AddToken(t.Context(), "test-"+string(role), role, time.Hour)
		require.NoError(t, err)
		tokens[role] = made.Token
	}
	ended, err := first.AddToken(t.Context(), "ended", RoleAll, time.Minute)
	require.NoError(t, err)
	clock.pass(time.Minute)
	require.Len(t, w.table(), len(wantedRoles))
	for _, route := range w.table() {
		name := route.method + " " + route.path
		needed, ok := wantedRoles[name]
		require.True(t, ok && needed == route.needs, "%s needs the role %q: add it to this test", name, route.needs)
		for role, token := range tokens {
			status, code := ask(w, route, token)
			switch {
			case needed == edges:
				require.Equal(t, http.StatusUnauthorized, status, "%s with %s", name, role)
			case slices.Contains(may[needed], role):
				require.NotContains(t, []int{401, 403}, status, "%s with %s", name, role)
			default:
				require.Equal(t, []any{403, "forbidden"}, []any{status, code}, "%s with %s", name, role)
			}
		}
		if needed == anyone {
			continue
		}
		w.gate = newOwnerGate(clock.now) // it counts the strangers of each route
		for _, stranger := range []string{"", "reg_operator_unknown", tokens[RoleAll] + "0", ended.Token} {
			status, code := ask(w, route, stranger)
			require.Equal(t, http.StatusUnauthorized, status, "%s with %q", name, stranger)
			if stranger == ended.Token && needed != edges && needed != owners {
				require.Equal(t, "token_ended", code)
			}
		}
		if needed != edges && needed != owners {
			status, _ := ask(w, route, firstOperator)
			require.NotContains(t, []int{401, 403}, status, "%s with the first token", name)
		}
	}
}

// ask makes a request that changes nothing, and returns the status and the problem's code.
func ask(w *Writer, route route, token string) (status int, code string) {
	path := strings.NewReplacer(":id", "99", ":name", "no-such-name").Replace(route.path)
	r := httptest.NewRequest(route.method, path, strings.NewReader(`{"unknown_field":0}`))
	r.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, r)
	_, code, _ = strings.Cut(answer.Body.String(), `"code":"`)
	code, _, _ = strings.Cut(code, `"`)
	return answer.Code, code
}

func TestNoOperatorsTokenIsAnOwners(t *testing.T) {
	for _, role := range Roles() {
		require.False(t, role.includes(owners), role)
		require.False(t, role.includes(""), role)
		require.True(t, role.includes(RoleRead), role)
	}
}

func TestARouteWithoutARoleIsClosed(t *testing.T) {
	w, first, _ := runForRoles(t)
	made, err := first.AddToken(t.Context(), "all", RoleAll, time.Hour)
	require.NoError(t, err)
	closed := w.guarded(route{method: "GET", path: "/", serve: serveAlive})
	for _, token := range []string{firstOperator, made.Token} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		closed(answer, r, nil)
		require.Equal(t, http.StatusForbidden, answer.Code)
	}
}

func TestOnlyATokenThatMayDoAllInvitesOperators(t *testing.T) {
	w, first, _ := runForRoles(t)
	made, err := first.AddToken(t.Context(), "sales", RoleAccounts, time.Hour)
	require.NoError(t, err)
	sales := clientOf(w, made.Token)
	account, err := sales.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = sales.Invite(t.Context(), "owner@example.com", account.ID)
	require.NoError(t, err)
	_, err = sales.Invite(t.Context(), "friend@example.com", 0)
	require.ErrorIs(t, err, ErrForbidden)
	var actor string
	require.NoError(t, w.config.Ledger.QueryRow(`SELECT actor FROM audit WHERE act = 'POST /v1/accounts'`).Scan(&actor))
	require.Equal(t, "token sales", actor)
}

func TestATokenIsShownOnceAndEnds(t *testing.T) {
	w, first, clock := runForRoles(t)
	made, err := first.AddToken(t.Context(), "ci", RoleRead, time.Hour)
	require.NoError(t, err)
	_, err = first.AddToken(t.Context(), "ci", RoleAll, time.Hour)
	require.ErrorIs(t, err, ErrTaken)
	var stored int
	require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM operator_token WHERE instr(hash, ?)`, made.Token).Scan(&stored))
	require.Zero(t, stored, "only its hash is stored")
	reader := clientOf(w, made.Token)
	_, err = reader.Nodes(t.Context())
	require.NoError(t, err)

	t.Run("at once, when an operator ends it", func(t *testing.T) {
		for range 2 {
			ended, err := first.EndToken(t.Context(), "ci")
			require.NoError(t, err)
			require.True(t, ended.Ended)
			_, err = reader.Nodes(t.Context())
			require.ErrorIs(t, err, ErrTokenEnded)
		}
		_, err = first.EndToken(t.Context(), "unknown")
		require.ErrorIs(t, err, ErrNotFound)
	})
	t.Run("and its name can be used again", func(t *testing.T) {
		clock.pass(time.Minute)
		again, err := first.AddToken(t.Context(), "ci", RoleNodes, time.Hour)
		require.NoError(t, err)
		require.NotEqual(t, made.Token, again.Token)
		_, err = reader.Nodes(t.Context())
		require.ErrorIs(t, err, ErrUnauthorized, "the secret before")
		list, err := first.Tokens(t.Context())
		require.NoError(t, err)
		require.Equal(t, []OperatorToken{again.OperatorToken}, list)
		require.Equal(t, clock.now().Truncate(time.Millisecond).UTC(), again.Created, "not when the one before was made")
		_, err = clientOf(w, again.Token).AddNode(t.Context(), "edge-1")
		require.NoError(t, err)
		clock.pass(time.Hour)
		_, err = clientOf(w, again.Token).Nodes(t.Context())
		require.ErrorIs(t, err, ErrTokenEnded, "when its time is over")
	})
	for name, bad := range map[string]error{
		"role": errOf(first.AddToken(t.Context(), "x", "root", time.Hour)),
		"life": errOf(first.AddToken(t.Context(), "x", RoleAll, 0)),
		"long": errOf(first.AddToken(t.Context(), "x", RoleAll, 2*maxTokenLife)),
		"name": errOf(first.AddToken(t.Context(), "Not a name", RoleAll, time.Hour)),
	} {
		require.ErrorIs(t, bad, ErrMalformed, name)
	}
}

func errOf(_ NewOperatorToken, err error) error { return err }

// TestATokenThatWasEndedStaysEnded also by a clock that is set back, and for the next writer.
func TestATokenThatWasEndedStaysEnded(t *testing.T) {
	w, first, clock := runForRoles(t)
	clock.pass(48 * time.Hour) // it is ahead
	made, err := first.AddToken(t.Context(), "leaked", RoleAll, time.Hour)
	require.NoError(t, err)
	ann := newHousehold(t, first, "ann", RoleAll)
	bob := newHousehold(t, first, "bob", RoleAll)
	clock.pass(time.Minute)
	ended, err := first.EndToken(t.Context(), "leaked")
	require.NoError(t, err)
	at := clock.now().Truncate(time.Millisecond).UTC()
	require.Equal(t, at, ended.Ends)
	ofAnn, err := first.EndOwnerToken(t.Context(), ann.tokenID)
	require.NoError(t, err)
	require.Equal(t, at, ofAnn.Ends)
	require.NoError(t, w.Commit(t.Context(), Act{}, func(ctx context.Context, tx *sql.Tx, now int64) error {
		return EndOwnerTokensOf(ctx, tx, now, "bob@example.com")
	}))
	clock.pass(-48 * time.Hour)
	for _, writer := range []string{"the same", "the next"} {
		_, err = clientOf(w, made.Token).Accounts(t.Context())
		require.ErrorIs(t, err, ErrTokenEnded, writer)
		require.ErrorContains(t, err, "ended at "+at.Format(time.RFC3339), writer)
		for _, token := range []string{ann.token, bob.token} {
			_, code := ownAsk(w, token, http.MethodGet, "/v1/account", "")
			require.Equal(t, "token_ended", code, writer)
		}
		list, err := first.Tokens(t.Context())
		require.NoError(t, err)
		require.Equal(t, []OperatorToken{ended}, list)
		again, err := first.EndOwnerToken(t.Context(), ann.tokenID)
		require.NoError(t, err)
		require.Equal(t, ofAnn, again)
		owned, err := first.OwnerTokens(t.Context(), ann.account)
		require.NoError(t, err)
		require.Equal(t, []OwnerToken{ofAnn}, owned)
		require.NoError(t, w.readTokens(t.Context())) // as at the next start
	}
	_, err = first.AddToken(t.Context(), "leaked", RoleRead, time.Hour)
	require.NoError(t, err, "its name can be used again")
	clock.pass((48 + 91*24) * time.Hour)
	owned, err := first.OwnerTokens(t.Context(), ann.account)
	require.NoError(t, err)
	require.Empty(t, owned)
}

// TestTokensAreReadAgainWhenTheOutcomeIsUnknown: a change that was committed after its caller had
// been told an error counts within a second.
func TestTokensAreReadAgainWhenTheOutcomeIsUnknown(t *testing.T) {
	w, first, _ := runForRoles(t)
	made, err := first.AddToken(t.Context(), "ci", RoleRead, time.Hour)
	require.NoError(t, err)
	_, err = w.config.Ledger.Exec(`UPDATE operator_token SET ends_at = 0`)
	require.NoError(t, err)
	_, err = first.AddAccount(t.Context(), "made-up", "", "no such plan")
	require.Error(t, err)
	require.Eventually(t, func() bool {
		_, err := clientOf(w, made.Token).Nodes(t.Context())
		return err != nil
	}, 30*time.Second, 10*time.Millisecond)
}
