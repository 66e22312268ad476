package cli

import (
	netmail "net/mail"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/mailtest"
	"regedge/replicate/mail"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// wantsMail makes a person in the ledger of the writer, with a test message that waits.
func (c *centre) wantsMail(t *testing.T) {
	t.Helper()
	c.wants(t, `INSERT INTO user (id, email, password, account, operator, created_at) VALUES (70, 'ada@example.com', '', ?1, 0, ?2)`,
		`INSERT INTO notice_target (id, account, channel, user, low, low_told, created_at) VALUES (7, ?1, 'mail', 70, 0, 0, ?2)`)
}

// wants makes target 7 in the ledger of the writer, by statements with an account and a time, with a test
// message that waits.
func (c *centre) wants(t *testing.T, target ...string) {
	t.Helper()
	account, _ := c.account(t, 10)
	ledger, err := schema.OpenFile(c.path("ledger.db"))
	require.NoError(t, err)
	defer ledger.Close()
	const message = `INSERT INTO notice (id, target, kind, about, at, body, next_at) VALUES ('evt_A', 7, 'test', '', ?2, '{"account": ' || ?1 || '}', ?2)`
	for _, statement := range append(target, message) {
		_, err := ledger.ExecContext(t.Context(), statement, account, time.Now().UnixMilli())
		require.NoError(t, err)
	}
}

func TestTheWriterTellsAnOwnerByMail(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{NoTLS: true})
	c := startCentre(t, "--smtp-host", server.Addr(), "--smtp-tls", "none", "--smtp-from", "Registry <notices@regedge.example>",
		"--dashboard-url", "https://dashboard.example/")
	c.wantsMail(t)
	require.True(t, c.await(func() bool { return len(server.Messages()) == 1 }), c.stderr.String())
	got := server.Messages()[0]
	require.Equal(t, []string{"notices@regedge.example", "ada@example.com"}, []string{got.From, got.To})
	require.Contains(t, got.Raw, "https://dashboard.example/settings/mail\r\n")
	const sent = `regedge_writer_notices_total{channel="mail",outcome="delivered"} 1`
	require.True(t, c.await(func() bool { return strings.Contains(metricsOf(t, c.url()+"/metrics"), sent) }))

	// Beyond the daily limit nobody gets more.
	ledger, err := schema.OpenFile(c.path("ledger.db"))
	require.NoError(t, err)
	defer ledger.Close()
	for i := range mail.PerDay {
		var delivered, next any = time.Now().UnixMilli(), nil
		if i == 0 {
			delivered, next = nil, time.Now().UnixMilli()
		}
		_, err := ledger.ExecContext(t.Context(), `INSERT INTO notice (id, target, kind, about, at, body, delivered_at, next_at)
			SELECT 'evt_' || ?1, target, kind, ?1, at, body, ?2, ?3 FROM notice WHERE id = 'evt_A'`, i, delivered, next)
		require.NoError(t, err)
	}
	require.True(t, c.await(func() bool {
		var last string
		require.NoError(t, ledger.QueryRowContext(t.Context(), `SELECT last FROM notice WHERE id = 'evt_0'`).Scan(&last))
		return strings.HasPrefix(last, "waits")
	}), "%d messages", len(server.Messages()))
	require.Len(t, server.Messages(), 1)
	require.Equal(t, exitOK, c.halt())
}

func TestTheWriterLogsThatNoWebhookIsReached(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	c.wants(t, `INSERT INTO notice_target (id, account, channel, url, secret, low, low_told, created_at)
		VALUES (7, ?1, 'webhook', 'https://127.0.0.1:1/hook', 'whsec_AAAA', 0, 0, ?2)`)
	require.True(t, c.await(func() bool { return strings.Contains(c.stderr.String(), "no webhook is reached") }), c.stderr.String())
	require.NotContains(t, c.stderr.String(), "/hook", "the path may be a secret")
	require.Contains(t, c.stderr.String(), "is not a public address", "without --private-webhooks")
	require.Equal(t, exitOK, c.halt())
}

