package writer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// household is an account with a key, some credits and a token of its owner.
type household struct {
	account int64
	key     NewKey
	token   string
	tokenID int64
}

func newHousehold(t *testing.T, first *Client, name string, role Role) household {
	t.Helper()
	a, err := first.AddAccount(t.Context(), name, "", "starter")
	require.NoError(t, err)
	k, err := first.AddKey(t.Context(), a.ID, name+"'s key")
	require.NoError(t, err)
	_, err = first.ChangeCredits(t.Context(), a.ID, CreditChange{Amount: 100})
	require.NoError(t, err)
	made, err := first.AddOwnerToken(WithAct(t.Context(), Act{Actor: name + "@example.com", Account: a.ID, Name: "create token"}), a.ID, "ci", role, time.Hour)
	require.NoError(t, err)
	return household{a.ID, k, made.Token, made.ID}
}

// TestWhatAnOwnersProgramDoesIsAnActOfItsAccount, whatever the number of its token.
func TestWhatAnOwnersProgramDoesIsAnActOfItsAccount(t *testing.T) {
	w, first, _ := runForRoles(t)
	_, err := first.AddAccount(t.Context(), "another", "", "starter")
	require.NoError(t, err)
	ann := newHousehold(t, first, "ann", RoleAll)
	require.NotEqual(t, ann.account, ann.tokenID)
	answer, _ := ownAsk(w, ann.token, http.MethodPost, "/v1/account/keys", `{"name":"of a program"}`)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	audit, err := first.AuditPage(t.Context(), ann.account, ListQuery{Search: "/v1/account/keys"})
	require.NoError(t, err)
	require.Len(t, audit.Data, 1)
}

// ownAsk asks with an owner's token and returns status and code.
func ownAsk(w *Writer, token, method, path, body string, header ...string) (answer *httptest.ResponseRecorder, code string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer = httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, r)
	var p problem
	json.Unmarshal(answer.Body.Bytes(), &p)
	return answer, p.Code
}

