// Package mailtest is a mail server on loopback, for tests of code that sends mail. It speaks SMTP, with or
// without TLS, keeps received messages, and misbehaves as a test says.
package mailtest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
)

// User and Password are the credentials that the server accepts, if it requires sign-in.
const (
	User     = "notices@regedge.example"
	Password = "a password of the mail server's own"
)

// Message is a message that the server received.
type Message struct {
	From, To, Raw string
	TLS           bool
	User          string // the signed-in user
}

// Stage is a moment of a message.
type Stage string

// The stages: Data is before the content, Accepted after it and before the server says so.
const (
	From     Stage = "from"
	To       Stage = "to"
	Data     Stage = "data"
	Accepted Stage = "accepted"
)

// Options are how a server is reached.
type Options struct {
	Implicit bool // TLS from the first byte
	NoTLS    bool
	OldTLS   bool // TLS 1.1 at most
	SignIn   bool // clients must sign in
}

// Server is a mail server.
type Server struct {
	t       testing.TB
	options Options
	tls     *tls.Config
	trust   *x509.CertPool
	addr    string
	server  *smtp.Server
	served  chan error

	mu       sync.Mutex
	behave   func(Stage, *smtp.Conn) error
	messages []Message
	began    int
}

// New starts a server.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1
	defer certified.Close()
	s := &Server{t: t, options: o, trust: x509.NewCertPool(), addr: "127.0.0.1:0"}
	s.trust.AddCert(certified.Certificate())
	s.tls = &tls.Config{Certificates: certified.TLS.Certificates}
	if o.OldTLS {
		s.tls.MinVersion, s.tls.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start starts the server, at the address that it had before.
func (s *Server) Start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.addr)
	require.NoError(s.t, err)
	s.addr = listener.Addr().String()
	s.server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{server: s, conn: c}, nil }))
	s.server.ErrorLog, s.server.Domain = log.New(io.Discard, "", 0), "mail.example"
	if s.options.Implicit {
		listener = tls.NewListener(listener, s.tls)
	} else if !s.options.NoTLS {
		s.server.TLSConfig = s.tls
	}
	s.served = make(chan error, 1)
	go func(server *smtp.Server, served chan error) { served <- server.Serve(listener) }(s.server, s.served)
}

// Stop stops the server and ends its connections.
func (s *Server) Stop() {
	if s.server == nil {
		return
	}
	s.server.Close()
	<-s.served
	s.server = nil
}

// Addr is where the server listens, Port its port.
func (s *Server) Addr() string { return s.addr }

// Port is the server's port.
func (s *Server) Port() int {
	addr, err := net.ResolveTCPAddr("tcp", s.addr)
	require.NoError(s.t, err)
	return addr.Port
}

// Trust are the TLS settings that trust the server.
func (s *Server) Trust() *tls.Config { return &tls.Config{RootCAs: s.trust} }

// Behave has f called at each stage of each message; its error is the answer. Nil behaves well.
func (s *Server) Behave(f func(Stage, *smtp.Conn) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave = f
}

// Messages returns the messages that the server has received whole.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message{}, s.messages...)
}

// Begun is how many messages were begun.
func (s *Server) Begun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// session is one connection.
type session struct {
	server  *Server
	conn    *smtp.Conn
	message Message
	user    string
}

func (s *session) at(stage Stage) error {
	s.server.mu.Lock()
	behave := s.server.behave
	s.server.mu.Unlock()
	if behave == nil {
		return nil
	}
	return behave(stage, s.conn)
}

func (s *session) AuthMechanisms() []string {
	if s.server.options.SignIn {
		return []string{sasl.Plain}
	}
	return nil
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != User || password != Password {
			return &smtp.SMTPError{Code: 535, Message: "no, not " + password}
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.options.SignIn && s.user == "" {
		return smtp.ErrAuthRequired
	}
	s.server.mu.Lock()
	s.server.began++
	s.server.mu.Unlock()
	_, encrypted := s.conn.TLSConnectionState()
	s.message = Message{From: from, TLS: encrypted, User: s.user}
	return s.at(From)
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.message.To != "" {
		return errors.New("one recipient is enough")
	}
	s.message.To = to
	return s.at(To)
}

func (s *session) Data(r io.Reader) error {
	if err := s.at(Data); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return err
	}
	s.message.Raw = string(raw)
	s.server.mu.Lock()
	s.server.messages = append(s.server.messages, s.message)
	s.server.mu.Unlock()
	return s.at(Accepted)
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }
