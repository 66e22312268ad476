package writer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// TestNoAnswerOfTheAPIIsStored by a cache on its way: some hold secrets, and all change.
func TestNoAnswerOfTheAPIIsStored(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, _ := keyFor(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	usage := "/v1/accounts/" + decimal(account) + "/usage"
	for _, c := range []struct{ token, method, path, body string }{
		{firstOperator, http.MethodPost, "/v1/accounts/" + decimal(account) + "/keys", "{}"},
		{firstOperator, http.MethodGet, "/v1/accounts", ""}, {firstOperator, http.MethodGet, usage, ""},
		{firstOperator, http.MethodGet, usage + "?format=csv", ""}, {firstOperator, http.MethodGet, "/v1/usage", ""},
		{firstOperator, http.MethodGet, "/v1/usage?format=csv", ""}, {node.Token, http.MethodPost, ReportPath, "{}"},
	} {
		answer := answerTo(w, c.token, c.method, c.path, strings.NewReader(c.body))
		require.Equal(t, http.StatusOK, answer.Code, answer.Body)
		require.Equal(t, "no-store", answer.Header().Get("Cache-Control"), "%s %s", c.method, c.path)
	}
}

// TestNoClientChoosesTheIDOfItsRequest: it could hide one among others in the log.
func TestNoClientChoosesTheIDOfItsRequest(t *testing.T) {
	w, _, _ := runForRoles(t)
	r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
	r.Header.Set(RequestIDHeader, "CHOSEN")
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, r)
	require.NotContains(t, answer.Header().Values(RequestIDHeader), "CHOSEN")
}

// TestAPathThatIsNoneIsNotMended: a change that is redirected would be sent twice, or without its body.
func TestAPathThatIsNoneIsNotMended(t *testing.T) {
	w, _, _ := runForRoles(t)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/V1/accounts", 404}, {http.MethodGet, "/v1//accounts", 404}, {http.MethodPost, "/v1/accounts/", 404},
		{http.MethodOptions, "/v1/accounts", 405},
	} {
		answer := answerTo(w, firstOperator, c.method, c.path, nil)
		require.Equal(t, c.status, answer.Code, "%s %s", c.method, c.path)
		require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"))
	}
}

// TestWhyTheLedgerCannotBeReadIsNotSent: the text may hold its address. The token may be good all the same.
func TestWhyTheLedgerCannotBeReadIsNotSent(t *testing.T) {
	w, _ := openUnrun(t)
	var log bytes.Buffer
	w.config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	require.NoError(t, w.config.Ledger.Close())
	require.GreaterOrEqual(t, answerTo(w, firstOperator, http.MethodGet, "/v1/accounts/4711", nil).Code, 500)
	require.Contains(t, log.String(), "route=/v1/accounts/:id ", "the log has the cause, and no more of the path than that")
	require.NotContains(t, log.String(), "4711")
	for token, path := range map[string]string{"reg_owner_any": "/v1/account", firstOperator: "/v1/plans"} {
		answer := answerTo(w, token, http.MethodGet, path, nil)
		require.NotContains(t, answer.Body.String(), "closed", path)
		require.GreaterOrEqual(t, answer.Code, 500, path)
	}
	answer := answerTo(w, "reg_owner_any", http.MethodGet, "/v1/account", nil)
	require.Equal(t, http.StatusServiceUnavailable, answer.Code, answer.Body)
}

// TestTheGateIsEnteredByManyAtOnce.
func TestTheGateIsEnteredByManyAtOnce(t *testing.T) {
	g := newOwnerGate(time.Now)
	var running sync.WaitGroup
	for n := range 4 {
		running.Go(func() {
			for i := range 500 {
				address, hash := fmt.Sprint("address ", i), [32]byte{byte(n), byte(i)}
				_ = g.before(address, hash)
				g.wrong(address)
				_, _ = g.enter(int64(i), hash), g.change(int64(i))
			}
		})
	}
	running.Wait()
	require.Len(t, g.asked, 500)
	require.Equal(t, 4, g.asked[7].count)
	require.Equal(t, 4, g.wrongs["address 7"].count)
}

// TestTheGateForgetsThoseWhoseTimeIsOverFirst: the others would begin anew with each flood of addresses.
func TestTheGateForgetsThoseWhoseTimeIsOverFirst(t *testing.T) {
	counts, now := map[int]gateCount{}, time.Unix(1_790_000_000, 0)
	for i := range maxGateEntries - 1 {
		countIn(counts, i, now, time.Minute)
	}
	now = now.Add(time.Minute)
	countIn(counts, -1, now, time.Minute)
	countIn(counts, -2, now, time.Minute)
	require.Len(t, counts, 2)
	require.Equal(t, 2, countIn(counts, -1, now, time.Minute).count)
}

