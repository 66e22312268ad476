package sqld

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/replicate/registry/libsql"
)

// primary is sqld behind a gate.
type primary func(*http.Request) (*http.Response, error)

func (p primary) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

// TestACallIsPassedOnAsItWasCompared: its path alone, and a body of a position in the log at most.
func TestACallIsPassedOnAsItWasCompared(t *testing.T) {
	g := &gate{target: "127.0.0.1:5001", calls: map[string]int{}, output: newOutput(io.Discard)}
	c := g.connect()
	var asked string
	var body error
	c.proxy.Transport = primary(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.String()
		_, body = io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, body
	})
	call := func(bytes int) {
		r := httptest.NewRequest(http.MethodPost, "/wal_log.ReplicationLog/Hello?more=1", strings.NewReader(strings.Repeat("x", bytes)))
		r.ProtoMajor, r.TLS = 2, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{SerialNumber: big.NewInt(7)}}}
		g.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(t.Context(), connectionKey{}, c)))
	}
	for range callsAtOnce + 1 { // one after the other
		call(callBytes)
		require.NoError(t, body)
	}
	require.Equal(t, "https://127.0.0.1:5001/wal_log.ReplicationLog/Hello", asked)
	call(callBytes + 1)
	require.ErrorContains(t, body, "too large")
	require.Empty(t, g.calls)
}

// TestEveryCallOfReplicationIsPassedOn, a snapshot's too, which a replica asks for only when it is far behind. The
// answers that are the gate's own say whether to try again.
func TestEveryCallOfReplicationIsPassedOn(t *testing.T) {
	g := &gate{target: "127.0.0.1:5001", calls: map[string]int{}, output: newOutput(io.Discard)}
	c := g.connect()
	call := func(name string) http.Header {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/wal_log.ReplicationLog/"+name, nil)
		r.ProtoMajor, r.TLS = 2, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{SerialNumber: big.NewInt(7)}}}
		g.ServeHTTP(w, r.WithContext(context.WithValue(t.Context(), connectionKey{}, c)))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Header()
	}
	names := []string{"Hello", "LogEntries", "BatchLogEntries", "Snapshot"}
	for _, name := range names {
		c.proxy.Transport = primary(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Passed": {r.URL.Path}}, Body: http.NoBody}, nil
		})
		require.Equal(t, "/wal_log.ReplicationLog/"+name, call(name).Get("Passed"))
	}
	c.proxy.Transport = primary(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	none := call("Hello")
	require.Equal(t, []string{"application/grpc", "14", "the primary does not answer"}, []string{none.Get("Content-Type"), none.Get("Grpc-Status"), none.Get("Grpc-Message")})
	for range callsAtOnce {
		require.True(t, g.enter("7"))
	}
	require.True(t, g.enter("8"), "another certificate has calls of its own")
	require.Equal(t, "8", call("Hello").Get("Grpc-Status"))
	g.leave("7")
	require.Equal(t, "14", call("Hello").Get("Grpc-Status"))
}

// TestCallsThatAreNotReplicationAreRefused, and logged once a connection.
func TestCallsThatAreNotReplicationAreRefused(t *testing.T) {
	var log bytes.Buffer
	g := &gate{target: "127.0.0.1:5001", calls: map[string]int{}, output: newOutput(&log)}
	ctx := context.WithValue(t.Context(), connectionKey{}, g.connect())
	for _, call := range [][2]string{{http.MethodPost, "/proxy.Proxy/Execute"}, {http.MethodGet, "/wal_log.ReplicationLog/Hello"}, {http.MethodPost, "/"}} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(call[0], call[1], nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "mumbai-1"}}}}
		g.ServeHTTP(w, r.WithContext(ctx))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "7", w.Header().Get("Grpc-Status"))
		require.Equal(t, libsql.OnlyReplication, w.Header().Get("Grpc-Message"))
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), `refused "mumbai-1"`)
}

// TestBothEndsOfALinkShowCertificates, over TLS 1.3.
func TestBothEndsOfALinkShowCertificates(t *testing.T) {
	ca, cert, key, err := pki.Link(filepath.Join(t.TempDir(), "link"))
	require.NoError(t, err)
	config, err := (&TLSFiles{CA: ca, Cert: cert, Key: key}).load()
	require.NoError(t, err)
	require.EqualValues(t, tls.VersionTLS13, config.MinVersion)
	require.Equal(t, tls.RequireAndVerifyClientCert, config.ClientAuth)
	_, err = (&TLSFiles{CA: key, Cert: cert, Key: key}).load()
	require.ErrorContains(t, err, key+" holds no certificate")
}

// TestRefusalsOfAGateAreLoggedNowAndThen: a replica that is refused asks again four times a second.
func TestRefusalsOfAGateAreLoggedNowAndThen(t *testing.T) {
	var log bytes.Buffer
	g := &gate{output: newOutput(&log)}
	g.tell("refused one")
	g.tell("refused two")
	require.Equal(t, "regedge: refused one\n", log.String())
	g.told = g.told.Add(-refusedEvery)
	g.tell("refused three")
	require.Equal(t, "regedge: refused one\nregedge: refused three\n", log.String())
}

// TestNoClientHoldsAGateForEver: neither one that says nothing, nor one that reads nothing.
func TestNoClientHoldsAGateForEver(t *testing.T) {
	s := (&gate{output: newOutput(io.Discard)}).server(&tls.Config{})
	reads, err := openReads(&Config{HTTP: "127.0.0.1:0", Reads: &Reads{}}, newOutput(io.Discard), nil)
	require.NoError(t, err)
	defer reads.close()
	behind := (&gate{link: &tls.Config{}, output: newOutput(io.Discard)}).connect().proxy.Transport.(*http.Transport)
	for what, limit := range map[string]time.Duration{
		"handshake and header": s.ReadHeaderTimeout, "no call": s.IdleTimeout,
		"silence": s.HTTP2.SendPingTimeout, "no answer to a ping": s.HTTP2.PingTimeout, "nothing read": s.HTTP2.WriteByteTimeout,
		"header of a query": reads.web.ReadHeaderTimeout, "query": reads.web.ReadTimeout, "no query": reads.web.IdleTimeout,
		"an answer to a query that is not read": reads.web.WriteTimeout,
		"no call behind the gate":               behind.IdleConnTimeout,
	} {
		require.Positive(t, limit, what)
		require.LessOrEqual(t, limit, 2*time.Minute, what)
	}
	require.Equal(t, []int{headerBytes, headerBytes}, []int{s.MaxHeaderBytes, reads.web.MaxHeaderBytes}, "nor with a header that fills the memory")
}

// TestTheConnectionsOfAGateForQueriesAreBounded: the program's own test looks at the connections of a primary.
func TestTheConnectionsOfAGateForQueriesAreBounded(t *testing.T) {
	bounded := 0
	config := Config{HTTP: "127.0.0.1:0", Reads: &Reads{}, Bound: func(l net.Listener) net.Listener { bounded++; return l }}
	g, err := openReads(&config, newOutput(io.Discard), nil)
	require.NoError(t, err)
	g.close()
	require.Equal(t, 1, bounded)
}

// TestQueriesArePassedOnWithTheGatesOwnToken, and refused with the status that says why.
func TestQueriesArePassedOnWithTheGatesOwnToken(t *testing.T) {
	config := Config{HTTP: "127.0.0.1:0", Reads: &Reads{Token: "of the gate", Admit: func(token string) bool { return token == "good" }}}
	g, err := openReads(&config, newOutput(io.Discard), nil)
	require.NoError(t, err)
	defer g.close()
	passed := ""
	g.proxy.Transport = primary(func(r *http.Request) (*http.Response, error) {
		var body []byte
		if r.Body != nil { // of a GET
			var err error
			body, err = io.ReadAll(r.Body)
			require.NoError(t, err)
		}
		require.EqualValues(t, len(body), r.ContentLength)
		require.Equal(t, "Bearer of the gate", r.Header.Get("Authorization"))
		require.Empty(t, r.Header.Get("Cookie"))
		if r.Method == http.MethodPost {
			require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		}
		passed = r.URL.String() + " " + string(body)
		_, limited := r.Context().Deadline()
		require.Equal(t, r.URL.Path == healthPath, limited, "what anybody may ask must not wait for a server that hangs")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	for _, c := range []struct {
		method, target, token, body string
		status                      int
		passed                      string
	}{
		{"POST", "/v2/pipeline?more=1", "Bearer good", `{ "requests": [ ] }`, 200, "http://" + config.HTTP + `/v2/pipeline {"requests":[]}`},
		{"POST", "/v3/cursor", "Bearer bad", `{}`, 401, ""},
		{"POST", "/v3/cursor", "Bearer Good", `{}`, 401, ""},
		{"POST", "/v3/cursor", "", `{}`, 401, ""},
		{"POST", "/v2/pipeline", "Bearer good", `{"sql":"SELECT readfile('x')"}`, 403, ""},
		{"POST", "/v2/pipeline", "Bearer good", `{"sql":"` + strings.Repeat("x", statementBytes) + `"}`, 400, ""},
		{"POST", "/v2/pipeline", "Bearer good", `{`, 400, ""},
		{"POST", "/dump", "Bearer good", `{}`, 403, ""},
		{"DELETE", "/version", "Bearer good", "", 403, ""},
		{"GET", "/version", "Bearer good", "", 200, "http://" + config.HTTP + "/version "},
		{"GET", "/version", "Bearer bad", "", 401, ""},
		{"GET", "/health", "", "", 200, "http://" + config.HTTP + "/health "},
		{"GET", "/health", "", "of anybody", 200, "http://" + config.HTTP + "/health "},
		{"POST", "/health", "", "", 403, ""},
	} {
		passed = ""
		w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
		r.Header.Set("Cookie", "of the client")
		if c.token != "" {
			r.Header.Set("Authorization", c.token)
		}
		g.ServeHTTP(w, r)
		require.Equal(t, c.status, w.Code, "%s %s", c.method, c.target)
		require.Equal(t, c.passed, passed)
		if c.status != http.StatusOK {
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		}
	}
	g.proxy.Transport = primary(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/version", nil)
	r.Header.Set("Authorization", "Bearer good")
	g.ServeHTTP(w, r)
	require.Equal(t, http.StatusBadGateway, w.Code)
	require.JSONEq(t, `{"error":"the replica does not answer"}`, w.Body.String())
}
