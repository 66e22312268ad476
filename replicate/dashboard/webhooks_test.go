package dashboard_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/dashboard"
	"regedge/replicate/metering/writer"
	"regedge/replicate/notice"
	"regedge/replicate/webhook"
)

var hookSecret = regexp.MustCompile(`value="(whsec_[^"]+)"`)

func (b *browser) setWebhook(url, low string) page {
	b.t.Helper()
	return b.submit("/settings/webhook", "/settings/webhook", "url", url, "low", low)
}

// sender delivers what the world's ledger has, when the test says so.
func (w *world) sender(ways ...notice.Way) *notice.Sender {
	return notice.New(notice.Config{Ledger: w.ledger, Ways: ways, Now: w.clock,
		Commit: func(ctx context.Context, change func(context.Context, *sql.Tx, int64) error) error {
			return w.writer.Commit(ctx, writer.Act{}, change)
		}})
}

func TestAnOwnerIsToldByAWebhook(t *testing.T) {
	w := newWorld(t, func(c *dashboard.Config) { c.PrivateWebhooks = true })
	got := make(chan *http.Request, 10)
	bodies := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
		got <- r
	}))
	t.Cleanup(receiver.Close)
	sender := w.sender(notice.Way{Channel: notice.Webhook, Carrier: webhook.New(webhook.Config{Private: true, Now: w.clock})})
	b, account := w.owner("Acme", 1000)
	require.Contains(t, b.get("/settings").body, `href="/settings/webhook"`)
	require.NotContains(t, b.get("/settings/webhook").body, "Send a test", "there is no webhook yet")
	secret := hookSecret.FindStringSubmatch(b.setWebhook(receiver.URL+"/path-of-acme", "500").text())
	require.NotNil(t, secret, b.seen.body)
	require.NotContains(t, b.get("/settings/webhook").text(), secret[1], "once")
	require.Contains(t, b.get("/activity").text(), "set webhook")
	require.NotContains(t, b.seen.text(), "path-of-acme", "a path may be a secret")
	require.NotContains(t, b.seen.text(), secret[1])
	b.get("/settings/webhook")
	renew := b.form()
	first := hookSecret.FindStringSubmatch(b.do(http.MethodPost, "/settings/webhook/secret", renew).text())
	require.NotNil(t, first, b.seen.body)
	require.NotEqual(t, secret[1], first[1])
	require.Equal(t, first, hookSecret.FindStringSubmatch(b.do(http.MethodPost, "/settings/webhook/secret", renew).text()), "a form that is sent twice changes once")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'renew secret of webhook'`), "and is one act")
	secret = first
	for range 2 {
		require.Contains(t, b.setWebhook(receiver.URL+"/new", "600").text(), "The webhook is saved.")
	}
	require.Equal(t, 2, w.count(`SELECT count(*) FROM audit WHERE act = 'set webhook'`), "the second time nothing is changed")
	require.NotRegexp(t, hookSecret, b.seen.text(), "the secret stays")
	require.Contains(t, b.seen.text(), "under the key that follows <code>whsec_</code> in the secret, in base64")

	require.Contains(t, b.submit("/settings/webhook", "/settings/webhook/test").text(), "A test is on its way.")
	_, err := sender.Send(t.Context(), notice.Webhook)
	require.NoError(t, err)
	r, body := <-got, <-bodies
	require.Equal(t, "/new", r.URL.Path)
	want, err := webhook.Sign(secret[1], r.Header.Get(webhook.IDHeader), r.Header.Get(webhook.TimestampHeader), []byte(body))
	require.NoError(t, err)
	require.Equal(t, want, r.Header.Get(webhook.SignatureHeader))
	require.Contains(t, b.get("/settings/webhook").text(), `<span class="badge good">delivered</span></td><td class="number">1</td><td>200</td>`)

	_, err = w.client.ChangeCredits(t.Context(), account, writer.CreditChange{Amount: -450})
	require.NoError(t, err)
	require.NoError(t, sender.Look(t.Context()))
	_, err = sender.Send(t.Context(), notice.Webhook)
	require.NoError(t, err)
	require.Contains(t, <-bodies, `"data":{"balance":550,"threshold":600}`)

	renewed := hookSecret.FindStringSubmatch(b.submit("/settings/webhook", "/settings/webhook/secret").text())
	require.NotNil(t, renewed)
	require.NotEqual(t, secret[1], renewed[1])
	require.Contains(t, b.submit("/settings/webhook", "/settings/webhook/remove").text(), "The webhook is removed")
	require.Zero(t, w.count(`SELECT count(*) FROM notice_target`)+w.count(`SELECT count(*) FROM notice`))
	require.Equal(t, http.StatusNotFound, b.post("/settings/webhook/test").StatusCode)
	require.Equal(t, http.StatusNotFound, b.submit("/settings/webhook", "/settings/webhook/secret").StatusCode)
}

// TestTheBalanceOfANoticeIsProposed: a tenth of what is left, until the owner chooses one.
func TestTheBalanceOfANoticeIsProposed(t *testing.T) {
	w := newWorld(t, withMail)
	b, _ := w.owner("Acme", 1000)
	for _, path := range []string{"/settings/webhook", "/settings/mail"} {
		require.Contains(t, b.get(path).body, `name="low" value="100"`, path)
	}
	require.Contains(t, b.setWebhook("http://example.com", "").body, `name="low" value=""`, "what was typed stays")
	b.setWebhook("https://example.com", "0")
	b.setMail("7")
	require.Contains(t, b.get("/settings/webhook").body, `name="low" value="0"`)
	require.Contains(t, b.get("/settings/mail").body, `name="low" value="7"`)
	poor, _ := w.owner("Poor", 0)
	require.Contains(t, poor.get("/settings/webhook").body, `name="low" value="0"`)
	overdrawn, account := w.owner("Overdrawn", 0)
	w.used(account, 1, w.clock(), 1, 100)
	require.Contains(t, overdrawn.get("/settings/webhook").body, `name="low" value="0"`)
}

// TestEachNoticeIsOnThePageAndHasAMessage, and is in docs/design.md: nothing else would tell of a kind that was added.
func TestEachNoticeIsOnThePageAndHasAMessage(t *testing.T) {
	b, _ := newWorld(t).owner("Acme", 0)
	page := b.get("/settings/webhook").body
	texts := testkit.Texts(t, "../notice/outbox.go", "../mail/text.go", "../../docs/design.md")
	kinds := regexp.MustCompile(`(?m)^\t(\w+) += "([a-z_0-9.]+)"$`).FindAllStringSubmatch(texts["../notice/outbox.go"], -1)
	require.GreaterOrEqual(t, len(kinds), 6)
	for _, kind := range kinds {
		require.Contains(t, page, `<th scope="row"><code>`+kind[2]+`</code>`)
		require.Contains(t, texts["../mail/text.go"], "case notice."+kind[1]+":")
		if kind[2] != notice.Test {
			require.Contains(t, texts["../../docs/design.md"], "`"+kind[2]+"`")
		}
	}
}

func TestAWebhookThatCanNotBeIsRefusedInWords(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	for url, words := range map[string]string{
		"http://example.com": "it begins with https://", "https://127.0.0.1/": "127.0.0.1 is not a public address", "": "it is no URL with a host",
		`https://a:b@example.com/"><script>`: "it holds a name or a password",
	} {
		p := b.setWebhook(url, "0")
		require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode, url)
		require.Contains(t, p.text(), "That address can't be used: "+words, url)
		require.NotContains(t, p.body, `"><script>`)
	}
	for _, low := range []string{"", "-1", "x", "1000000000001"} {
		require.Contains(t, b.setWebhook("https://example.com", low).text(), "The balance is a whole number of credits", low)
	}
	require.Zero(t, w.count(`SELECT count(*) FROM notice_target`))
	require.Contains(t, b.setWebhook("https://example.com", "1000000000000").text(), "whsec_")
	for range 100 {
		b.submit("/settings/webhook", "/settings/webhook/test")
	}
	require.Contains(t, b.submit("/settings/webhook", "/settings/webhook/test").text(), "Too many events wait")
	require.Contains(t, b.seen.body, `value="https://example.com"`, "the form keeps the address that is set")

	other, _ := w.owner("Other", 0)
	require.NotContains(t, other.get("/settings/webhook").body, `value="https://`, "each has their own")
	require.NotContains(t, other.seen.body, "Last deliveries")
	other.submit("/settings/webhook", "/settings/webhook/remove")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM notice_target`))
	require.Equal(t, http.StatusNotFound, w.operator().get("/settings/webhook").StatusCode, "operators have alarms")
}

// TestAFormOfNoticesThatIsRefusedKeepsWhatWasTyped, also where notices are set already.
func TestAFormOfNoticesThatIsRefusedKeepsWhatWasTyped(t *testing.T) {
	b, _ := newWorld(t, withMail).owner("Acme", 0)
	b.setWebhook("https://example.com/set", "5")
	b.setMail("7")
	require.Contains(t, b.setMail("8 or so").body, `name="low" value="8 or so"`)
	require.Contains(t, b.get("/settings/mail").body, `name="low" value="7"`)
	p := b.setWebhook("https://example.com/typed", "8 or so")
	require.Contains(t, p.body, `name="low" value="8 or so"`)
	require.Contains(t, p.body, `value="https://example.com/typed"`)
	p = b.setWebhook("", "9")
	require.Contains(t, p.body, `name="low" value="9"`)
	require.NotContains(t, p.body, `value="https://example.com/set"`)
	require.Contains(t, b.get("/settings/webhook").body, `value="https://example.com/set"`)
}

// TestANewSecretUndoesNoOtherChange, such as another owner's of the address, which is on its way to the ledger.
func TestANewSecretUndoesNoOtherChange(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	b.submit("/settings/webhook", "/settings/webhook", "url", "https://example.com/old", "low", "5")
	b.get("/settings/webhook")
	form := b.form()
	begun, goOn, changed, renewed := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan page, 1)
	go func() {
		changed <- w.writer.Commit(t.Context(), writer.Act{}, func(ctx context.Context, tx *sql.Tx, _ int64) error {
			close(begun)
			<-goOn
			_, err := tx.ExecContext(ctx, `UPDATE notice_target SET url = 'https://example.com/new' WHERE account = ?`, account)
			return err
		})
	}()
	<-begun
	go func() { renewed <- b.do(http.MethodPost, "/settings/webhook/secret", form) }()
	time.Sleep(200 * time.Millisecond) // it has read the webhook by then, if it does so before its own transaction
	close(goOn)
	require.NoError(t, <-changed)
	require.Equal(t, http.StatusOK, (<-renewed).StatusCode)
	require.Equal(t, 1, w.count(`SELECT count(*) FROM notice_target WHERE url = 'https://example.com/new' AND low = 5`))
}