func TestAnOwnersTokenReadsAndChangesItsAccount(t *testing.T) {
	w, first, _ := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleAll)
	require.True(t, strings.HasPrefix(ann.token, "reg_owner_"))
	for kind, spent := range map[syncproto.Kind][2]int64{syncproto.Volume: {7, 70}, syncproto.Volume + 1: {700, 7000}} {
		for back, n := range [3]int64{spent[0], spent[1], 5} { // the last one was counted by a clock that was ahead
			_, err := w.config.Ledger.Exec(`INSERT INTO pool (kind, subject, time_window, compensated, spent, lost) VALUES (?, ?, ?, 0, ?, 0)`,
				kind, ann.account, syncproto.Month(w.now())-[3]int32{0, 1, -1}[back], n)
			require.NoError(t, err)
		}
	}

	answer, _ := ownAsk(w, ann.token, "GET", "/v1/account", "")
	var own OwnAccount
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &own))
	require.Equal(t, []any{"ann", int64(100), int64(100), 1, "starter", int64(7)}, []any{own.Name, own.Balance, own.Bought, own.Keys, own.Plan.ID, own.MonthUsed})
	_, err := w.config.Ledger.Exec(`UPDATE account SET bought = 100, spent = 20, lost = 3, leased = 7`)
	require.NoError(t, err)
	answer, _ = ownAsk(w, ann.token, "GET", "/v1/account", "")
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &own))
	require.Equal(t, own.Bought+own.Compensated, own.Balance+own.Spent+own.Lost, "%+v", own)
	require.EqualValues(t, 77, own.Balance, "what is leased can be spent")

	answer, _ = ownAsk(w, ann.token, "POST", "/v1/account/keys", `{"name":"second"}`, IdempotencyHeader, "one-change-of-ann")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	var made, again NewKey
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &made))
	answer, _ = ownAsk(w, ann.token, "POST", "/v1/account/keys", `{"name":"second"}`, IdempotencyHeader, "one-change-of-ann")
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &again))
	require.Equal(t, []any{made.Secret, "true"}, []any{again.Secret, answer.Header().Get(ReplayedHeader)}, "made once")
	answer, code := ownAsk(w, ann.token, "POST", "/v1/account/keys", `{"name":"third"}`, IdempotencyHeader, "one-change-of-ann")
	require.Equal(t, "idempotency_key_reused", code, answer.Body)

	path := fmt.Sprint("/v1/account/keys/", made.ID)
	for _, call := range []struct{ method, path, body string }{
		{"GET", path, ""}, {"PATCH", path, `{"name":"renamed"}`}, {"POST", path + "/rotate", `{"overlap_seconds":60}`}, {"DELETE", path, ""},
	} {
		answer, _ = ownAsk(w, ann.token, call.method, call.path, call.body)
		require.Equal(t, http.StatusOK, answer.Code, "%s %s: %s", call.method, call.path, answer.Body)
	}
	answer, _ = ownAsk(w, ann.token, "GET", "/v1/account/keys?search=renamed", "")
	var keys Page[Key]
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &keys))
	require.Len(t, keys.Data, 1)
	require.NotNil(t, keys.Data[0].Revoked)

	audit, err := first.AuditPage(t.Context(), ann.account, ListQuery{Limit: 10})
	require.NoError(t, err)
	var acts []string
	for _, e := range audit.Data[:4] {
		require.Equal(t, fmt.Sprintf("owner's token %d (ci)", ann.tokenID), e.Actor)
		acts = append(acts, e.Act)
	}
	require.Equal(t, []string{"DELETE " + path, "POST " + path + "/rotate", "PATCH " + path, "POST /v1/account/keys"}, acts)
	var stored int
	require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM owner_token WHERE instr(hash, ?)`, ann.token).Scan(&stored))
	require.Zero(t, stored, "only the hash is stored")
	list, err := first.OwnerTokens(t.Context(), ann.account)
	require.NoError(t, err)
	require.Equal(t, []any{"ci", RoleAll, "ann@example.com", false}, []any{list[0].Name, list[0].Role, list[0].MadeBy, list[0].Ended})
}

// TestAnOwnersTokenReachesNothingOfAnother tries every route with the numbers of another account.
func TestAnOwnersTokenReachesNothingOfAnother(t *testing.T) {
	w, first, clock := runForRoles(t)
	ann, bob := newHousehold(t, first, "ann", RoleAll), newHousehold(t, first, "bob", RoleAll)
	_, err := w.config.Ledger.Exec(`INSERT INTO usage (account, hour, key, endpoint, outcome, count) VALUES (?, ?, ?, 1, 1, 77777)`,
		bob.account, w.now()/3_600_000, bob.key.ID)
	require.NoError(t, err)
	state := func() (all string) {
		for _, query := range []string{
			`SELECT json_group_array(json_array(id, account, name, hex(hash), revoked_at, expires_at, old_ends_at)) FROM api_key WHERE account = ?`,
			`SELECT json_group_array(json_array(id, name, plan, suspended, bought)) FROM account WHERE id = ?`,
			`SELECT json_group_array(json_array(id, hex(hash), ends_at)) FROM owner_token WHERE account = ?`,
			`SELECT json_group_array(json_array(at, actor, act)) FROM audit WHERE account = ?`,
		} {
			var part string
			require.NoError(t, w.config.Ledger.QueryRow(query, bob.account).Scan(&part))
			all += part
		}
		return all
	}
	before, tried := state(), 0
	missing := map[string]string{} // a key that nobody has, for comparison
	for _, r := range w.table() {
		if r.needs == anyone {
			continue
		}
		ids := []int64{bob.key.ID, bob.account, bob.tokenID}
		if r.needs == owners {
			ids = []int64{bob.key.ID, 999_999}
		}
		for _, id := range ids {
			w.gate = newOwnerGate(clock.now)
			path := strings.NewReplacer(":id", decimal(id), ":name", "bob").Replace(r.path)
			for _, body := range []string{`{}`, `{"name":"taken over"}`, `{"overlap_seconds":0}`, `{"account":` + decimal(bob.account) + `,"name":"x"}`, `{"amount":5}`} {
				tried++
				answer, code := ownAsk(w, ann.token, r.method, path, body)
				require.NotContains(t, answer.Body.String(), "bob", "%s %s", r.method, path)
				require.NotContains(t, answer.Body.String(), "77777", "%s %s", r.method, path)
				switch {
				case r.needs != owners:
					require.Equal(t, http.StatusUnauthorized, answer.Code, "%s %s", r.method, path)
				case strings.Contains(r.path, ":id") && answer.Code != http.StatusBadRequest:
					require.Equal(t, "not_found", code, "%s %s: %s", r.method, path, answer.Body)
					said := strings.ReplaceAll(answer.Body.String(), decimal(id), "ID")
					said, _, _ = strings.Cut(said, `"request_id"`)
					if known, ok := missing[r.method+r.path]; ok {
						require.Equal(t, known, said, "as for a key that nobody has")
					}
					missing[r.method+r.path] = said
				}
			}
		}
	}
	require.Greater(t, tried, 200)
	for _, query := range []string{"", "&account=" + decimal(bob.account), "&key=" + decimal(bob.key.ID)} {
		answer, _ := ownAsk(w, ann.token, "GET", "/v1/account/usage?by=key"+query, "")
		require.NotContains(t, answer.Body.String(), "77777")
	}
	require.Equal(t, before, state(), "nothing of the other account was changed")
}

// TestAnOwnersIdempotencyKeyIsNotAnothers: the paths of owners have no account in them, so what two owners send may be the
// same. One would get the other's secret, and no key of its own.
func TestAnOwnersIdempotencyKeyIsNotAnothers(t *testing.T) {
	w, first, _ := runForRoles(t)
	var made [2]NewKey
	for n, name := range []string{"ann", "bob"} {
		owner := newHousehold(t, first, name, RoleAll)
		answer, _ := ownAsk(w, owner.token, http.MethodPost, "/v1/account/keys", `{"name":"second"}`, IdempotencyHeader, "the-same-key-of-both")
		require.Equal(t, http.StatusOK, answer.Code, answer.Body)
		require.Empty(t, answer.Header().Get(ReplayedHeader))
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &made[n]))
		require.Equal(t, owner.account, made[n].Account)
	}
	require.NotEqual(t, made[0].Secret, made[1].Secret)
}

func TestTokensThatMayNotAreToldWhy(t *testing.T) {
	w, first, clock := runForRoles(t)
	ann, reader := newHousehold(t, first, "ann", RoleAll), newHousehold(t, first, "rea", RoleRead)
	require.NoError(t, func() error {
		_, err := first.EndOwnerToken(t.Context(), newHousehold(t, first, "eve", RoleAll).tokenID)
		return err
	}())
	const change = `{"name":"x"}`
	expect := func(token, method, path string, status int, code, words string) {
		t.Helper()
		answer, got := ownAsk(w, token, method, path, change)
		require.Equal(t, []any{status, code}, []any{answer.Code, got}, answer.Body)
		require.Contains(t, answer.Body.String(), words)
		require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"))
		require.NotEmpty(t, answer.Header().Get(RequestIDHeader))
	}
	expect(reader.token, "POST", "/v1/account/keys", 403, "forbidden", "the token ci may read only")
	expect("", "GET", "/v1/account", 401, "unauthorized", "missing or unknown")
	expect("reg_owner_unknown", "GET", "/v1/account", 401, "unauthorized", "missing or unknown")
	expect(firstOperator, "GET", "/v1/account", 403, "forbidden", "this call takes an owner's token; an operators' token opens /v1/accounts")
	expect(ann.token, "GET", "/v1/accounts", 401, "unauthorized", "an owner's token opens /v1/account")
	expect(ann.token, "GET", "/v1/account?x=1", 400, "malformed", "there is no parameter")
	expect(ann.token, "PUT", "/v1/account", 405, "method_not_allowed", "")

	suspended := true
	_, err := first.ChangeAccount(t.Context(), ann.account, AccountChange{Suspended: &suspended})
	require.NoError(t, err)
	expect(ann.token, "POST", "/v1/account/keys", 403, "account_suspended", "it can be read, not changed")
	expect(ann.token, "DELETE", fmt.Sprint("/v1/account/keys/", ann.key.ID), 403, "account_suspended", "suspended")
	answer, _ := ownAsk(w, ann.token, "GET", "/v1/account", "")
	require.Contains(t, answer.Body.String(), `"suspended":true`)

	ended, err := first.EndOwnerToken(t.Context(), ann.tokenID)
	require.NoError(t, err)
	require.True(t, ended.Ended)
	expect(ann.token, "GET", "/v1/account", 401, "token_ended", "the token ci ended at ")
	_, err = first.EndOwnerToken(t.Context(), 999)
	require.ErrorIs(t, err, ErrNotFound)
	clock.pass(time.Hour)
	expect(reader.token, "GET", "/v1/account", 401, "token_ended", "the token ci ended at ")
}

func TestOwnersTokensHaveLimits(t *testing.T) {
	w, first, clock := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleAll)
	for range MaxOwnerTokens - 1 {
		_, err := first.AddOwnerToken(t.Context(), ann.account, "more", RoleRead, time.Minute)
		require.NoError(t, err)
	}
	_, err := first.AddOwnerToken(t.Context(), ann.account, "more", RoleRead, time.Minute)
	require.ErrorIs(t, err, ErrTooManyTokens)
	for _, bad := range []struct {
		name string
		role Role
		life time.Duration
	}{{"", RoleRead, 1e9}, {"x\n", RoleRead, 1e9}, {"x", RoleNodes, 1e9}, {"x", "", 1e9}, {"x", RoleRead, 0}, {"x", RoleRead, MaxOwnerTokenLife + 1e9}} {
		_, err := first.AddOwnerToken(t.Context(), ann.account, bad.name, bad.role, bad.life)
		require.ErrorIs(t, err, ErrMalformed, "%v", bad)
	}
	_, err = first.AddOwnerToken(t.Context(), 999, "x", RoleRead, time.Minute)
	require.ErrorIs(t, err, ErrNotFound)

	ask := func(token string) (int, string) {
		answer, _ := ownAsk(w, token, "GET", "/v1/account", "")
		return answer.Code, answer.Header().Get("Retry-After")
	}
	bob := newHousehold(t, first, "bob", RoleRead)
	for i := range requestsPerToken {
		status, _ := ask(ann.token)
		require.Equal(t, http.StatusOK, status, i)
	}
	status, after := ask(ann.token)
	require.Equal(t, []any{http.StatusTooManyRequests, "61"}, []any{status, after})
	for i := range wrongsPerAddress {
		status, _ := ask(fmt.Sprint("reg_owner_", i))
		require.Equal(t, http.StatusUnauthorized, status)
	}
	status, after = ask("reg_owner_x")
	require.Equal(t, []any{http.StatusTooManyRequests, "901"}, []any{status, after})
	status, _ = ask(bob.token)
	require.Equal(t, http.StatusTooManyRequests, status, "who was never let in waits with the others of the address")
	clock.pass(ownerWindow)
	status, _ = ask(ann.token)
	require.Equal(t, http.StatusOK, status, "who was let in before is not kept out by others")
	clock.pass(wrongWindow)
	status, _ = ask(bob.token)
	require.Equal(t, http.StatusOK, status)
	status, _ = ask("reg_owner_x")
	require.Equal(t, http.StatusUnauthorized, status)
}

// TestATokenThatHasEndedIsTakenNoMoreOftenThanOthers: a program that goes on with it would have the ledger asked without end.
func TestATokenThatHasEndedIsTakenNoMoreOftenThanOthers(t *testing.T) {
	w, first, clock := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleAll)
	made, err := first.AddOwnerToken(t.Context(), ann.account, "ended", RoleRead, time.Hour)
	require.NoError(t, err)
	_, err = first.EndOwnerToken(t.Context(), made.ID)
	require.NoError(t, err)
	ask := func(token string) int {
		answer, _ := ownAsk(w, token, "GET", "/v1/account", "")
		return answer.Code
	}
	for i := range requestsPerToken {
		require.Equal(t, http.StatusUnauthorized, ask(made.Token), i)
	}
	require.Equal(t, http.StatusTooManyRequests, ask(made.Token))
	require.Equal(t, http.StatusOK, ask(ann.token), "another of the account")
	clock.pass(ownerWindow)
	require.Equal(t, http.StatusUnauthorized, ask(made.Token))
}

// TestAnOwnersProgramMakesNoMillionChanges renames a key with two tokens, each below its own limit.
func TestAnOwnersProgramMakesNoMillionChanges(t *testing.T) {
	w, first, clock := runForRoles(t)
	ann, bob := newHousehold(t, first, "ann", RoleAll), newHousehold(t, first, "bob", RoleAll)
	other, err := first.AddOwnerToken(t.Context(), ann.account, "other", RoleAll, 48*time.Hour)
	require.NoError(t, err)
	rename := func(h household, token string) *httptest.ResponseRecorder {
		answer, _ := ownAsk(w, token, "PATCH", fmt.Sprint("/v1/account/keys/", h.key.ID), `{"name":"x"}`)
		return answer
	}
	for i := range changesPerAccount {
		if i%requestsPerToken == 0 {
			clock.pass(ownerWindow)
		}
		require.Equal(t, http.StatusOK, rename(ann, []string{ann.token, other.Token}[i%2]).Code, i)
	}
	answer := rename(ann, other.Token)
	require.Equal(t, http.StatusTooManyRequests, answer.Code)
	require.NotEmpty(t, answer.Header().Get("Retry-After"))
	answer, _ = ownAsk(w, other.Token, "GET", "/v1/account", "")
	require.Equal(t, http.StatusOK, answer.Code, "it may read")
	require.Equal(t, http.StatusOK, rename(bob, bob.token).Code)
	clock.pass(changeWindow)
	require.Equal(t, http.StatusOK, rename(ann, other.Token).Code)
}

func TestTheGateForgets(t *testing.T) {
	now := time.Unix(0, 0)
	g := newOwnerGate(func() time.Time { return now })
	for i := range 2*maxGateEntries + 1 {
		g.wrong(fmt.Sprint("address ", i))
		require.NoError(t, g.change(int64(i)))
		require.NoError(t, g.enter(int64(i), [32]byte{byte(i), byte(i >> 8), byte(i >> 16)}))
	}
	require.LessOrEqual(t, len(g.wrongs), maxGateEntries)
	require.LessOrEqual(t, len(g.asked), maxGateEntries)
	require.LessOrEqual(t, len(g.changes), maxGateEntries)
	require.LessOrEqual(t, len(g.let), maxGateEntries)
	for range wrongsPerAddress {
		g.wrong("2001:db8::1")
	}
	require.ErrorIs(t, g.before("2001:db8::2", [32]byte{255}), ErrTooMany, "one network")
	require.NoError(t, g.before("2001:db8:1::2", [32]byte{255}))
}

func TestAPersonsTokensEndWithThem(t *testing.T) {
	w, first, _ := runForRoles(t)
	ann, bob := newHousehold(t, first, "ann", RoleAll), newHousehold(t, first, "bob", RoleAll)
	require.NoError(t, w.Commit(t.Context(), Act{}, func(ctx context.Context, tx *sql.Tx, now int64) error {
		return EndOwnerTokensOf(ctx, tx, now, "ann@example.com")
	}))
	_, code := ownAsk(w, ann.token, "GET", "/v1/account", "")
	require.Equal(t, "token_ended", code)
	answer, _ := ownAsk(w, bob.token, "GET", "/v1/account", "")
	require.Equal(t, http.StatusOK, answer.Code)
}

// TestTheMonthOfAnAccountIsThatOfUTC, in which its calls are counted, until its last hour.
func TestTheMonthOfAnAccountIsThatOfUTC(t *testing.T) {
	w, first, clock := runForRoles(t)
	now := clock.now().UTC()
	clock.pass(time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Add(-30 * time.Minute).Sub(now))
	ann := newHousehold(t, first, "ann", RoleRead)
	month := func() string {
		answer, _ := ownAsk(w, ann.token, "GET", "/v1/account", "")
		var own OwnAccount
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &own), answer.Body)
		return own.Month
	}
	require.Equal(t, now.Format("2006-01"), month())
	clock.pass(30 * time.Minute)
	require.Equal(t, clock.now().UTC().Format("2006-01"), month())
	require.NotEqual(t, now.Format("2006-01"), month())
}

// TestTheChangesOfAnAccountAreCountedWhicheverTokenMakesThem: else each new token would bring a thousand.
func TestTheChangesOfAnAccountAreCountedWhicheverTokenMakesThem(t *testing.T) {
	w, first, _ := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleAll)
	second, err := first.AddOwnerToken(t.Context(), ann.account, "second", RoleAll, time.Hour)
	require.NoError(t, err)
	path := fmt.Sprint("/v1/account/keys/", ann.key.ID)
	for range changesPerAccount - 1 {
		require.NoError(t, w.gate.change(ann.account))
	}
	answer, _ := ownAsk(w, second.Token, "PATCH", path, `{"name":"x"}`)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	for _, token := range []string{ann.token, second.Token} {
		answer, _ = ownAsk(w, token, "PATCH", path, `{"name":"y"}`)
		require.Equal(t, http.StatusTooManyRequests, answer.Code)
	}
}

// TestAnAddressOfIPv4IsCountedAlone, also as IPv6 writes it: a /64 would hold all of them.
func TestAnAddressOfIPv4IsCountedAlone(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "::ffff:192.0.2.1", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "": "",
	} {
		require.Equal(t, want, Network(address))
	}
}

// TestATokenThatMayOnlyReadUsesUpNobodysChanges: its refused ones are none.
func TestATokenThatMayOnlyReadUsesUpNobodysChanges(t *testing.T) {
	w, first, _ := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleAll)
	reader, err := first.AddOwnerToken(t.Context(), ann.account, "reader", RoleRead, time.Hour)
	require.NoError(t, err)
	path := fmt.Sprint("/v1/account/keys/", ann.key.ID)
	for range changesPerAccount - 1 {
		require.NoError(t, w.gate.change(ann.account))
	}
	for range 3 {
		_, code := ownAsk(w, reader.Token, "PATCH", path, `{"name":"x"}`)
		require.Equal(t, "forbidden", code)
	}
	answer, _ := ownAsk(w, ann.token, "PATCH", path, `{"name":"x"}`)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	answer, _ = ownAsk(w, ann.token, "PATCH", path, `{"name":"y"}`)
	require.Equal(t, http.StatusTooManyRequests, answer.Code)
}

// TestAProgramWithATokenThatHasEndedKeepsNobodyOut of those behind the same address: it guesses nothing.
func TestAProgramWithATokenThatHasEndedKeepsNobodyOut(t *testing.T) {
	w, first, _ := runForRoles(t)
	ann, bob := newHousehold(t, first, "ann", RoleRead), newHousehold(t, first, "bob", RoleRead)
	_, err := first.EndOwnerToken(t.Context(), ann.tokenID)
	require.NoError(t, err)
	for range 2 * wrongsPerAddress {
		_, code := ownAsk(w, ann.token, "GET", "/v1/account", "")
		require.Equal(t, "token_ended", code)
	}
	answer, _ := ownAsk(w, bob.token, "GET", "/v1/account", "")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
}
