package writer

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSumsOfAnAccountWaitForItsTurn, each for ten seconds, and nothing is kept of those that are done.
func TestSumsOfAnAccountWaitForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sums := newSumTurns()
		first, err := sums.Enter(t.Context(), 1)
		require.NoError(t, err)
		other, err := sums.Enter(t.Context(), 2)
		require.NoError(t, err, "another account has its own")
		other()
		began := time.Now()
		_, err = sums.Enter(t.Context(), 1)
		require.ErrorIs(t, err, ErrTooMany)
		require.Equal(t, sumWait, time.Since(began))
		time.AfterFunc(time.Second, first)
		second, err := sums.Enter(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, sumWait+time.Second, time.Since(began))
		second()
		require.Empty(t, sums.of)
		var leave []func()
		for _, ctx := range []context.Context{t.Context(), OfOperator(t.Context())} {
			left, err := sums.Enter(ctx, 1)
			require.NoError(t, err, "an operator waits for no owner")
			leave = append(leave, left)
		}
		_, err = sums.Enter(t.Context(), 2)
		require.ErrorIs(t, err, ErrTooMany, "two are made at once")
		go func() { _, _ = sums.Enter(t.Context(), 2) }() // gives up after ten seconds, and its place with it
		time.Sleep(sumWait / 2)
		time.AfterFunc(sumWait*3/4, leave[0])
		third, err := sums.Enter(t.Context(), 2)
		require.NoError(t, err)
		leave[1]()
		third()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		leave[0], err = sums.Enter(t.Context(), 1)
		require.NoError(t, err)
		_, err = sums.Enter(gone, 1)
		require.ErrorIs(t, err, context.Canceled)
		leave[0]()
		require.Empty(t, sums.of)
		require.Empty(t, sums.all)
	})
}

// TestNobodysSumsTakeAllOfTheWriter asks for usage while as many sums are being made as may be.
func TestNobodysSumsTakeAllOfTheWriter(t *testing.T) {
	w, first, clock := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleRead)
	w.sumTurns.Wait = time.Millisecond
	var leave []func()
	for other := range int64(sumsAtOnce) {
		left, err := w.sumTurns.Enter(t.Context(), 998+other)
		require.NoError(t, err)
		leave = append(leave, left)
	}
	for _, query := range []string{"", "?format=csv"} {
		answer, code := ownAsk(w, ann.token, "GET", "/v1/account/usage"+query, "")
		require.Equal(t, []any{http.StatusTooManyRequests, "too_many_requests"}, []any{answer.Code, code}, query)
		require.NotEmpty(t, answer.Header().Get("Retry-After"))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.SumUsage(ended, UsageSumQuery{Account: ann.account})
	require.Error(t, err)
	for _, left := range leave {
		left()
	}
	own, err := w.sumTurns.Enter(t.Context(), ann.account)
	require.NoError(t, err)
	defer own()
	_, err = first.UsageSums(t.Context(), UsageSumQuery{Account: ann.account, Days: Days{clock.now(), clock.now()}})
	require.NoError(t, err, "an operator does not wait for an owner's sum")
	answer, _ := ownAsk(w, ann.token, "GET", "/v1/account/usage", "")
	require.Equal(t, http.StatusTooManyRequests, answer.Code)
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
