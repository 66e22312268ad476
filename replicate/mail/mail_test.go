package mail

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/mailtest"
	"regedge/internal/testkit/noticetest"
	"regedge/replicate/notice"
)

// office is one whose user 1 is told by mail, through a server that misbehaves when the test says so.
type office struct {
	*noticetest.Office
	server *mailtest.Server
	log    *bytes.Buffer
	config Config
}

func newOffice(t *testing.T, options mailtest.Options, change ...func(*Config)) *office {
	o := &office{server: mailtest.New(t, options), log: new(bytes.Buffer)}
	config := Config{
		Host: "127.0.0.1", Port: o.server.Port(), Trust: o.server.Trust(), From: netmail.Address{Name: "Registry", Address: "notices@regedge.example"},
		Dashboard: "https://dashboard.example", Logger: slog.New(slog.NewTextHandler(o.log, nil)),
		Limit: 30 * time.Second,
	}
	for _, c := range change {
		c(&config)
	}
	o.config = config
	o.Office = noticetest.New(t)
	o.patient(config.Limit)
	o.SetMail(1, 0)
	return o
}

// patient opens a sender with another limit.
func (o *office) patient(limit time.Duration) {
	o.config.Limit = limit
	o.Open(notice.Way{Channel: notice.Mail, Carrier: New(o.config), PerDay: PerDay})
}

func (o *office) test() {
	o.Helper()
	require.NoError(o, o.Test(o.Mail(1)))
}

func (o *office) send() int { o.Helper(); return o.Send(notice.Mail) }

func (o *office) last() notice.Delivery { o.Helper(); return o.Last(o.Mail(1)) }

// read is a message as a mail program reads it.
func read(t *testing.T, raw string) (header netmail.Header, text string) {
	t.Helper()
	m, err := netmail.ReadMessage(strings.NewReader(raw))
	require.NoError(t, err, raw)
	require.Equal(t, "quoted-printable", m.Header.Get("Content-Transfer-Encoding"))
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	require.NoError(t, err)
	return m.Header, strings.ReplaceAll(string(body), "\r\n", "\n")
}

func signedIn(c *Config) { c.User, c.Password = mailtest.User, mailtest.Password }

func TestANoticeIsSentOnceByTLS(t *testing.T) {
	for security, options := range map[Security]mailtest.Options{"": {SignIn: true}, StartTLS: {SignIn: true}, Implicit: {SignIn: true, Implicit: true}} {
		t.Run(string(security), func(t *testing.T) {
			o := newOffice(t, options, signedIn, func(c *Config) { c.Security = security })
			if security == "" { // nor a limit
				o.patient(0)
			}
			o.test()
			require.Equal(t, 1, o.send())
			require.Zero(t, o.send(), "what was sent is not sent again")
			got := o.server.Messages()
			require.Len(t, got, 1)
			require.Equal(t, []any{"notices@regedge.example", "ada@example.com", true, mailtest.User}, []any{got[0].From, got[0].To, got[0].TLS, got[0].User})
			header, text := read(t, got[0].Raw)
			d := o.last()
			require.Equal(t, []any{1, "sent", true}, []any{d.Attempts, d.Last, d.Delivered != nil && d.Next == nil})
			require.Equal(t, "<"+d.ID+"@regedge.example>", header.Get("Message-Id"))
			require.Equal(t, `"Registry" <notices@regedge.example>`, header.Get("From"))
			require.Equal(t, "<ada@example.com>", header.Get("To"))
			require.Equal(t, "Sat, 31 Jan 2026 12:00:00 +0000", header.Get("Date"), "that of the notice")
			require.Equal(t, "auto-generated", header.Get("Auto-Submitted"))
			require.Equal(t, "text/plain; charset=UTF-8", header.Get("Content-Type"))
			require.Contains(t, text, "Account: Acme (number 1)\nWhen: 31 January 2026, 12:00 UTC\n")
			require.Contains(t, text, "\n\n-- \nYou have switched", "mail programs know a signature by its blank")
			require.Contains(t, text, "https://dashboard.example/settings/mail\n")
			require.NotContains(t, o.log.String(), mailtest.Password)
		})
	}
}