// TestTheMailServersPasswordReachesNoLog nor a server that may be another one.
func TestTheMailServersPasswordReachesNoLog(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{SignIn: true})
	file := t.TempDir() + "/password"
	require.NoError(t, os.WriteFile(file, []byte(mailtest.Password+"\n"), 0o600))
	c := startCentre(t, "--smtp-host", server.Addr(), "--smtp-from", "notices@regedge.example", "--dashboard-url", "https://dashboard.example",
		"--smtp-user", mailtest.User, "--smtp-password-file", file)
	c.wantsMail(t)
	const failed = `regedge_writer_notices_total{channel="mail",outcome="failed"} 1`
	require.True(t, c.await(func() bool { return strings.Contains(metricsOf(t, c.url()+"/metrics"), failed) }), c.stderr.String())
	seen := metricsOf(t, c.url()+"/metrics")
	require.Equal(t, exitOK, c.halt())
	require.Zero(t, server.Begun(), "its certificate is of an unknown authority")
	require.Contains(t, c.stderr.String(), "mail to owners can't be sent")
	require.NotContains(t, seen+c.stderr.String()+c.stdout.String(), mailtest.Password)
	require.NotContains(t, c.stderr.String(), "ada@example.com")
}

// TestTheMailServerIsSignedInAt with the name and the password that were given.
func TestTheMailServerIsSignedInAt(t *testing.T) {
	file := t.TempDir() + "/password"
	require.NoError(t, os.WriteFile(file, []byte(mailtest.Password+"\n"), 0o600))
	flags := smtpFlags{Host: "mail.example.org", TLS: "implicit", From: "Registry <notices@example.org>", User: mailtest.User, Password: "another", PasswordFile: file}
	config, err := flags.config("https://d.example", writer.Config{})
	require.NoError(t, err)
	require.Equal(t, mail.Config{
		Host: "mail.example.org", Port: 465, Security: mail.Implicit, User: mailtest.User, Password: mailtest.Password,
		From: netmail.Address{Name: "Registry", Address: "notices@example.org"}, Dashboard: "https://d.example",
	}, config)
}

// TestAMailServerIsConfiguredWhole, or refused with the reason.
func TestAMailServerIsConfiguredWhole(t *testing.T) {
	for _, c := range []struct{ flags, words string }{
		{"--smtp-from a@example.org", "need --smtp-host"},
		{"--smtp-host mail.example.org", "is no e-mail address"},
		{"--smtp-host mail.example.org --smtp-from a@example.org", "needs --dashboard-url"},
		{"--smtp-host mail.example.org --smtp-from a@example.org,b@example.org --dashboard-url https://d.example", "is no e-mail address"},
		{"--smtp-host mail.example.org:x --smtp-from a@example.org --dashboard-url https://d.example", "no port number"},
		{"--smtp-host mail.example.org:0 --smtp-from a@example.org --dashboard-url https://d.example", "no port number"},
		{"--smtp-host mail_x/ --smtp-from a@example.org --dashboard-url https://d.example", "is no host"},
		{"--smtp-host mail.example.org --smtp-tls none --smtp-from a@example.org --dashboard-url https://d.example", "is for a mail server on this machine"},
		{"--smtp-host localhost --smtp-tls none --smtp-user x --smtp-password y --smtp-from a@example.org --dashboard-url https://d.example", "sends no password"},
		{"--smtp-host localhost --smtp-user x --smtp-from a@example.org --dashboard-url https://d.example", "--smtp-user goes with"},
	} {
		p := start(append([]string{"writer", "--database", "l.db", "--access", "a.db"}, strings.Fields(c.flags)...)...)
		require.Equal(t, exitMisuse, <-p.ended, c.flags)
		require.Contains(t, p.stderr.String(), c.words, c.flags)
	}
	for flags, want := range map[string]int{"starttls": 587, "implicit": 465, "none": 25} {
		_, port, err := (&smtpFlags{Host: "mail.example.org", TLS: flags}).server()
		require.NoError(t, err)
		require.Equal(t, want, port)
	}
	host, port, err := (&smtpFlags{Host: "[2001:db8::1]:2525", TLS: "starttls"}).server()
	require.NoError(t, err)
	require.Equal(t, []any{"2001:db8::1", 2525}, []any{host, port})
}
