package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/host/doctor"
	"regedge/host/hint"
	"regedge/host/pki"
	"regedge/host/server"
	"regedge/host/service"
	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
	"regedge/schema"
	"regedge/schema/sample"
)

func TestAServerIsToldFromAFile(t *testing.T) {
	for name, want := range map[string]bool{
		"http://127.0.0.1:8181": true, "https://primary.example": true, "libsql://primary.example": true,
		"registry.db": false, "/var/lib/registry.db": false, "file:registry.db": false, "c:registry.db": false, "": false,
	} {
		require.Equal(t, want, isRemote(name), name)
	}
}

// TestLimitsOfAnEdgeAreThoseOfItsFlags: one that was added, and is not passed on, would do nothing. Its default is that
// of the server.
func TestLimitsOfAnEdgeAreThoseOfItsFlags(t *testing.T) {
	var f edgeFlags
	flags := reflect.ValueOf(&f).Elem()
	defaults := map[string]int{
		"MaxInFlight": server.DefaultMaxInFlight, "MaxConnections": server.DefaultMaxConnections,
		"MaxConnectionsPerAddress": server.DefaultMaxConnectionsPerAddress,
	}
	set := map[string]int{}
	for i := range flags.NumField() {
		if field := flags.Type().Field(i); field.Type.Kind() == reflect.Int {
			require.Contains(t, defaults, field.Name, "name here the default that host/server has for this new limit")
			require.Equal(t, strconv.Itoa(defaults[field.Name]), field.Tag.Get("default"), field.Name)
			set[field.Name] = 100 + i
			flags.Field(i).SetInt(int64(100 + i))
		}
	}
	require.Len(t, set, len(defaults))
	f.Listen = "127.0.0.1:0"
	var closers service.Closers
	open, err := f.open(&Main{}, slog.New(slog.DiscardHandler), &closers)
	require.NoError(t, err)
	defer closers.Close()
	config, err := f.config(open, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for name, want := range set {
		got := reflect.ValueOf(config).FieldByName(name)
		require.True(t, got.IsValid(), "edge.Config has no %s", name)
		require.EqualValues(t, want, got.Int(), "%s is not passed on by edgeFlags.config", name)
	}
}

// TestAServiceWithTLSIsProbedByTLS, whoever its certificate is for.
func TestAServiceWithTLSIsProbedByTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	defer server.Close()
	args := []string{"probe", "--listen", server.Listener.Addr().String(), "--tls-cert", "its.crt"}
	p := start(args...)
	require.Equal(t, exitOK, <-p.ended, p.stderr.String())
	require.Equal(t, exitFailure, <-start(args[:3]...).ended)
}

// TestAnAPIWithTLSSpeaksHTTP1: a client that offers HTTP/2 would get an answer in a protocol that nobody agreed on.
func TestAnAPIWithTLSSpeaksHTTP1(t *testing.T) {
	made, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	cert, key, err := made.Certificate("centre", "127.0.0.1")
	require.NoError(t, err)
	flags := tlsFlags{TLSCert: cert, TLSKey: key}
	listener, err := flags.listen(&Main{Now: time.Now}, "writer", "127.0.0.1:0", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, "http/1.1", conn.ConnectionState().NegotiatedProtocol)
}

// TestFlagsThatCanNotBeMeantAreRefused before anything is begun, by their names.
func TestFlagsThatCanNotBeMeantAreRefused(t *testing.T) {
	files := sqldFlags{CA: "ca.crt", Cert: "primary.crt", Key: "primary.key"}
	none := time.Duration(0)
	for want, refused := range map[string]interface{ Validate() error }{
		"--listen":                              &primaryCommand{Listen: "nowhere", Replication: "127.0.0.1:1", sqldFlags: files},
		"--mirror is an address":                &primaryCommand{Listen: "127.0.0.1:1", Replication: "127.0.0.1:1", Mirror: "https://:443/registry", sqldFlags: files},
		"--replication":                         &primaryCommand{Listen: "127.0.0.1:1", Replication: "nowhere", sqldFlags: files},
		"--listen: ":                            &replicaCommand{Listen: "nowhere"},
		"--listen: address nowhere":             &edgeFlags{Listen: "nowhere"},
		"--life must":                           &trustToken{Life: &none},
		"--life must be positive: what an edge": &trustRenew{},
		"--timeout must":                        &doctorClient{},
		"--interval must":                       &statusCommand{},
		"--keep is at least 1":                  &pushCommand{},
		"--tls-ca, --tls-cert and --tls-key go": &replicaCommand{Listen: "127.0.0.1:1", sqldFlags: sqldFlags{CA: "ca.crt"}},
	} {
		require.ErrorContains(t, refused.Validate(), want)
	}
	require.NoError(t, (&primaryCommand{Listen: "127.0.0.1:1", Replication: "127.0.0.1:1", sqldFlags: files}).Validate())
	require.NoError(t, (&replicaCommand{Listen: "127.0.0.1:1", Primary: "http://127.0.0.1:1"}).Validate())
	require.NoError(t, (&replicaCommand{Listen: "127.0.0.1:1", Primary: "https://127.0.0.1:1", sqldFlags: files}).Validate())
	require.NoError(t, (&trustToken{}).Validate())
}