// TestNothingIsSentInTheClear when TLS was asked for, nor to a server that another one may be.
func TestNothingIsSentInTheClear(t *testing.T) {
	for name, c := range map[string]struct {
		options mailtest.Options
		change  func(*Config)
		words   string
	}{
		"no STARTTLS":          {mailtest.Options{NoTLS: true}, func(*Config) {}, "no connection to the mail server"},
		"unknown authority":    {mailtest.Options{}, func(c *Config) { c.Trust = nil }, "the mail server's certificate is not trusted"},
		"implicit and unknown": {mailtest.Options{Implicit: true}, func(c *Config) { c.Trust, c.Security = nil, Implicit }, "the mail server's certificate is not trusted"},
		"implicit, and clear":  {mailtest.Options{NoTLS: true}, func(c *Config) { c.Security = Implicit }, "no connection to the mail server"},
		"old TLS":              {mailtest.Options{OldTLS: true}, func(*Config) {}, "no connection to the mail server"},
		"implicit and old TLS": {mailtest.Options{OldTLS: true, Implicit: true}, func(c *Config) { c.Security = Implicit }, "no connection to the mail server"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, c.options, c.change)
			o.test()
			require.Equal(t, 1, o.send())
			require.Equal(t, c.words, o.last().Last)
			require.NotNil(t, o.last().Next, "it is tried again")
			require.Zero(t, o.server.Begun())
			require.Contains(t, o.log.String(), "mail to owners can't be sent")
		})
	}
}

// TestAWrongPasswordIsToldByItsCode: what the server says of it may repeat it.
func TestAWrongPasswordIsToldByItsCode(t *testing.T) {
	const wrong = "not-the-password"
	o := newOffice(t, mailtest.Options{SignIn: true}, func(c *Config) { c.User, c.Password = mailtest.User, wrong })
	o.test()
	o.send()
	require.Equal(t, "the mail server answered 535", o.last().Last)
	require.Contains(t, o.log.String(), "it answered 535")
	require.NotContains(t, o.log.String(), wrong)
	o.Now = *o.last().Next
	o.send()
	require.Equal(t, 1, strings.Count(o.log.String(), "can't be sent"), "once, until something else goes wrong")
}

// TestAServerThatHangsIsLeft at every stage, also before its greeting, within the limit.
func TestAServerThatHangsIsLeft(t *testing.T) {
	const limit = 500 * time.Millisecond
	quick := func(c *Config) { c.Limit = limit }
	hang := func(t *testing.T, at mailtest.Stage) *office {
		o := newOffice(t, mailtest.Options{}, quick)
		over := make(chan struct{})
		t.Cleanup(func() { close(over) }) // before the server stops, which waits for its sessions
		o.server.Behave(func(stage mailtest.Stage, _ *smtp.Conn) error {
			if stage == at {
				<-over
			}
			return nil
		})
		return o
	}
	for _, stage := range []mailtest.Stage{mailtest.From, mailtest.To, mailtest.Data, mailtest.Accepted} {
		t.Run(string(stage), func(t *testing.T) {
			o := hang(t, stage)
			o.test()
			require.Equal(t, 1, o.send())
			require.Equal(t, []any{1, "the mail server did not answer in time"}, []any{o.last().Attempts, o.last().Last})
			o.server.Behave(nil)
			o.patient(30 * time.Second)
			o.Now = *o.last().Next
			require.Equal(t, 1, o.send())
			require.Equal(t, "sent", o.last().Last)
		})
	}
	t.Run("greeting", func(t *testing.T) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { silent.Close() })
		for _, security := range []Security{StartTLS, Implicit} {
			o := newOffice(t, mailtest.Options{}, quick, func(c *Config) {
				c.Security, c.Port = security, silent.Addr().(*net.TCPAddr).Port
			})
			o.test()
			require.Equal(t, 1, o.send())
			require.Equal(t, "the mail server did not answer in time", o.last().Last, security)
			o.Now = *o.last().Next
			require.Equal(t, 1, o.send())
			require.Equal(t, 1, strings.Count(o.log.String(), "can't be sent"), "once, though each connection has another port: %s", o.log)
		}
	})
}

