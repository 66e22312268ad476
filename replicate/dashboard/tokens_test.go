package dashboard_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// byAPI asks the writer's API at the dashboard's address with a token.
func (w *world) byAPI(token, method, path, body string) (status int, answer string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	require.NoError(w.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := w.server.Client().Do(r)
	require.NoError(w.t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	return response.StatusCode, string(content)
}

var shownToken = regexp.MustCompile(`value="(reg_owner_[0-9a-f]{48})"`)

// newToken makes a token on the page and returns it with its number.
func (b *browser) newToken(name, role string) (token string, id int) {
	b.t.Helper()
	found := shownToken.FindStringSubmatch(b.submit("/settings/tokens", "/settings/tokens", "name", name, "role", role, "days", "90").body)
	require.NotNil(b.t, found, b.seen.body)
	return found[1], b.count(`SELECT max(id) FROM owner_token`)
}

func TestAnOwnerMakesAndEndsATokenForTheirPrograms(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 1000)
	require.Contains(t, b.get("/settings").body, `href="/settings/tokens"`)
	token, id := b.newToken("nightly <report>", "all")
	require.Equal(t, int(w.clock().Add(90*24*time.Hour).UnixMilli()), w.count(`SELECT ends_at FROM owner_token`))
	require.Equal(t, "no-store", b.seen.Header.Get("Cache-Control"))
	require.Contains(t, b.seen.text(), b.server.URL+"/v1/account")
	for _, path := range []string{"/settings/tokens", "/activity"} {
		require.NotContains(t, b.get(path).body, token)
		require.Contains(t, b.get(path).text(), "nightly <report>")
	}
	status, answer := w.byAPI(token, "GET", "/v1/account", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, `"balance":1000`)
	status, _ = w.byAPI(token, "POST", "/v1/account/keys", `{"name":"by API"}`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, b.get("/keys").body, "by API")
	require.Contains(t, b.get("/activity").text(), fmt.Sprintf("owner's token %d (nightly <report>)", id))
	require.Contains(t, b.get("/settings/api").text(), `<span class="verb POST">POST</span> <code>/v1/account/keys/{id}/rotate</code>`)
	require.NotContains(t, b.get("/settings/api").text(), "/v1/accounts")
	require.Contains(t, b.seen.body, `<a href="/settings/tokens">Your tokens</a>`)

	end := fmt.Sprintf("/settings/tokens/%d/end", id)
	require.Contains(t, b.get(end).text(), "This can't be undone")
	require.Contains(t, b.post(end).text(), "The token has ended.")
	status, answer = w.byAPI(token, "GET", "/v1/account", "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, answer, `"code":"token_ended"`)
	require.Equal(t, http.StatusNotFound, b.get(end).StatusCode)
}

func TestOwnersReachOnlyTheirOwnTokens(t *testing.T) {
	w := newWorld(t)
	acme, _ := w.owner("Acme", 0)
	other, _ := w.owner("Other", 0)
	_, id := other.newToken("theirs", "read")
	end := fmt.Sprintf("/settings/tokens/%d/end", id)
	require.Equal(t, http.StatusNotFound, acme.get(end).StatusCode)
	acme.get("/settings/tokens")
	require.NotContains(t, acme.seen.body, "theirs")
	require.Equal(t, http.StatusNotFound, acme.post(end).StatusCode)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM owner_token WHERE ends_at > ?`, w.clock().UnixMilli()))
	require.Equal(t, http.StatusNotFound, w.operator().get("/settings/tokens").StatusCode, "operators have tokens of their own")
	for _, form := range [][]string{{"role", "nodes"}, {"days", "0"}, {"days", "366"}, {"days", ""}} {
		fields := append([]string{"name", "x", "role", "read", "days", "30"}, form...)
		require.Equal(t, http.StatusBadRequest, acme.submit("/settings/tokens", "/settings/tokens", fields...).StatusCode, form)
	}
	require.Contains(t, acme.submit("/settings/tokens", "/settings/tokens", "name", " ", "role", "read", "days", "30").text(), "The token needs a name")
	for i := range 10 {
		acme.newToken(fmt.Sprint("token ", i), "read")
	}
	require.Equal(t, http.StatusNotFound, acme.get(end).StatusCode, "nor is it the next one of their own")
	acme.get("/settings/tokens")
	require.Equal(t, http.StatusNotFound, acme.post(end).StatusCode)
	require.Equal(t, 11, w.count(`SELECT count(*) FROM owner_token WHERE ends_at > ?`, w.clock().UnixMilli()))
	require.Contains(t, acme.submit("/settings/tokens", "/settings/tokens", "name", "x", "role", "read", "days", "30").text(), "There are 10 active tokens")
}

func TestTheNewestEndedTokensAreListed(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	for round := range 3 {
		for i := range 10 {
			b.newToken(fmt.Sprintf("token %d-%d", round, i), "read")
		}
		w.pass(time.Minute)
		w.exec(`UPDATE owner_token SET ends_at = ?1 WHERE ends_at > ?1`, w.clock().UnixMilli())
	}
	listed := b.get("/settings/tokens").text()
	require.Contains(t, listed, "token 2-9")
	require.Contains(t, listed, "token 1-0")
	require.NotContains(t, listed, "token 0-9")
}

func TestTheTokensOfARemovedPersonEnd(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	w.person("colleague@example.com", account)
	token, _ := b.newToken("mine", "read")
	colleagues, _ := w.browser().requireIn("colleague@example.com").newToken("theirs", "read")
	remove := fmt.Sprintf("/people/%d/remove", w.count(`SELECT id FROM user WHERE email = 'acme@example.com'`))
	require.Contains(t, w.operator().submit(remove, remove).text(), "can no longer sign in")
	status, _ := w.byAPI(token, "GET", "/v1/account", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = w.byAPI(colleagues, "GET", "/v1/account", "")
	require.Equal(t, http.StatusOK, status)
	w.pass(91 * 24 * time.Hour)
	status, _ = w.byAPI(colleagues, "GET", "/v1/account", "")
	require.Equal(t, http.StatusUnauthorized, status, "90 days were chosen")
}
