package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/dashboard"
	"regedge/replicate/registry/push"
)

const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

func TestCreditsThatAreNotThereAreNotTaken(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	at := fmt.Sprint("/accounts/", w.account("Acme", 0))
	before := w.count(`SELECT count(*) FROM audit`)
	p := b.submit(at, at+"/credits", "amount", "-5", "kind", "bought")
	require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode)
	require.Contains(t, p.text(), "Nothing was changed")
	require.Equal(t, before, w.count(`SELECT count(*) FROM audit`))
	require.Zero(t, w.count(`SELECT count(*) FROM credit_entry`))
}

func TestAnAccountIsSuspendedOnceAskedAgain(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	at := fmt.Sprint("/accounts/", w.account("Acme", 12))
	p := b.get(at)
	require.Contains(t, p.body, `<span class="badge good">Active</span>`)
	require.NotContains(t, p.body, "Suspended")
	require.NotContains(t, p.body, `name="suspended"`, "nothing on this page suspends at once")
	p = b.get(at + "/suspension")
	require.Contains(t, p.text(), "every call with its 0 active keys is refused with 403. Its 12 credits stay")
	require.Contains(t, b.post(at+"/suspension", "suspended", "1").text(), "The account is suspended.")
	require.Contains(t, b.seen.body, `<span class="badge bad">Suspended</span>`)
	require.Contains(t, b.get(at+"/suspension").body, "Resume account", "there is nothing to ask")
}

func TestANewAccountGetsThePlanOfTheCommandLine(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	body := b.get("/accounts").body
	require.Contains(t, body, `<option value="starter" selected>starter</option>`)
	require.Contains(t, body, `<option value="free">free (no API access)</option>`)
}

func TestANewAccountHasAHistory(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	b.submit("/accounts", "/accounts", "name", "Acme", "plan", "starter")
	require.Contains(t, b.get("/accounts/1").body, "create account</td>")
	second := w.account("Second", 0)
	require.Contains(t, b.get(fmt.Sprint("/accounts/", second)).body, "create account</td>", "also through the API")
	w.exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (9, 'Old', '', 'starter', 0, 0)`)
	body := b.get("/accounts/9").body
	require.Contains(t, body, "Nothing has happened yet.")
	require.NotContains(t, body, `aria-label="Activity"`)
}

func TestAnAccountListsItsPeopleAndTheInvited(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	account := w.account("Acme", 0)
	at := fmt.Sprint("/accounts/", account)
	require.Contains(t, b.get(at).body, "Nobody yet.")
	w.person("ada@example.com", account)
	for _, email := range []string{"eve@example.com", "ada@example.com"} {
		_, err := w.client.Invite(t.Context(), email, account)
		require.NoError(t, err)
	}
	a, err := w.client.Account(t.Context(), account)
	require.NoError(t, err)
	require.Equal(t, []string{"ada@example.com"}, a.Owners)
	require.Equal(t, []string{"eve@example.com"}, a.Invited)
	require.Contains(t, b.get(at).body, `eve@example.com <span class="badge">invited</span>`)
	w.pass(73 * time.Hour)
	a, err = w.client.Account(t.Context(), account)
	require.NoError(t, err)
	require.Empty(t, a.Invited, "the invitation has ended")
}

// TestAPrimaryThatDoesNotAnswerHoldsNoPageUp.
func TestAPrimaryThatDoesNotAnswerHoldsNoPageUp(t *testing.T) {
	var limit time.Time
	w := newWorld(t, func(c *dashboard.Config) {
		c.Releases = func(ctx context.Context) ([]push.Release, error) {
			limit, _ = ctx.Deadline()
			return nil, errors.New("no answer")
		}
	})
	require.Contains(t, w.operator().get("/edges").text(), "The registry’s primary does not answer, so its releases are not known.")
	require.False(t, limit.IsZero())
	require.Less(t, time.Until(limit), 10*time.Second)
}

func TestTheGenerationIsNoHeadline(t *testing.T) {
	w := newWorld(t)
	body := w.operator().get("/edges").body
	require.NotContains(t, body, "<dt>Generation")
	require.Regexp(t, `<p class="small soft">The writer’s generation is \d+`, body)
}

func TestBrowsersAndTimesAreToldAsPeopleSayThem(t *testing.T) {
	w := newWorld(t)
	account := w.account("Acme", 0)
	w.person("acme@example.com", account)
	b := w.browser()
	b.get("/sign-in")
	as := func(r *http.Request) { r.Header.Set("User-Agent", chrome) }
	token := tokenField.FindStringSubmatch(b.seen.body)[1]
	form := map[string][]string{"token": {token}, "email": {"acme@example.com"}, "password": {password}}
	require.Contains(t, b.do(http.MethodPost, "/sign-in", form, as).body, "Sign out")
	p := b.get("/settings")
	require.Contains(t, p.body, `<span title="`+chrome+`">Chrome on Linux</span>`)
	require.Contains(t, p.body, `<time datetime="2026-10-20T12:30:00Z" data-precision="minute" title="20 Oct 2026, 12:30 UTC">20 Oct 2026, 12:30</time>`)
	require.Contains(t, b.get("/activity").body, `<td class="detail" title="`+chrome+`">Chrome on Linux</td>`)
}

// TestANoteIsKeptUpToItsLimit, and the people of an account are listed by their addresses.
func TestANoteIsKeptUpToItsLimit(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	account := w.account("Acme", 0)
	at := fmt.Sprint("/accounts/", account)
	require.Contains(t, b.submit(at, at+"/credits", "amount", "5", "kind", "bought", "note", strings.Repeat("n", 210)).text(), "The credits are added.")
	require.Equal(t, 200, w.count(`SELECT length(note) FROM credit_entry`))
	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'change credits' AND detail = ?`, "+5 bought "+strings.Repeat("n", 200)))
	for _, email := range []string{"c@example.com", "a@example.com", "b@example.com"} {
		w.person(email, account)
	}
	_, people, found := strings.Cut(b.get(at).body, `<h2 id="people-title">`)
	require.True(t, found)
	people, _, _ = strings.Cut(people, "</section>")
	require.Regexp(t, `(?s)a@example\.com.*b@example\.com.*c@example\.com</span></a></li></ul>`, people)
}

// TestALongNameIsRefused, not cut unseen: a script that sends forms would not find what it made.
func TestALongNameIsRefused(t *testing.T) {
	w := newWorld(t)
	owner, _ := w.owner("Acme", 0)
	most := strings.Repeat("ക", 60)
	owner.submit("/keys", "/keys", "name", most)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM api_key WHERE name = ?`, most))
	operator := w.operator()
	for name, submit := range map[string]func(name string) page{
		"a key":         func(name string) page { return owner.submit("/keys", "/keys", "name", name) },
		"a renamed key": func(name string) page { return owner.submit("/keys/1", "/keys/1/name", "name", name) },
		"a token": func(name string) page {
			return owner.submit("/settings/tokens", "/settings/tokens", "name", name, "days", "1", "role", "read")
		},
		"an account": func(name string) page {
			return operator.submit("/accounts", "/accounts", "name", name, "plan", "starter")
		},
	} {
		p := submit(most + "ക")
		require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode, name)
		require.Contains(t, p.text(), "A name has at most 60 characters.", name)
	}
	require.Equal(t, 1, w.count(`SELECT count(*) FROM api_key`)+w.count(`SELECT count(*) FROM owner_token`), "nothing was made")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM api_key WHERE name = ?`, most))
	require.Equal(t, 1, w.count(`SELECT count(*) FROM account`))
}
