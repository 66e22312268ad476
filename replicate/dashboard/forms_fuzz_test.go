package dashboard_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// formOf is a form that somebody sees on a page, and where it is sent to.
type formOf struct {
	by     *browser
	on, to string
}

// FuzzForms sends any fields with each form, by somebody who may send it. The answer is a page and never
// 500, and the writer stays ready: a change that its ledger can't store would fail everybody else's.
func FuzzForms(f *testing.F) {
	w := newWorld(f)
	owner, _ := w.owner("Acme", 0)
	forms := []formOf{
		{owner, "/keys", "/keys"}, {owner, "/keys", "/keys/1/revoke"}, {owner, "/settings", "/settings/two-factor"},
		{owner, "/settings", "/settings/password"}, {w.operator(), "/accounts", "/accounts"},
	}
	operator := forms[len(forms)-1].by
	for _, to := range []string{"plan", "credits", "suspension", "invitations"} {
		forms = append(forms, formOf{operator, "/accounts/1", "/accounts/1/" + to})
	}
	forms = append(forms, formOf{operator, "/people", "/people"})
	for i, fields := range []string{
		"name=billing", "", "code=123456", "old=a&new=b", "name=Second&plan=starter&name=again", "plan=scale", "amount=-9223372036854775808&kind=bought&note=%00",
		"suspended=yes", "email=a%40example.com", "email=A@Example.com%0d%0aBcc:x&role=operator",
	} {
		f.Add(byte(i), fields)
	}
	f.Add(byte(6), "amount=1e3&kind=%ff")
	f.Add(byte(6), "%zz=1;amount=2")
	f.Fuzz(func(t *testing.T, which byte, fields string) {
		w.t = t
		form := forms[int(which)%len(forms)]
		values, _ := url.ParseQuery(fields) // what a browser can send
		form.by.get(form.on)
		found := tokenField.FindStringSubmatch(form.by.seen.body)
		require.NotNil(t, found, form.by.seen.body)
		values.Set("token", found[1])
		p := form.by.do(http.MethodPost, form.to, values)
		require.Less(t, p.StatusCode, 500, p.body)
		require.Contains(t, p.Header.Get("Content-Type"), "text/html")
		_, err := w.client.Account(t.Context(), 1)
		require.NoError(t, err)
	})
}