// TestAServerThatSpeaksWithoutEndIsLeft when it has said enough.
func TestAServerThatSpeaksWithoutEndIsLeft(t *testing.T) {
	talker, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { talker.Close() })
	said := make(chan int, 1)
	go func() {
		conn, err := talker.Accept()
		if err != nil {
			return
		}
		n := 0
		for line := []byte("220-" + strings.Repeat("x", 1000) + "\r\n"); err == nil && n < 100<<20; n += len(line) {
			_, err = conn.Write(line)
		}
		conn.Close()
		said <- n
	}()
	o := newOffice(t, mailtest.Options{}, func(c *Config) { c.Port = talker.Addr().(*net.TCPAddr).Port })
	o.test()
	require.Equal(t, 1, o.send())
	require.Equal(t, "no connection to the mail server", o.last().Last)
	require.Contains(t, o.log.String(), errTooMuch.Error())
	require.Less(t, <-said, 50<<20)
}

// TestTheWordsOfNoMailServerFillNoLog: one that sends a long line without a code, another each time, was quoted whole at each
// attempt. It may also repeat credentials.
func TestTheWordsOfNoMailServerFillNoLog(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { other.Close() })
	go func() {
		for n := 0; ; n++ {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "%d%s\r\n", n, strings.Repeat("x", maxAnswers/2))
			conn.Close()
		}
	}()
	o := newOffice(t, mailtest.Options{}, func(c *Config) { c.Port = other.Addr().(*net.TCPAddr).Port })
	o.test()
	for range 3 {
		o.send()
		o.Now = *o.last().Next
	}
	require.Equal(t, 1, strings.Count(o.log.String(), "can't be sent"))
	require.Contains(t, o.log.String(), errUnsent.Error())
	require.Less(t, len(o.log.String()), 1000)
}

func TestWhatIsRefusedForGoodIsGivenUp(t *testing.T) {
	for stage, c := range map[mailtest.Stage]struct {
		code  int
		words string
		next  bool
	}{
		mailtest.From: {550, "the mail server answered 550", true}, // which the operator may mend
		mailtest.To:   {550, "the mail server refused the address (550)", false},
		mailtest.Data: {554, "the mail server answered 554", true},
	} {
		t.Run(string(stage), func(t *testing.T) {
			o := newOffice(t, mailtest.Options{})
			o.server.Behave(func(at mailtest.Stage, _ *smtp.Conn) error {
				if at == stage {
					return &smtp.SMTPError{Code: c.code, Message: "ada@example.com, no"}
				}
				return nil
			})
			o.test()
			require.Equal(t, 1, o.send())
			require.Equal(t, []any{c.words, c.next}, []any{o.last().Last, o.last().Next != nil})
			require.NotContains(t, o.log.String(), "ada@")
		})
	}
}

