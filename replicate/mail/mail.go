package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	netmail "net/mail"
	"net/textproto"
	"regexp"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"

	"regedge/replicate/notice"
)

// Security is how the connection to the mail server is protected.
type Security string

// The ways. None is for a server on this machine.
const (
	StartTLS Security = "starttls"
	Implicit Security = "implicit"
	None     Security = "none"
)

// PerDay is how many messages an address gets within 24 hours, at most.
const PerDay = 20

const (
	// answerLimit bounds the opening of a connection, and each message.
	answerLimit = 20 * time.Second
	// batchLimit bounds a connection with all its messages.
	batchLimit = time.Minute
	// quitLimit bounds the QUIT at the end, whose result does not matter.
	quitLimit = time.Second
	// maxAnswers bounds what a mail server may say on one connection, in bytes.
	maxAnswers = 1 << 20
)

// Config configures a Carrier. Host, Port and From are required.
type Config struct {
	Host     string
	Port     int
	Security Security // StartTLS when empty
	// User and Password sign in; without User nothing does.
	User, Password string
	// From is the sender.
	From netmail.Address
	// Dashboard begins the links in messages.
	Dashboard string
	// Trust are the TLS settings; nil trusts the system's authorities.
	Trust *tls.Config
	// Limit replaces answerLimit when it is not 0.
	Limit time.Duration
	// Logger gets the reasons of failures; nil discards them.
	Logger *slog.Logger
}

// Carrier sends messages. It is a notice.Carrier.
type Carrier struct {
	config Config
	batch  time.Duration // batchLimit

	mu   sync.Mutex
	said string // the last failure that was logged, "" after a success
}

// New makes a Carrier.
func New(config Config) *Carrier {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Limit == 0 {
		config.Limit = answerLimit
	}
	return &Carrier{config: config, batch: batchLimit}
}

// Carry sends the messages one after another on one connection. When that breaks, or has no time left for another
// message, the rest wait for the next call; this does not count as an attempt.
func (c *Carrier) Carry(whole context.Context, list []notice.Notice) []notice.Outcome {
	ctx, cancel := context.WithTimeout(whole, c.batch)
	defer cancel()
	outcomes := make([]notice.Outcome, len(list))
	s, err := c.dial(ctx)
	if err != nil {
		c.report(whole, err)
		for i := range outcomes {
			outcomes[i].Result = inWords(err)
		}
		return outcomes
	}
	defer s.close()
	end, _ := ctx.Deadline()
	for i, usable := 0, true; i < len(list); i++ {
		if !usable || i > 0 && time.Until(end) < c.config.Limit { // a message cut off after it was accepted would come again
			outcomes[i].State = notice.Untried
			continue
		}
		outcomes[i], usable = c.send(whole, s, list[i])
	}
	return outcomes
}

// session is a connection to the mail server.
type session struct {
	client *gomail.Client
	conn   *bounded
	stop   func() bool // of closing conn when the context ends
}