// TestAProbeWaitsAsLongAsItsFlagSays: a container's health check has a limit of its own.
func TestAProbeWaitsAsLongAsItsFlagSays(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and says nothing
	require.NoError(t, err)
	defer silent.Close()
	code, said := ran("probe", "--listen", silent.Addr().String(), "--timeout", "100ms")
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "does not answer within 100ms")
	code, said = ran("probe", "--timeout", "0s")
	require.Equal(t, exitMisuse, code)
	require.Contains(t, said, "--timeout must be positive")
}

// TestTokensLeaveThisMachineByTLSAlone: the TLS of the service itself, or of a proxy that the operator has named.
func TestTokensLeaveThisMachineByTLSAlone(t *testing.T) {
	certificate := tlsFlags{TLSCert: "its.crt", TLSKey: "its.key"}
	for _, address := range []string{"0.0.0.0:8081", ":8081", "192.0.2.1:8081", "centre.example.org:8081", "[::]:8081"} {
		require.ErrorContains(t, new(tlsFlags).check(address), "give --tls-cert and --tls-key, or say --behind-tls", address)
		require.NoError(t, (&tlsFlags{BehindTLS: true}).check(address), address)
		require.NoError(t, certificate.check(address), address)
	}
	for _, address := range []string{"127.0.0.1:8081", "localhost:8081", "[::1]:8081", "127.8.0.1:8081"} {
		require.NoError(t, new(tlsFlags).check(address), address)
	}
	require.ErrorContains(t, (&tlsFlags{TLSCert: "its.crt", BehindTLS: true}).check("127.0.0.1:8081"), "go together")
	require.ErrorContains(t, (&tlsFlags{TLSKey: "its.key", BehindTLS: true}).check("127.0.0.1:8081"), "go together")
}

// TestAnUnfinishedRegistryIsLeftToThePush, which says how it is finished; a damaged one is refused before.
func TestAnUnfinishedRegistryIsLeftToThePush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	_, err := sample.Import(t.Context(), path, time.Now)
	require.NoError(t, err)
	require.NoError(t, refuseBroken(t.Context(), path))
	change := func(statement string) {
		t.Helper()
		db, err := schema.OpenFile(path)
		require.NoError(t, err)
		_, err = db.Exec(statement)
		require.NoError(t, errors.Join(err, db.Close()))
	}
	change("DELETE FROM director")
	require.ErrorContains(t, refuseBroken(t.Context(), path), "is not whole, and nothing was written")
	change("DELETE FROM release")
	require.NoError(t, refuseBroken(t.Context(), path))
}

// TestAReplicaWithoutTLSIsAskedForItsPrimary, too.
func TestAReplicaWithoutTLSIsAskedForItsPrimary(t *testing.T) {
	p := start("doctor", "replica", "--dir", t.TempDir(), "--listen", testkit.FreePort(t), "--primary", "http://"+testkit.FreePort(t), "--json")
	require.Equal(t, exitFailure, <-p.ended)
	var found diagnosis
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &found))
	for _, what := range []string{"queries", "primary"} {
		at := slices.IndexFunc(found.Findings, func(f doctor.Finding) bool { return f.What == what })
		require.GreaterOrEqual(t, at, 0, what)
		require.Contains(t, found.Findings[at].Found, "nothing listens at", what)
	}
}

// TestARefusalOfATokenSaysWhereAnotherIsFrom, by why it is refused.
func TestARefusalOfATokenSaysWhereAnotherIsFrom(t *testing.T) {
	o := &operator{Writer: "http://10.0.0.1:8081"}
	for want, err := range map[string]error{
		"is REGEDGE_TOKEN the operator's token of the writer at http://10.0.0.1:8081?": writer.ErrUnauthorized,
		"regedge trust operator add makes another":                                     writer.ErrTokenEnded,
		"use a token with that role":                                                   writer.ErrForbidden,
	} {
		explained := o.explain(fmt.Errorf("list the accounts: %w", err))
		require.Contains(t, hint.Of(explained), want)
		require.ErrorIs(t, explained, err)
	}
}

// TestALongAnswerDoesNotMakeTheWriterAStranger: its address is right, and less has to be asked for.
func TestALongAnswerDoesNotMakeTheWriterAStranger(t *testing.T) {
	explained := (&operator{Writer: "http://10.0.0.1:8081"}).explain(fmt.Errorf("list usage: %w", writer.ErrTooLong))
	require.Contains(t, hint.Of(explained), "ask for less: usage has --account, --from and --to")
	require.NotContains(t, explained.Error(), "not a writer")
}

// TestAWriterOfAnotherNameIsNoStranger: its certificate is good, and the address has another name.
func TestAWriterOfAnotherNameIsNoStranger(t *testing.T) {
	o := &operator{Writer: "https://10.0.0.1:8081"}
	for want, err := range map[string]error{
		"use a name of its certificate":      &url.Error{Op: "Get", URL: o.Writer, Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "10.0.0.1"}},
		"set SSL_CERT_FILE to the ca.crt of": &url.Error{Op: "Get", URL: o.Writer, Err: x509.UnknownAuthorityError{}},
	} {
		require.Contains(t, hint.Of(o.explain(err)), want)
		require.ErrorIs(t, o.explain(err), err)
	}
}

