package writer

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSumsOfUsageTakeTurns(t *testing.T) {
	turns := newSumTurns(2, 10*time.Millisecond)
	refused := func(account int64) {
		t.Helper()
		_, err := turns.enter(t.Context(), account)
		require.ErrorIs(t, err, ErrTooMany, account)
	}
	first, err := turns.enter(t.Context(), 1)
	require.NoError(t, err)
	refused(1)
	second, err := turns.enter(t.Context(), 2)
	require.NoError(t, err)
	refused(3)
	refused(3) // the one before left nothing taken
	first()
	third, err := turns.enter(t.Context(), 3)
	require.NoError(t, err)
	refused(1)
	second()
	third()
	again, err := turns.enter(t.Context(), 1)
	require.NoError(t, err)
	again()
}

// TestNobodysSumsTakeAllOfTheWriter asks for usage while as many sums are being made as may be.
func TestNobodysSumsTakeAllOfTheWriter(t *testing.T) {
	w, first, _ := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleRead)
	before := usageTurns
	usageTurns = newSumTurns(1, time.Millisecond)
	t.Cleanup(func() { usageTurns = before })
	leave, err := usageTurns.enter(t.Context(), 999)
	require.NoError(t, err)
	for _, query := range []string{"", "?format=csv"} {
		answer, code := ownAsk(w, ann.token, "GET", "/v1/account/usage"+query, "")
		require.Equal(t, []any{http.StatusTooManyRequests, "too_many_requests"}, []any{answer.Code, code}, query)
		require.NotEmpty(t, answer.Header().Get("Retry-After"))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = SumUsage(ended, w.config.Ledger, UsageSumQuery{Account: ann.account})
	require.Error(t, err)
	leave()
	answer, _ := ownAsk(w, ann.token, "GET", "/v1/account/usage", "")
	require.Equal(t, http.StatusOK, answer.Code)
}

// TestAnOwnersProgramMakesFewKeysADay makes and revokes keys, of which only five may be active. Each stays in
// the ledger for ever.
func TestAnOwnersProgramMakesFewKeysADay(t *testing.T) {
	w, first, clock := runForRoles(t)
	ann, bob := newHousehold(t, first, "ann", RoleAll), newHousehold(t, first, "bob", RoleAll)
	_, err := w.config.Ledger.Exec(`INSERT INTO api_key (account, name, hash, shown, created_at, revoked_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT ?, '', CAST('made up ' || i AS BLOB), 'abcd', ?, ? FROM n`,
		newKeysADay-2, ann.account, w.now(), w.now())
	require.NoError(t, err)
	add := func(h household) (int, string) {
		answer, code := ownAsk(w, h.token, "POST", "/v1/account/keys", `{"name":"x"}`)
		if answer.Code == http.StatusTooManyRequests {
			require.Equal(t, "86401", answer.Header().Get("Retry-After"))
		}
		return answer.Code, code
	}
	require.NoError(t, second(add(ann)))
	_, code := add(ann)
	require.Equal(t, "too_many_requests", code)
	require.NoError(t, second(add(bob)))
	_, err = first.AddKey(t.Context(), ann.account, "by operators")
	require.NoError(t, err)
	ann.token = func() string {
		made, err := first.AddOwnerToken(t.Context(), ann.account, "longer", RoleAll, 48*time.Hour)
		require.NoError(t, err)
		return made.Token
	}()
	clock.pass(24 * time.Hour)
	require.NoError(t, second(add(ann)))
}

// second is nil for a success.
func second(status int, code string) error {
	if status == http.StatusOK {
		return nil
	}
	return errorOf(code)
}