// TestTokensThatEndedMakeRoom for others, and are listed for 90 days.
func TestTokensThatEndedMakeRoom(t *testing.T) {
	w, first, clock := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleAll)
	add := func() error {
		_, err := first.AddOwnerToken(t.Context(), ann.account, "short", RoleRead, time.Minute)
		return err
	}
	listed := func() (ended int) {
		tokens := readAs[[]OwnerToken](t, w, "/v1/accounts/"+decimal(ann.account)+"/tokens")
		for _, token := range tokens {
			if token.Ended {
				ended++
			}
		}
		return ended
	}
	for range MaxOwnerTokens - 1 {
		require.NoError(t, add())
	}
	require.ErrorIs(t, add(), ErrTooManyTokens)
	require.Zero(t, listed())
	clock.pass(time.Minute)
	require.NoError(t, add())
	require.Equal(t, MaxOwnerTokens-1, listed())
	clock.pass(endedTokenKept - time.Minute)
	require.Equal(t, MaxOwnerTokens+1, listed())
	clock.pass(time.Minute)
	require.Equal(t, 2, listed(), "the first ones are gone")
}

// TestAChangeThatIsNotStoredChangesNoToken: the node goes on with the one that it has.
func TestAChangeThatIsNotStoredChangesNoToken(t *testing.T) {
	w, first, _ := runForRoles(t)
	node, err := first.AddNode(t.Context(), "one")
	require.NoError(t, err)
	_, err = w.config.Ledger.Exec(`CREATE TRIGGER refuse BEFORE INSERT ON idempotent_change BEGIN SELECT raise(ABORT, 'no'); END`)
	require.NoError(t, err)
	_, err = first.NewNodeToken(t.Context(), "one")
	require.Error(t, err)
	_, err = clientOf(w, node.Token).Report(t.Context(), Report{})
	require.NoError(t, err)
}

// TestARepeatedChangeIsPendingAsLongAsEdgesLackIt: the answer of the first time does not say so.
func TestARepeatedChangeIsPendingAsLongAsEdgesLackIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, first, _ := runForRoles(t)
		account, _ := keyFor(t, first)
		_, err := w.config.Access.Exec(`CREATE TRIGGER refuse BEFORE UPDATE ON account BEGIN SELECT raise(ABORT, 'no'); END`)
		require.NoError(t, err)
		suspended := true
		suspend := func() Account {
			a, err := first.ChangeAccount(WithIdempotencyKey(t.Context(), "one-change-of-many"), account, AccountChange{Suspended: &suspended})
			require.NoError(t, err)
			return a
		}
		require.True(t, suspend().Pending)
		require.True(t, suspend().Pending)
		_, err = w.config.Access.Exec(`DROP TRIGGER refuse`)
		require.NoError(t, err)
		require.False(t, suspend().Pending)
	})
}

// TestACallerThatLeavesIsNotToldThatEdgesKnow.
func TestACallerThatLeavesIsNotToldThatEdgesKnow(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, awaitProjection(ended, &pendingRow{projected: make(chan struct{})}))
}

// TestAKeyThatSpentItsMonthIsProjectedBehindRevocations, and compared when nobody
// knows whether that was stored.
func TestAKeyThatSpentItsMonthIsProjectedBehindRevocations(t *testing.T) {
	w := &Writer{projector: projectorOf(t, nil)}
	require.NoError(t, w.projector.compareIfAsked(t.Context()))
	w.projectKeys([]int64{5}, nil)
	require.Len(t, w.projector.pending, 1)
	require.False(t, w.projector.pending[0].takes)
	require.False(t, w.projector.compare)
	w.projectKeys([]int64{5}, errors.New("connection lost"))
	require.True(t, w.projector.compare)
}

// TestMessagesWhoseCallersHaveGoneAreForgotten within a second, also where nothing happens.
func TestMessagesWhoseCallersHaveGoneAreForgotten(t *testing.T) {
	w, _ := openUnrun(t)
	defer w.release()
	session := withEdge(t, w)
	gone := heldOperation("one", &syncproto.Sync{Session: session})
	waits := heldOperation("one", &syncproto.Sync{Session: session})
	gone.claim()
	w.held = []*operation{gone, waits}
	w.everySecond(t.Context())
	require.Equal(t, []*operation{waits}, w.held)
}

// TestTokensAreCheckedWhileTheyChange.
func TestTokensAreCheckedWhileTheyChange(t *testing.T) {
	w, _ := openUnrun(t)
	var running sync.WaitGroup
	for n := range 4 {
		running.Go(func() {
			for i := range 200 {
				name := fmt.Sprint("node-", n, "-", i)
				w.setToken(name, sha256.Sum256([]byte(name)))
				r := httptest.NewRequest(http.MethodPost, SyncPath, nil)
				r.Header.Set("Authorization", "Bearer "+name)
				if got, ok := w.edgeOf(r); !ok || got != name {
					t.Error("no token of", name)
				}
				w.offenders.note(name, ErrMalformed)
				if w.offenders.fenced(name) {
					t.Error(name, "is fenced")
				}
			}
		})
	}
	running.Wait()
	require.Zero(t, w.offenders.count())
}

// TestAMethodThatIsRefusedIsNotAllowed: the router would name OPTIONS, which is refused everywhere.
func TestAMethodThatIsRefusedIsNotAllowed(t *testing.T) {
	w, _, _ := runForRoles(t)
	for _, c := range [][3]string{
		{http.MethodOptions, "/v1/accounts", "GET, POST"}, {http.MethodPut, "/v1/accounts", "GET, POST"}, {http.MethodPost, "/readyz", "GET"},
	} {
		answer := answerTo(w, firstOperator, c[0], c[1], nil)
		require.Equal(t, http.StatusMethodNotAllowed, answer.Code, c)
		require.Equal(t, c[2], answer.Header().Get("Allow"), c)
	}
}
