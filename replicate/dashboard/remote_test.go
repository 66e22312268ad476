package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/mailtest"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/notice"
	"regedge/replicate/webhook"
)

// TestALedgerOnALibSQLServer goes through the pages with the ledger on a real server:
// its SQLite is older and its driver another.
func TestALedgerOnALibSQLServer(t *testing.T) {
	w := newWorldOn(t, sqldtest.Open(t, sqldtest.Primary(t)), withMail)
	b, account := w.owner("Acme", 100)
	require.Contains(t, b.submit("/keys", "/keys", "name", "billing").body, `id="secret"`)
	w.used(account, 1, w.clock(), 1, 3)
	require.Contains(t, b.get("/").body, "<dt>Credits left</dt><dd>97</dd>")
	require.Contains(t, b.get("/").body, "<title>20 Oct: 3 found, 0 not found, 0 failed</title>")
	require.Contains(t, b.get("/usage?from=2026-10-20&to=2026-10-20").body, `<th scope="row">billing</th><td class="number">3</td>`)
	require.Contains(t, b.get("/usage.csv").body, "2026-10-20,1,billing,companies,3,0,0")
	require.Contains(t, b.get("/credits").body, `<td class="number">−3</td><td class="number">97</td>`)
	require.Contains(t, b.get("/credits.csv?month=all").body, "2026-10-20,spent,billing,-3,97,")
	require.Contains(t, b.submit("/keys/1/revoke", "/keys/1/revoke").text(), "The key is revoked.")
	require.Contains(t, b.submit("/settings", "/settings/password", "current", password, "password", "another four plain words").text(), "is changed")

	token, _ := b.newToken("report", "read")
	status, answer := w.byAPI(token, "GET", "/v1/account/usage?by=key", "")
	require.Equal(t, 200, status)
	require.Contains(t, answer, `{"key":1,"found":3,"not_found":0,"failed":0}`)
	require.Contains(t, b.setWebhook("https://hooks.invalid/", "500").text(), "whsec_")
	server := mailtest.New(t, mailtest.Options{})
	sender := w.sender(notice.Way{Channel: notice.Webhook, Carrier: webhook.New(webhook.Config{Now: w.clock})}, w.mailBy(server))
	b.setMail("500")
	require.NoError(t, sender.Look(t.Context()))
	attempts, err := sender.Send(t.Context(), notice.Webhook)
	require.NoError(t, err)
	require.Equal(t, 1, attempts)
	_, err = sender.Send(t.Context(), notice.Mail)
	require.NoError(t, err)
	require.Len(t, server.Messages(), 1)
	require.Contains(t, b.get("/settings/mail").text(), `<th scope="row">balance.low</th>`)
	require.Contains(t, b.get("/settings/webhook").text(), `<th scope="row">balance.low</th>`)
	require.Contains(t, b.seen.text(), "the host is unknown, or not at a public address")

	operator := w.operator()
	app := operator.enrol()
	require.Contains(t, w.browser().enter("operator@example.com", app.code(0)).body, "Sign out")
	require.Contains(t, operator.get("/accounts?q=acm").body, "Acme")
	require.Contains(t, operator.submit("/accounts/1", "/accounts/1/suspension", "suspended", "1").text(), "is suspended")
	require.Contains(t, operator.get("/activity").body, "suspend account")
	require.Contains(t, operator.submit("/people/1/remove", "/people/1/remove").text(), "can no longer sign in")
	require.Contains(t, b.get("/").body, "<h1>Sign in</h1>")
	for range 10 {
		require.Equal(t, http.StatusUnprocessableEntity, w.browser().signIn("x@example.com", "wrong words in here").StatusCode)
	}
	require.Equal(t, http.StatusTooManyRequests, w.browser().signIn("x@example.com", "wrong words in here").StatusCode)
}