// TestAWriterOfTheOtherSchemeIsExplained: whoever forgot TLS, or has it where the writer has none, is told the other beginning.
func TestAWriterOfTheOtherSchemeIsExplained(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0) // of the plain request
	encrypted.StartTLS()
	defer encrypted.Close()
	for _, c := range []struct{ address, want string }{
		{"https://" + plain.Listener.Addr().String(), "begin with http://?"},
		{"http://" + encrypted.Listener.Addr().String(), "begin with https://?"},
	} {
		p := start("account", "list", "--writer", c.address, "--token", "any")
		require.Equal(t, exitFailure, endOf(t, p))
		require.Contains(t, p.stderr.String(), c.want)
	}
}

// TestWhatACommandAsksOfTheWriter: what a question says is read first, a list is as long as asked also from a place on, and
// what is unknown is no empty list.
func TestWhatACommandAsksOfTheWriter(t *testing.T) {
	var lists, of []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		switch path := r.URL.Path; {
		case path == "/v1/nodes":
			io.WriteString(w, `{"data":[{"name":"restarted","epoch":3},{"name":"new"}]}`)
		case path == "/v1/tokens":
			io.WriteString(w, `[{"name":"ended","ended":true},{"name":"good","role":"read"}]`)
		case path == "/v1/accounts/1":
			io.WriteString(w, `{"id":1}`)
		case path == "/v1/accounts", path == "/v1/requests", path == "/v1/audit":
			lists = append(lists, r.URL.Query().Get("limit"))
			of = append(of, r.URL.Query().Get("account")+"/"+r.URL.Query().Get("key"))
			io.WriteString(w, `{"data":[]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"status":404,"code":"not_found","detail":"there is no such thing as `+path+`"}`)
		}
	}))
	defer server.Close()
	run := func(args ...string) (int, string) {
		return ran(append(args, "--writer", server.URL, "--token", "a token")...)
	}
	code, said := run("account", "suspend", "9")
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "there is no such thing as /v1/accounts/9")
	require.NotContains(t, said, "Suspend account")
	code, said = run("key", "rotate", "7", "--overlap", "0s")
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "there is no such thing as /v1/keys/7\n", "it asks what the old secret is of first")
	for flags, does := range map[string]string{"": "Retire node restarted for ever?", "--old-epochs": "that node restarted holds under its earlier epochs?"} {
		code, said = run(append([]string{"node", "retire", "restarted"}, strings.Fields(flags)...)...)
		require.Equal(t, exitFailure, code)
		require.Contains(t, said, does)
	}
	code, said = run("key", "requests", "--account", "1", "--key", "7")
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "there is no such thing as /v1/keys/7")
	require.Equal(t, []string{"1/7"}, of, "only those that were asked for")
	code, said = run("audit", "--account", "1")
	require.Equal(t, exitOK, code, said)
	require.Equal(t, []string{"1/7", "1/"}, of)
	lists = nil
	code, said = run("account", "list", "--limit", "3", "--cursor", "5")
	require.Equal(t, exitOK, code, said)
	require.Equal(t, []string{"3"}, lists)

	client := writer.NewClient(server.URL, "a token", nil)
	for name, asks := range map[string]bool{"restarted": true, "new": false} {
		question, err := tokenQuestion(name)(t.Context(), client)
		require.NoError(t, err)
		require.Equal(t, asks, question != "", "%s: %s", name, question)
	}
	for name, asks := range map[string]bool{"good": true, "ended": false} {
		question, err := endQuestion(name)(t.Context(), client)
		require.NoError(t, err)
		require.Equal(t, asks, question != "", "%s: %s", name, question)
	}
}

// TestATokensFileMayBeOfAnEditor: with the line ends of Windows, or blanks around.
func TestATokensFileMayBeOfAnEditor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for _, text := range []string{"a-token", "a-token\n", "a-token\r\n", " a-token \n\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		token, err := readToken("another", file)
		require.NoError(t, err)
		require.Equal(t, "a-token", token)
	}
}

// TestTheDashboardHasWhatItsFlagsSay: private webhooks for development alone, and pages of which only those that exist are linked.
func TestTheDashboardHasWhatItsFlagsSay(t *testing.T) {
	f := dashboardFlags{DashboardURL: "https://d.example", ReferenceURL: "https://r.example"}
	for _, is := range []bool{false, true} {
		f.PrivateWebhooks = is
		c := f.config(writer.Config{OperatorToken: "of operators"}, !is, is)
		require.Equal(t, []any{f.DashboardURL, f.ReferenceURL, "of operators"}, []any{c.URL, c.ReferenceURL, c.OperatorToken})
		require.Equal(t, []bool{is, !is, is}, []bool{c.PrivateWebhooks, c.Mail, c.Secure})
	}
}
