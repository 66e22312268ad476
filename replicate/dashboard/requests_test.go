package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnOwnerFindsTheLastRequests(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	_, stranger := w.owner("Other", 10)
	key, err := w.client.AddKey(t.Context(), account, "billing")
	require.NoError(t, err)
	other, err := w.client.AddKey(t.Context(), stranger, "theirs")
	require.NoError(t, err)
	require.Contains(t, b.get("/requests").text(), "No request was made in the last week.")
	id := func(n int) string { return fmt.Sprintf("01KADN4XQ2%016d", n) }
	put := func(key int64, n, status int, code string) {
		w.exec(`INSERT INTO request_log (key, id, node, endpoint, status, code, credits) VALUES (?, ?, 'one', 'companies', ?, ?, 0)`, key, id(n), status, code)
	}
	for n := range 120 {
		put(key.ID, n, 200, "")
	}
	put(key.ID, 500, 402, "insufficient_credits")
	put(other.ID, 600, 402, "insufficient_credits")

	p := b.get("/requests")
	require.Contains(t, p.body, id(500))
	require.Contains(t, p.body, "billing")
	require.NotContains(t, p.body, id(600), "of another account")
	require.NotContains(t, p.body, id(5))
	require.Contains(t, b.get("/requests?cursor="+id(21)+"&search=").body, id(5), "the page behind")
	next := regexp.MustCompile(`href="(/requests\?[^"]*)" rel="next"`)
	earlier := next.FindStringSubmatch(b.get("/requests?key=" + fmt.Sprint(key.ID)).body)
	require.NotNil(t, earlier, "121 are more than a page")
	p = b.get(html.UnescapeString(earlier[1]))
	require.Contains(t, p.body, id(5), "its link leads to the page behind")
	require.NotContains(t, p.body, id(500))
	require.Contains(t, p.body, fmt.Sprintf(`<option value="%d" selected>`, key.ID))
	require.Contains(t, b.get("/requests?search=+"+id(7)+"+").body, "<code>"+id(7)+"</code>", "pasted with blanks")
	p = b.get("/requests?search=insufficient_credits&key=" + fmt.Sprint(key.ID))
	require.Contains(t, p.body, id(500))
	require.NotContains(t, p.body, id(100))
	require.Contains(t, b.get("/requests?search="+id(7)).body, "<code>"+id(7)+"</code>")
	require.NotContains(t, b.get("/requests?search="+id(600)).body, "<code>"+id(600))
	require.Equal(t, http.StatusNotFound, b.get("/requests?key="+fmt.Sprint(other.ID)).StatusCode)
	require.Equal(t, http.StatusNotFound, b.get("/requests?cursor=x").StatusCode)
	require.Contains(t, b.get(fmt.Sprint("/keys/", key.ID)).body, fmt.Sprintf(`href="/requests?key=%d"`, key.ID))
	for n := range 101 {
		put(key.ID, 1000+n, 404, "company_not_found")
	}
	earlier = next.FindStringSubmatch(b.get("/requests?search=company_not_found").body)
	require.NotNil(t, earlier)
	p = b.get(html.UnescapeString(earlier[1]))
	require.Contains(t, p.body, id(1000))
	require.NotContains(t, p.body, id(500), "the page behind has what was searched for, too")
}

// TestTheFormOfRequestsOffersSomeKeys: programs that rotate keys leave many behind, and the page listed all.
func TestTheFormOfRequestsOffersSomeKeys(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	for n := range 60 {
		w.exec(`INSERT INTO api_key (id, account, name, hash, shown, created_at, revoked_at) VALUES (?, ?, 'old', ?, 'abcd', 0, 1)`, 100+n, account, []byte{byte(n)})
	}
	p := b.get("/requests?key=101")
	require.Contains(t, p.body, `<option value="101" selected>`)
	require.Contains(t, p.body, `<option value="159">`)
	require.NotContains(t, p.body, `<option value="102">`)
	require.NotContains(t, b.get("/usage").body, `<option value="102">`)
}