// TestARefusedMessageHoldsUpNoOther on the same connection.
func TestARefusedMessageHoldsUpNoOther(t *testing.T) {
	for code, want := range map[int]string{
		450: `last = 'the mail server answered 450' AND next_at IS NOT NULL`,
		500: `last = 'the mail server refused the address (500)' AND next_at IS NULL`,
		550: `last = 'the mail server refused the address (550)' AND next_at IS NULL`,
	} {
		o := newOffice(t, mailtest.Options{})
		o.SetMail(2, 0)
		o.SetMail(3, 0)
		refused := 0
		o.server.Behave(func(at mailtest.Stage, _ *smtp.Conn) error {
			if at == mailtest.To && refused == 0 {
				refused++
				return &smtp.SMTPError{Code: code, Message: "no"}
			}
			return nil
		})
		for _, user := range []int64{1, 2, 3} {
			require.NoError(t, o.Test(o.Mail(user)))
		}
		require.Equal(t, 3, o.send(), code)
		require.Len(t, o.server.Messages(), 2, code)
		require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE `+want), code)
	}
}

// TestTheTimeOfAConnectionIsBounded with all its messages, whatever each of them may take.
func TestTheTimeOfAConnectionIsBounded(t *testing.T) {
	o := newOffice(t, mailtest.Options{})
	carrier := New(o.config)
	require.Equal(t, batchLimit, carrier.batch)
	carrier.batch = time.Second
	o.Open(notice.Way{Channel: notice.Mail, Carrier: carrier, PerDay: PerDay})
	o.SetMail(2, 0)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	o.server.Behave(func(at mailtest.Stage, _ *smtp.Conn) error {
		if at == mailtest.Data {
			<-over
		}
		return nil
	})
	require.NoError(t, o.Test(o.Mail(2)))
	o.test()
	began := time.Now()
	require.Equal(t, 1, o.send(), "the other waits for the next connection")
	require.Less(t, time.Since(began), o.config.Limit/2)
}

// TestASlowServerIsNoFailure: a message for which the connection has no time left waits for the next one. Cut off in
// its middle it counted as an attempt, the log blamed the server, and it could come twice.
func TestASlowServerIsNoFailure(t *testing.T) {
	o := newOffice(t, mailtest.Options{})
	o.patient(10 * time.Second)
	carrier := New(o.config)
	carrier.batch = 2800 * time.Millisecond
	o.Open(notice.Way{Channel: notice.Mail, Carrier: carrier, PerDay: PerDay})
	o.server.Behave(func(at mailtest.Stage, _ *smtp.Conn) error {
		if at == mailtest.Data {
			time.Sleep(time.Second)
		}
		return nil
	})
	for _, owner := range []int64{1, 2, 3} {
		o.SetMail(owner, 0)
		require.NoError(t, o.Test(o.Mail(owner)))
	}
	for range 3 {
		o.send()
	}
	require.Equal(t, 3, o.Count(`SELECT count(*) FROM notice WHERE delivered_at IS NOT NULL AND attempts = 1`))
	require.NotContains(t, o.log.String(), "can't be sent")
}

// TestAConnectionThatBreaksIsMadeAnew: before the message is accepted and after, when nobody knows. What comes
// again has the same Message-ID.
func TestAConnectionThatBreaksIsMadeAnew(t *testing.T) {
	for _, stage := range []mailtest.Stage{mailtest.From, mailtest.To, mailtest.Data, mailtest.Accepted} {
		t.Run(string(stage), func(t *testing.T) {
			o := newOffice(t, mailtest.Options{})
			o.SetMail(2, 0)
			o.server.Behave(func(at mailtest.Stage, c *smtp.Conn) error {
				if at == stage {
					c.Close()
				}
				return nil
			})
			require.NoError(t, o.Test(o.Mail(2)))
			o.test()
			require.Equal(t, 1, o.send(), "the other waits for the next connection, without an attempt")
			require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE attempts = 0 AND last = ''`))
			require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE attempts = 1 AND last = 'no connection to the mail server'`))
			o.server.Behave(nil)
			require.Equal(t, 1, o.send())
			o.Now = o.Now.Add(time.Minute)
			require.Equal(t, 1, o.send())
			require.Equal(t, 2, o.Count(`SELECT count(*) FROM notice WHERE delivered_at IS NOT NULL`))
			ids := map[string]bool{}
			for _, m := range o.server.Messages() {
				header, _ := read(t, m.Raw)
				ids[header.Get("Message-Id")] = true
			}
			require.Len(t, ids, 2)
			require.NotContains(t, o.log.String(), "@example.com", "addresses of people are not logged")
		})
	}
}

// TestAServerThatIsDownAndReturnsGetsEverything that waits meanwhile, and nothing twice.
func TestAServerThatIsDownAndReturnsGetsEverything(t *testing.T) {
	o := newOffice(t, mailtest.Options{})
	o.server.Stop()
	o.test()
	for i := 1; i < notice.MaxAttempts; i++ {
		require.Equal(t, 1, o.send(), i)
		require.Equal(t, "no connection to the mail server", o.last().Last)
		require.Zero(t, o.send(), "not before the pause is over")
		o.Now = *o.last().Next
	}
	o.server.Start()
	require.Equal(t, 1, o.send())
	require.Equal(t, []any{notice.MaxAttempts, "sent"}, []any{o.last().Attempts, o.last().Last})
	require.Len(t, o.server.Messages(), 1)
	o.server.Stop()
	o.test()
	for i := 1; i <= notice.MaxAttempts; i++ {
		require.Equal(t, 1, o.send(), i)
		if next := o.last().Next; next != nil {
			o.Now = *next
		}
	}
	require.Nil(t, o.last().Next, "it is given up")
	o.server.Start()
	o.Now = o.Now.Add(24 * time.Hour)
	require.Zero(t, o.send())
}

// TestNoNameBreaksAHeader: accounts and keys are named by people, and stand in the text alone.
func TestNoNameBreaksAHeader(t *testing.T) {
	o := newOffice(t, mailtest.Options{}, func(c *Config) { c.From.Name = "Régister" })
	const evil = "x\r\nBcc: mallory@example.com\r\n\r\n.\r\nMAIL FROM:<y>\u202e"
	o.Exec(`UPDATE account SET name = ?, bought = 10000`, evil+strings.Repeat("é", 500))
	o.Exec(`UPDATE api_key SET name = ?, expires_at = ?`, evil, o.Now.Add(time.Hour).UnixMilli())
	require.NoError(t, o.Sender.Look(t.Context()))
	require.Equal(t, 1, o.send())
	got := o.server.Messages()
	require.Len(t, got, 1)
	require.Equal(t, "ada@example.com", got[0].To)
	header, text := read(t, got[0].Raw)
	require.ElementsMatch(t, []string{"Mime-Version", "Message-Id", "Date", "Auto-Submitted", "Subject", "From", "To", "Content-Type", "Content-Transfer-Encoding"}, keysOf(header))
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	require.NoError(t, err)
	require.Equal(t, "A key ends soon", subject)
	require.Contains(t, text, "The key x  Bcc: mallory@example.com")
	require.NotContains(t, text, "\nBcc")
	require.NotContains(t, text, "\u202e")
	require.Contains(t, text, "…", "names are cut")
	require.NotContains(t, text, strings.Repeat("é", maxName))
	longest := strings.Repeat("é", maxName)
	require.Equal(t, longest, named(longest))
}

func keysOf(header netmail.Header) (keys []string) {
	for key := range header {
		keys = append(keys, key)
	}
	return keys
}

// TestTheTrustOfTheConfigurationStaysAsItIs: its owner may use it for other servers.
func TestTheTrustOfTheConfigurationStaysAsItIs(t *testing.T) {
	o := newOffice(t, mailtest.Options{})
	o.test()
	require.Equal(t, 1, o.send())
	require.Empty(t, o.config.Trust.ServerName)
}

// TestAServerOfThisMachineIsAskedForNoTLS where that is configured, although it offers it with a certificate that
// nobody trusts.
func TestAServerOfThisMachineIsAskedForNoTLS(t *testing.T) {
	o := newOffice(t, mailtest.Options{}, func(c *Config) { c.Security, c.Trust, c.User, c.Password = None, nil, "", "" })
	o.test()
	require.Equal(t, 1, o.send())
	require.NotNil(t, o.last().Delivered, o.last().Last)
}

func TestAnAddressThatIsNoneGetsNothing(t *testing.T) {
	for _, address := range []string{
		"", "ada", "Ada <ada@example.com>", "ada@example.com, eve@example.com", "ada@example.com\r\nRCPT TO:<eve@example.com>", "<ada@example.com>",
		"ada@exa mple.com", "\"a b\"@example.com", "ada@example.com\x00",
		"ad\u202ea@example.com",
	} {
		require.False(t, validAddress(address), "%q", address)
		o := newOffice(t, mailtest.Options{})
		o.Exec(`UPDATE user SET email = ? WHERE id = 1`, address)
		o.test()
		require.Equal(t, 1, o.send())
		require.Equal(t, []any{"the address can't be used", true}, []any{o.last().Last, o.last().Next == nil}, "%q", address)
		require.Zero(t, o.server.Begun(), "%q", address)
	}
	require.True(t, validAddress("ada.o'neil+x@example.com"))
}

// TestANoticeThatCantBeReadIsGivenUp, and so is one of a kind that a newer writer has stored, and one whose sender is
// invalid: none is sent as half a message, or as another.
func TestANoticeThatCantBeReadIsGivenUp(t *testing.T) {
	o := newOffice(t, mailtest.Options{})
	for _, change := range []string{`body = '{'`, `kind = 'key.new'`} {
		o.test()
		o.Exec(`UPDATE notice SET ` + change)
		require.Equal(t, 1, o.send(), change)
		require.Equal(t, []any{"the notice can't be read", true}, []any{o.last().Last, o.last().Next == nil}, change)
		require.Zero(t, o.server.Begun(), change)
	}
	_, err := New(Config{}).compose(notice.Notice{Kind: notice.Test, Address: "ada@example.com", Body: "{}"})
	require.ErrorIs(t, err, errAddress)
}

func TestWhatEachMessageSays(t *testing.T) {
	c := New(Config{From: netmail.Address{Address: "notices@regedge.example"}, Dashboard: "https://dashboard.example"})
	for kind, want := range map[string][]string{
		notice.LowBalance:      {`{"balance":550,"threshold":600}`, "Credits are low", "Credits left: 550. You wanted to be told below 600.", "/credits"},
		notice.VolumeUsed:      {`{"month":"2026-01","used":8000,"volume":10000}`, "80% of the month's calls are used", "In 2026-01 (UTC) 8000 of the plan's 10000 calls are used.", "/usage"},
		notice.NotFoundCap:     {`{"key":5,"name":"server","begins":"reg_live_abcd","day":"2026-01-31","cap":100}`, "A key is at its cap of not-found lookups", "The key server (reg_live_abcd…) had 100 lookups on 2026-01-31 (UTC) that found nothing", "/keys/5"},
		notice.KeyCreditsSpent: {`{"key":5,"name":"server","begins":"reg_live_abcd","month":"2026-01","credits":500,"until":"2026-02-01T00:00:00Z"}`, "A key has spent its credits of the month", "The key server (reg_live_abcd…) has spent its 500 credits of 2026-01 (UTC). Its lookups are refused with 429 until 1 February 2026, 00:00 UTC, unless you raise its limit.", "/keys/5"},
		notice.KeyEnding:       {`{"key":5,"name":"server","begins":"reg_live_abcd","expires":"2026-02-07T19:05:00+05:30"}`, "A key ends soon", "The key server (reg_live_abcd…) ends on 7 February 2026, 13:35 UTC.", "/keys/5"},
		notice.Test:            {`{"message":"This is a test."}`, "Test of e-mail notices", "This is a test.", "/settings/mail"},
	} {
		m, err := c.compose(notice.Notice{ID: "evt_A", Kind: kind, Account: "Acme", Address: "ada@example.com",
			Body: fmt.Sprintf(`{"id":"evt_A","type":%q,"timestamp":"2026-01-31T12:00:00Z","account":1,"data":%s}`, kind, want[0])})
		require.NoError(t, err)
		var raw bytes.Buffer
		_, err = m.WriteTo(&raw)
		require.NoError(t, err)
		header, text := read(t, raw.String())
		subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
		require.NoError(t, err)
		require.Equal(t, want[1], subject)
		require.Contains(t, text, want[2])
		require.Contains(t, text, "\n\nhttps://dashboard.example"+want[3]+"\n\nAccount: Acme (number 1)\n")
	}
}

// TestAServerThatClosesIsAskedNoMore: after 421 the other messages wait for the next
// connection, without an attempt.
func TestAServerThatClosesIsAskedNoMore(t *testing.T) {
	o := newOffice(t, mailtest.Options{})
	o.SetMail(2, 0)
	o.server.Behave(func(at mailtest.Stage, _ *smtp.Conn) error {
		if at == mailtest.From {
			return &smtp.SMTPError{Code: 421, Message: "closing"}
		}
		return nil
	})
	require.NoError(t, o.Test(o.Mail(2)))
	o.test()
	require.Equal(t, 1, o.send())
	require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE attempts = 0 AND last = ''`))
	require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE attempts = 1 AND last = 'the mail server answered 421'`))
}

func TestAFailureIsLoggedAgainAfterASuccess(t *testing.T) {
	o := newOffice(t, mailtest.Options{})
	logged := func() int { return strings.Count(o.log.String(), "can't be sent") }
	for failures := range 2 {
		o.server.Stop()
		o.test()
		o.send()
		require.Equal(t, failures+1, logged())
		o.server.Start()
		o.Now = *o.last().Next
		require.Equal(t, 1, o.send())
	}
}

// TestTheEndOfTheWriterEndsAConnection, as the end of the batch's time does, whatever the server is waited for.
func TestTheEndOfTheWriterEndsAConnection(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	o := newOffice(t, mailtest.Options{})
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	o.server.Behave(func(at mailtest.Stage, _ *smtp.Conn) error {
		if at == mailtest.Data {
			end()
			<-over
		}
		return nil
	})
	o.test()
	began := time.Now()
	_, err := o.Sender.Send(ctx, notice.Mail)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), o.config.Limit/2)
	require.Zero(t, o.last().Attempts)
	require.NotContains(t, o.log.String(), "can't be sent", "it is no fault of the mail server")
}

// TestAServerThatHangsAtTheEndHoldsUpNothing: the message is accepted, and nobody waits for the farewell.
func TestAServerThatHangsAtTheEndHoldsUpNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	ended := make(chan string, 1) // with the last word
	go func() {
		last := ""
		defer func() { ended <- last }()
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "220 mail.example\r\n")
		answers := map[string]string{"EHLO": "250 mail.example", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on", ".": "250 taken", "RSET": "250 ok"}
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			word, _, _ := strings.Cut(lines.Text(), " ")
			if last = word; answers[word] != "" {
				io.WriteString(conn, answers[word]+"\r\n")
			}
		}
	}()
	o := newOffice(t, mailtest.Options{}, func(c *Config) {
		c.Security, c.Port = None, listener.Addr().(*net.TCPAddr).Port
	})
	o.patient(10 * time.Minute)
	o.test()
	sent := make(chan error, 1)
	go func() { _, err := o.Sender.Send(t.Context(), notice.Mail); sent <- err }()
	require.Eventually(t, func() bool { return len(sent) == 1 }, batchLimit/2, 10*time.Millisecond)
	require.NoError(t, <-sent)
	require.Equal(t, "sent", o.last().Last)
	require.Equal(t, "QUIT", <-ended, "it is told, and the connection closed")
}

// TestAServerThatLeavesAfterAMessageHasTakenIt: the next one waits for another connection, without an attempt.
func TestAServerThatLeavesAfterAMessageHasTakenIt(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close() // at RSET
		io.WriteString(conn, "220 mail.example\r\n")
		answers := map[string]string{"EHLO": "250 mail.example", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on", ".": "250 taken"}
		for lines := bufio.NewScanner(conn); lines.Scan() && lines.Text() != "RSET"; {
			word, _, _ := strings.Cut(lines.Text(), " ")
			if answers[word] != "" {
				io.WriteString(conn, answers[word]+"\r\n")
			}
		}
	}()
	o := newOffice(t, mailtest.Options{}, func(c *Config) {
		c.Security, c.Port = None, listener.Addr().(*net.TCPAddr).Port
	})
	o.SetMail(2, 0)
	require.NoError(t, o.Test(o.Mail(2)))
	o.test()
	require.Equal(t, 1, o.send())
	require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE delivered_at IS NOT NULL AND attempts = 1`))
	require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE attempts = 0 AND last = ''`))
}

// TestAServerThatTakesNoMailKeepsNoConnection open.
func TestAServerThatTakesNoMailKeepsNoConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	left := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			io.WriteString(conn, "554 no mail here\r\n")
			_, err = io.Copy(io.Discard, conn)
		}
		left <- err
	}()
	o := newOffice(t, mailtest.Options{}, func(c *Config) { c.Port = listener.Addr().(*net.TCPAddr).Port })
	o.test()
	require.Equal(t, 1, o.send())
	require.Equal(t, "the mail server answered 554", o.last().Last)
	select {
	case err := <-left:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		require.Fail(t, "the connection is still open")
	}
}
