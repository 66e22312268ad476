package dashboard_test

import (
	"fmt"
	"net/http"
	netmail "net/mail"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/mailtest"
	"regedge/replicate/dashboard"
	"regedge/replicate/mail"
	"regedge/replicate/metering/writer"
	"regedge/replicate/notice"
)

func withMail(c *dashboard.Config) { c.Mail = true }

// mailBy is mail through a server.
func (w *world) mailBy(server *mailtest.Server) notice.Way {
	return notice.Way{Channel: notice.Mail, PerDay: mail.PerDay, Carrier: mail.New(mail.Config{
		Host: "127.0.0.1", Port: server.Port(), Trust: server.Trust(), From: netmail.Address{Address: "notices@regedge.example"},
		Dashboard: "https://dashboard.example",
	})}
}

func (b *browser) setMail(low string) page {
	b.t.Helper()
	return b.submit("/settings/mail", "/settings/mail", "low", low)
}

func TestAnOwnerIsToldByMail(t *testing.T) {
	w := newWorld(t, withMail)
	server := mailtest.New(t, mailtest.Options{})
	sender := w.sender(w.mailBy(server))
	send := func() {
		t.Helper()
		_, err := sender.Send(t.Context(), notice.Mail)
		require.NoError(t, err)
	}
	b, account := w.owner("Acme", 1000)
	require.Contains(t, b.get("/settings").body, `href="/settings/mail"`)
	require.NotContains(t, b.get("/settings/mail").body, "Send a test", "it is off")
	require.Contains(t, b.setMail("600").text(), "E-mail notices are on.")
	require.Contains(t, b.seen.text(), `value="600"`)
	require.Contains(t, b.get("/activity").text(), "set e-mail notices")

	require.Contains(t, b.submit("/settings/mail", "/settings/mail/test").text(), "A test is on its way.")
	send()
	got := server.Messages()
	require.Len(t, got, 1)
	require.Contains(t, b.get("/settings").text(), "You sign in as "+got[0].To, "it goes to the address that signs in")
	require.Contains(t, b.get("/settings/mail").text(), `<span class="badge good">delivered</span></td><td class="number">1</td><td>sent</td>`)

	_, err := w.client.ChangeCredits(t.Context(), account, writer.CreditChange{Amount: -450})
	require.NoError(t, err)
	require.NoError(t, sender.Look(t.Context()))
	server.Behave(func(stage mailtest.Stage, _ *smtp.Conn) error {
		if stage == mailtest.To {
			return &smtp.SMTPError{Code: 451, Message: "later"}
		}
		return nil
	})
	send()
	require.Contains(t, b.get("/settings/mail").text(), `<span class="badge warn">retrying</span></td><td class="number">1</td><td>the mail server answered 451</td>`)
	server.Behave(nil)
	w.pass(time.Minute)
	send()
	require.Len(t, server.Messages(), 2)
	require.Contains(t, server.Messages()[1].Raw, "Credits left: 550.")

	require.Contains(t, b.setMail("1000000000000").text(), "E-mail notices are on.")
	require.Contains(t, b.submit("/settings/mail", "/settings/mail/remove").text(), "E-mail notices are off")
	require.Zero(t, w.count(`SELECT count(*) FROM notice_target`)+w.count(`SELECT count(*) FROM notice`))
	require.Equal(t, http.StatusNotFound, b.post("/settings/mail/test").StatusCode)
	for _, low := range []string{"", "-1", "x", "1000000000001"} {
		require.Contains(t, b.setMail(low).text(), `<p class="note bad" role="alert">The balance is a whole number of credits`, low)
		require.Equal(t, http.StatusUnprocessableEntity, b.seen.StatusCode, low)
	}
	require.Equal(t, http.StatusNotFound, w.operator().get("/settings/mail").StatusCode, "operators have alarms")
}

// TestEachOwnerHasMailOfTheirOwn, which ends when an operator removes the person.
func TestEachOwnerHasMailOfTheirOwn(t *testing.T) {
	w := newWorld(t, withMail)
	b, account := w.owner("Acme", 0)
	w.person("second@example.com", account)
	second := w.browser().requireIn("second@example.com")
	require.Contains(t, second.setMail("7").text(), "E-mail notices are on.")
	require.NotContains(t, b.get("/settings/mail").body, "Send a test")
	b.setMail("9")
	require.Equal(t, 2, w.count(`SELECT count(*) FROM notice_target`))
	for range 100 {
		second.submit("/settings/mail", "/settings/mail/test")
	}
	require.Contains(t, second.submit("/settings/mail", "/settings/mail/test").text(), "Too many messages wait")
	require.Contains(t, second.seen.body, `value="7"`, "the form keeps the balance that is set")
	id := w.count(`SELECT id FROM user WHERE email = 'second@example.com'`)
	remove := fmt.Sprintf("/people/%d/remove", id)
	w.operator().submit(remove, remove)
	require.Zero(t, w.count(`SELECT count(*) FROM user WHERE email = 'second@example.com'`))
	require.Equal(t, 1, w.count(`SELECT count(*) FROM notice_target`))
	require.Zero(t, w.count(`SELECT count(*) FROM notice`))
}

func TestWithoutAMailServerNobodyIsOfferedMail(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	require.NotContains(t, b.get("/settings").body, "/settings/mail")
	require.Equal(t, http.StatusNotFound, b.get("/settings/mail").StatusCode)
	for _, path := range []string{"/settings/mail", "/settings/mail/test", "/settings/mail/remove"} {
		require.Equal(t, http.StatusNotFound, b.submit("/settings", path, "low", "1").StatusCode, path)
		require.Zero(t, w.count(`SELECT count(*) FROM notice_target`), "the page that is shown next is missing too")
	}
}
