package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// TestNoTokenGoesToAServerThatIsNotTrusted; the certificate of an own process is not verified.
func TestNoTokenGoesToAServerThatIsNotTrusted(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		io.WriteString(w, "ready\n")
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	e := exam()
	require.False(t, e.Writer(t.Context(), server.URL, "reg_operator_made_up", OperatorToken))
	require.Len(t, e.Findings, 1)
	require.Contains(t, e.Findings[0].Found, "of an authority that is not trusted here")
	require.Zero(t, calls.Load())
	require.True(t, e.Ready(t.Context(), "edge", server.Listener.Addr().String(), ReadyPath, true))
	require.Equal(t, OK, e.Findings[1].Level)
	server.Close()
	require.False(t, e.Ready(t.Context(), "edge", server.Listener.Addr().String(), ReadyPath, true))
	require.Equal(t, "nothing listens at "+server.Listener.Addr().String(), e.Findings[2].Found)
	require.Equal(t, "edge", e.Findings[2].What)
	require.Contains(t, e.Findings[2].Do, "is it running there?")
	for _, address := range []string{"centre:8081", "", "http://:8081", "http://a b"} {
		f := found(t, func(e *Exam) { require.False(t, e.Writer(t.Context(), address, "", OperatorToken)) })
		require.Contains(t, f.Found, "is not the address of a writer", address)
	}
}

// TestAnOwnServiceIsAskedThroughNoProxy: a container whose environment names one would never be healthy.
func TestAnOwnServiceIsAskedThroughNoProxy(t *testing.T) {
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	proxied := usual.(*http.Transport).Clone()
	proxied.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})
	http.DefaultTransport = proxied
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ready\n") }))
	defer server.Close()
	require.True(t, exam().Ready(t.Context(), "edge", server.Listener.Addr().String(), ReadyPath, false))
}

// TestAWriterBehindAProxyIsAskedThroughIt: the operators' commands reach it so, where no connection of this machine does.
func TestAWriterBehindAProxyIsAskedThroughIt(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, map[string]string{"http://centre.invalid:8081/readyz": "ready\n"}[r.URL.String()])
	}))
	defer proxy.Close()
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	proxied := usual.(*http.Transport).Clone()
	proxied.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy.Listener.Addr().String()})
	http.DefaultTransport = proxied
	e := exam()
	e.Now = time.Now
	require.True(t, e.Writer(t.Context(), "http://centre.invalid:8081", "reg_operator_made_up", OperatorToken))
	require.Zero(t, CountWrong(e.Findings), e.Findings)
	proxy.Close()
	f := found(t, func(e *Exam) {
		require.False(t, e.Writer(t.Context(), "http://centre.invalid:8081", "", OperatorToken))
	})
	require.Contains(t, f.Found, "the proxy on the way to http://centre.invalid:8081 is not reached")
	require.Contains(t, f.Do, "NO_PROXY")
}

// TestADatabaseThatIsNotTrustedIsToldSo, as a writer is: its own log says nothing of it.
func TestADatabaseThatIsNotTrustedIsToldSo(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	f := found(t, func(e *Exam) { e.LibSQL(t.Context(), Server{Database: schema.Registry, Address: server.URL}) })
	require.Equal(t, Wrong, f.Level)
	require.Contains(t, f.Found, "of an authority that is not trusted here")
	require.Contains(t, f.Do, "SSL_CERT_FILE")
}

// TestARestoredLedgerIsFound with the nodes that it waits for.
func TestARestoredLedgerIsFound(t *testing.T) {
	mux := http.NewServeMux()
	late := ""
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ready\n"+late) })
	health := `{"restoring":true,"waiting":["east","west"]}`
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, health) })
	server := httptest.NewServer(mux)
	defer server.Close()
	e := exam()
	e.Now = time.Now
	require.True(t, e.Writer(t.Context(), server.URL, "reg_operator_made_up", OperatorToken))
	require.Equal(t, 1, CountWrong(e.Findings), "%v", e.Findings)
	require.Contains(t, e.Findings[0].Found, server.URL+" is ready, and answered in ")
	last := e.Findings[len(e.Findings)-1]
	require.Equal(t, []any{"ledger", Wrong}, []any{last.What, last.Level})
	require.Contains(t, last.Found, "until these nodes have reported: east, west")

	health = `{"restoring":false,"waiting":[]}`
	e.Findings = nil
	require.True(t, e.Writer(t.Context(), server.URL, "reg_operator_made_up", OperatorToken))
	require.Zero(t, CountWrong(e.Findings), "%v", e.Findings)

	late = "the access database misses 3 changes, the oldest for 12 s\n" // as the writer says it
	e.Findings = nil
	require.True(t, e.Writer(t.Context(), server.URL, "reg_operator_made_up", OperatorToken))
	require.Equal(t, "edges don't know of the newest changes: the access database misses 3 changes, the oldest for 12 s", e.Findings[1].Found)
	require.Equal(t, Wrong, e.Findings[1].Level)
	require.Contains(t, e.Findings[1].Do, "access primary")

	late = "the access database misses 1 changes, the oldest for 12 s: " + writer.EmptyLedgerRemark + "\n"
	e.Findings = nil
	require.True(t, e.Writer(t.Context(), server.URL, "reg_operator_made_up", OperatorToken))
	require.Contains(t, e.Findings[1].Do, "is that disk mounted", "its primary is well")

	late = "registry database: no heartbeat: the writer's log says why\n"
	e.Findings = nil
	require.True(t, e.Writer(t.Context(), server.URL, "reg_operator_made_up", OperatorToken))
	require.Equal(t, 1, CountWrong(e.Findings), "%v", e.Findings)
	require.Equal(t, []any{"heartbeats", Wrong}, []any{e.Findings[1].What, e.Findings[1].Level})
	require.Contains(t, e.Findings[1].Found, ": registry database: no heartbeat: the writer's log says why")
}