// dial connects, has the connection encrypted and signs in.
func (c *Carrier) dial(batch context.Context) (*session, error) {
	s := &session{stop: func() bool { return true }}
	options := []gomail.Option{
		gomail.WithPort(c.config.Port), gomail.WithTimeout(c.config.Limit), gomail.WithoutNoop(), gomail.WithTLSConfig(c.tls()),
		gomail.WithDialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := s.open(ctx, network, address, c)
			if s.conn != nil { // closed when the batch's time is over, whatever waits for it then
				s.stop = context.AfterFunc(batch, func() { s.conn.Close() })
			}
			return conn, err
		}),
	}
	switch c.config.Security {
	case Implicit:
		options = append(options, gomail.WithSSL())
	case None:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if c.config.User != "" {
		options = append(options, gomail.WithUsername(c.config.User), gomail.WithPassword(c.config.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	var err error
	if s.client, err = gomail.NewClient(c.config.Host, options...); err == nil {
		err = s.client.DialWithContext(batch)
	}
	if err != nil {
		s.hangUp()
		return nil, err
	}
	return s, nil
}

func (c *Carrier) tls() *tls.Config {
	config := &tls.Config{}
	if c.config.Trust != nil {
		config = c.config.Trust.Clone()
	}
	config.ServerName, config.MinVersion = c.config.Host, tls.VersionTLS12
	return config
}

// open makes the connection.
func (s *session) open(ctx context.Context, network, address string, c *Carrier) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.conn = &bounded{Conn: conn, left: maxAnswers}
	if c.config.Security != Implicit {
		return s.conn, nil
	}
	secure := tls.Client(s.conn, c.tls())
	return secure, secure.HandshakeContext(ctx)
}

// bounded is a connection with a limit on the bytes read. It keeps the error that ended it, which the
// library returns only as text.
type bounded struct {
	net.Conn
	left  int
	broke error
}

var (
	errTooMuch = errors.New("the mail server says too much")
	errUnsent  = errors.New("the mail server does not speak as it should")
)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.broke = errTooMuch
		return 0, errTooMuch
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil {
		b.broke = err
	}
	return n, err
}

// close says goodbye and ends the connection.
func (s *session) close() {
	s.conn.SetDeadline(time.Now().Add(quitLimit))
	s.client.Close()
	s.hangUp()
}

func (s *session) hangUp() {
	s.stop()
	if s.conn != nil {
		s.conn.Close()
	}
}

// send sends one message and reports whether the connection can be used again.
func (c *Carrier) send(ctx context.Context, s *session, n notice.Notice) (outcome notice.Outcome, usable bool) {
	message, err := c.compose(n)
	if err != nil {
		return notice.Outcome{State: notice.Refused, Result: err.Error()}, true
	}
	err = s.client.Send(message)
	if message.IsDelivered() { // whatever happened after it was accepted
		c.report(ctx, nil)
		return notice.Outcome{State: notice.Delivered, Result: "sent"}, err == nil
	}
	code, refused := answerOf(err)
	if code == 0 {
		err = cmp.Or(s.conn.broke, errUnsent)
	}
	if refused {
		return notice.Outcome{State: notice.Refused, Result: fmt.Sprintf("the mail server refused the address (%d)", code)}, true
	}
	c.report(ctx, err)
	return notice.Outcome{Result: inWords(err)}, code != 0 && code != 421
}

// answerOf returns the code with which a message was refused, 0 for none, and whether its address was
// refused for good.
func answerOf(err error) (code int, refused bool) {
	var sending *gomail.SendError
	if errors.As(err, &sending) {
		code = sending.ErrorCode()
		return code, sending.Reason == gomail.ErrSMTPRcptTo && code >= 500
	}
	var answer *textproto.Error
	if errors.As(err, &answer) {
		code = answer.Code
	}
	return code, false
}

// ends are the two ends of a connection in an error: its port here is another each time.
var ends = regexp.MustCompile(` (tcp|udp) \S+->\S+:`)

// report logs a failure that the operator can fix; the same one only once until another failure or a success. Of a
// server's answer it logs only the code, since the text may repeat addresses or credentials. Once ctx is done the
// connection was closed on this side, which is no failure.
func (c *Carrier) report(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.said = ""
		return
	}
	if ctx.Err() != nil {
		return
	}
	words := ends.ReplaceAllString(err.Error(), ":")
	var garbled textproto.ProtocolError // which quotes a line without a code
	if code, _ := answerOf(err); code != 0 {
		words = fmt.Sprintf("it answered %d", code)
	} else if errors.As(err, &garbled) {
		words = errUnsent.Error()
	}
	if words == c.said {
		return
	}
	c.said = words
	c.config.Logger.Warn("mail to owners can't be sent", "server", c.config.Host, "port", c.config.Port, "error", words)
}

// inWords tells an owner why a message was not sent, without details of the mail server.
func inWords(err error) string {
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	code, _ := answerOf(err)
	switch {
	case code != 0:
		return fmt.Sprintf("the mail server answered %d", code)
	case errors.As(err, &certificate):
		return "the mail server's certificate is not trusted"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the mail server did not answer in time"
	}
	return "no connection to the mail server"
}