// TestWhatAReadyWriterRemarksIsFound on its own machine too: its clock, without which no node is ready, and what it can't write.
func TestWhatAReadyWriterRemarksIsFound(t *testing.T) {
	said := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ready\n"+said) }))
	defer server.Close()
	examined := func() *Exam {
		e := exam()
		e.Now = time.Now
		e.OwnWriter(t.Context(), server.Listener.Addr().String(), false)
		require.Equal(t, OK, e.Findings[0].Level)
		return e
	}
	require.Len(t, examined().Findings, 1)
	said = writer.ClockRemark + "1h0m0s ahead of most nodes': set it right\n" + // as the writer says it
		"registry database: no heartbeat: the writer's log says why\nthe access database misses 3 changes, the oldest for 12 s\n"
	e := examined()
	require.Equal(t, 3, CountWrong(e.Findings), "%v", e.Findings)
	require.Equal(t, "clock of the writer", e.Findings[2].What)
	require.Contains(t, e.Findings[2].Found, "1h0m0s ahead of most nodes'")
	require.Contains(t, e.Findings[1].Found, "misses 3 changes")
	require.Equal(t, "heartbeats", e.Findings[3].What)
	e.Findings = nil
	e.Writer(t.Context(), server.URL, "reg_node_made_up", EdgeToken)
	require.Contains(t, e.Findings[2].Found, "1h0m0s ahead of most nodes'", "also to others")
	e.Findings = nil
	e.WriterTroubles(t.Context(), server.URL+"/")
	require.Equal(t, 3, len(e.Findings), "without what is well: %v", e.Findings)
	said, e.Findings = "", nil
	e.WriterTroubles(t.Context(), server.URL)
	require.Empty(t, e.Findings)
}

// TestACertificateThatIsNotValidYetIsWrong, as on a machine whose clock is behind.
func TestACertificateThatIsNotValidYetIsWrong(t *testing.T) {
	e, dir := exam(), t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: e.Now().Add(time.Hour), NotAfter: e.Now().AddDate(1, 0, 0)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile := filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	e.Certificate("certificate", certFile, keyFile, "")
	require.Equal(t, Wrong, e.Findings[0].Level)
	require.Contains(t, e.Findings[0].Found, "is valid from 2026-11-24T04:00:00Z on")
	e.Now = func() time.Time { return template.NotBefore }
	e.Certificate("certificate", certFile, keyFile, "")
	require.Equal(t, OK, e.Findings[1].Level)
}

// TestAHeartbeatOfTheFutureSaysNoAge: one of both clocks is wrong.
func TestAHeartbeatOfTheFutureSaysNoAge(t *testing.T) {
	for age, want := range map[time.Duration]Level{
		-maxSkew - time.Millisecond: Wrong, -maxSkew: OK, 0: OK, lagging: OK, lagging + 1: Soon, time.Minute: Soon, time.Minute + 1: Wrong,
	} {
		e := exam()
		e.age(string(schema.Access), "a file", "", age, time.Minute)
		require.Equal(t, want, e.Findings[0].Level, age)
	}
}

// TestATokenThatEndedIsToldFromOneThatIsNone: another of its name has to be made.
func TestATokenThatEndedIsToldFromOneThatIsNone(t *testing.T) {
	code := ""
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ready\n") })
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"code":"`+code+`","detail":"the token olga ended at noon"}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, c := range []struct{ code, found, do string }{
		{"token_ended", "the token olga ended at noon", "regedge trust operator add makes another, with a token that may do all"},
		{"unauthorized", "the writer refuses it: the token olga ended at noon", "is REGEDGE_TOKEN an operators' token of this cluster?"},
		{"internal", "the writer answers 401 internal", "the writer's log says more"},
	} {
		code = c.code
		e := exam()
		e.Now = time.Now
		require.False(t, e.Writer(t.Context(), server.URL, "reg_operator_made_up", OperatorToken))
		last := e.Findings[len(e.Findings)-1]
		require.Equal(t, []any{"operators' token", Wrong}, []any{last.What, last.Level})
		require.Contains(t, last.Found, c.found)
		require.Contains(t, last.Do, c.do)
	}
}

// TestAProxyThatReachesNoWriterIsNotTakenForIt: its pages were the cause that was told, or nothing was.
func TestAProxyThatReachesNoWriterIsNotTakenForIt(t *testing.T) {
	page, ready := "", false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ready && r.URL.Path == ReadyPath {
			io.WriteString(w, "ready\n")
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, page)
	}))
	defer server.Close()
	for _, page = range []string{"", "\n<html><body>No server is available</body></html>"} {
		for _, ready = range []bool{false, true} {
			e := exam()
			e.Now = time.Now
			require.False(t, e.Writer(t.Context(), server.URL, "reg_operator_made_up", OperatorToken))
			require.Equal(t, 1, CountWrong(e.Findings), "%v", e.Findings)
			last := e.Findings[len(e.Findings)-1]
			require.Equal(t, "what answers at "+server.URL+" is not the writer (status 503)", last.Found)
			require.Contains(t, last.Do, "a proxy in front of the writer")
		}
		e := exam()
		e.WriterTroubles(t.Context(), server.URL)
		require.Empty(t, e.Findings, "it is ready")
		ready = false
		e.WriterTroubles(t.Context(), server.URL)
		require.Len(t, e.Findings, 1)
		require.Contains(t, e.Findings[0].Found, "is not the writer")
	}
}
