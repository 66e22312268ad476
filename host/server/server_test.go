package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/server"
)

// answerFunc answers with a function.
type answerFunc func(context.Context, *handler.Request, *handler.Response) error

func (f answerFunc) Answer(ctx context.Context, q *handler.Request, a *handler.Response) error {
	return f(ctx, q, a)
}

// constant answers every request with the same response.
func constant(response handler.Response) answerFunc {
	return func(_ context.Context, _ *handler.Request, a *handler.Response) error {
		a.Status, a.Body = response.Status, append(a.Body, response.Body...)
		a.Headers = append(a.Headers, response.Headers...)
		return nil
	}
}

var fine = constant(handler.Response{
	Status: 200, Body: []byte("{}"),
	Headers: []handler.Header{
		{Name: "Content-Type", Value: "application/json"},
		{Name: handler.HeaderRequestID, Value: "from-the-answerer"},
		{Name: "RateLimit-Limit", Value: "60"},
	},
})

// running is a server on a port of its own.
type running struct {
	url, addr string
	client    *http.Client
	dial      func() (net.Conn, error)
	dialFrom  func(address string) (net.Conn, error) // an address of this machine
	log       *syncBuffer
	metrics   *prometheus.Registry
	stop      func() error // asks it to stop, waits, and returns what Run returned
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// starter starts a server with one of the transports.
type starter func(testing.TB, server.Config) *running

// onBoth tests the server without and with TLS, which use different libraries.
func onBoth(t *testing.T, test func(*testing.T, starter)) {
	t.Run("plain", func(t *testing.T) { test(t, start) })
	t.Run("TLS", func(t *testing.T) { test(t, startSecure) })
}

func dialer(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
}

func startSecure(t testing.TB, config server.Config) *running {
	t.Helper()
	return startChanged(t, config, func(*tls.Config) {})
}

// startChanged starts a server with TLS whose configuration is changed first.
func startChanged(t testing.TB, config server.Config, change func(*tls.Config)) *running {
	t.Helper()
	certFile, keyFile := writeCertificate(t, t.TempDir(), 1)
	var err error
	config.TLS, err = server.NewTLS(certFile, keyFile, time.Now, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	change(config.TLS)
	text, err := os.ReadFile(certFile)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(text))
	r := start(t, config)
	r.url = "https://" + r.addr
	trust := &tls.Config{RootCAs: roots}
	r.client.Transport.(*http.Transport).TLSClientConfig = trust
	r.dialFrom = func(address string) (net.Conn, error) {
		return tls.DialWithDialer(dialer(address), "tcp", r.addr, trust)
	}
	r.dial = func() (net.Conn, error) { return r.dialFrom("127.0.0.1") }
	return r
}

func start(t testing.TB, config server.Config) *running {
	t.Helper()
	r := &running{log: &syncBuffer{}, metrics: prometheus.NewRegistry(), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(r.client.CloseIdleConnections)
	config.Log = slog.New(slog.NewJSONHandler(r.log, nil))
	config.Metrics = r.metrics
	config.NewRequestID = func() string { return "from-the-server" }
	s, err := server.New(config)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.addr = listener.Addr().String()
	r.url = "http://" + r.addr
	r.dialFrom = func(address string) (net.Conn, error) { return dialer(address).Dial("tcp", r.addr) }
	r.dial = func() (net.Conn, error) { return r.dialFrom("127.0.0.1") }
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx, listener) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	t.Cleanup(func() { r.stop() })
	return r
}

// raw sends bytes and returns everything received until the connection ends.
func (r *running) raw(t *testing.T, request string) string {
	t.Helper()
	c, err := r.dial()
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, request)
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(answer)
}

func (r *running) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	response, err := r.client.Get(r.url + path)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

func code(t *testing.T, body string) string {
	t.Helper()
	var problem struct{ Code string }
	require.NoError(t, json.Unmarshal([]byte(body), &problem), body)
	return problem.Code
}

func TestAnswererGetsTheRequestUnchanged(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		var got handler.Request
		var client string
		r := start(t, server.Config{Answerer: answerFunc(
			func(ctx context.Context, q *handler.Request, a *handler.Response) error {
				got = *q
				got.Headers = slices.Clone(q.Headers)
				client = q.ClientAddr()
				return fine(ctx, q, a)
			})})
		for sent, want := range map[string]string{
			"/v1/companies/%41b//../x?name=a%20b&&name=%": "/v1/companies/%41b//../x?name=a%20b&&name=%",
			"/nowhere?":                       "/nowhere?",
			"http://example.com/v1/llps/a?b=": "/v1/llps/a?b=",
			"*":                               "*",
		} {
			method := "GET"
			if sent == "*" {
				method = "OPTIONS"
			}
			host := "example.com"
			if strings.HasPrefix(sent, "http:") {
				host = "not.asked" // RFC 9112, section 3.2.2
			}
			answer := r.raw(t, method+" "+sent+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n"+
				"Authorization: Bearer one\r\nAuthorization: Bearer two\r\nSpin-Client-Addr: 9.9.9.9\r\n\r\n")
			require.Contains(t, answer, "200 OK")
			require.Equal(t, want, got.Target)
			require.Equal(t, method, got.Method)
			require.Equal(t, "example.com", got.Authority)
			require.Equal(t, "127.0.0.1", client)
			require.Equal(t, []string{"Bearer one", "Bearer two"}, got.Values("authorization"))
		}
	})
}

func TestHeaderNamesKeepTheirSpelling(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: constant(handler.Response{
			Status: 200, Body: bytes.Repeat([]byte("x"), 5000),
			Headers: []handler.Header{{Name: "RateLimit-Limit", Value: "60"}, {Name: "Vary", Value: "A"}, {Name: "Vary", Value: "B"}, {Name: "content-length", Value: "7"}},
		})})
		answer := r.raw(t, "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		require.Contains(t, answer, "\r\nRateLimit-Limit: 60\r\n")
		require.Contains(t, answer, "\r\nVary: A\r\nVary: B\r\n")
		require.Contains(t, answer, "\r\nContent-Length: 5000\r\n")
		require.NotContains(t, answer, "content-length")
	})
}

func TestAnAnswerWithoutBodyHasNoLength(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: constant(handler.Response{Status: 204})})
		answer := r.raw(t, "OPTIONS /v1/llps/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		require.Contains(t, answer, "204 No Content")
		require.NotContains(t, answer, "Content-Length")
	})
}

func TestFailedAnswerIsAnInternalErrorWithItsOwnID(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		for name, answerer := range map[string]answerFunc{
			"error": func(context.Context, *handler.Request, *handler.Response) error { return errors.New("secret cause") },
			"panic": func(context.Context, *handler.Request, *handler.Response) error { panic("secret cause") },
			"no status": func(_ context.Context, _ *handler.Request, a *handler.Response) error {
				a.Body = []byte("secret cause")
				return nil
			},
			"half an answer": func(_ context.Context, _ *handler.Request, a *handler.Response) error {
				a.Status, a.Headers = 200, append(a.Headers, handler.Header{Name: "X-Half", Value: "1"})
				return errors.New("secret cause")
			},
		} {
			t.Run(name, func(t *testing.T) {
				r := start(t, server.Config{Answerer: answerer, DocsURL: "http://docs.example"})
				response, body := r.get(t, "/v1/llps/a")
				require.Equal(t, 500, response.StatusCode)
				require.Equal(t, handler.InternalError, code(t, body))
				require.Equal(t, "from-the-server", response.Header.Get("X-Request-Id"))
				require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
				require.Empty(t, response.Header.Get("X-Half"))
				require.NotContains(t, body, "secret")
				require.NoError(t, r.stop())
				require.Contains(t, r.log.String(), "from-the-server")
			})
		}
	})
}

func TestCauseOfAnAnswerIsLoggedWithItsID(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: answerFunc(func(_ context.Context, _ *handler.Request, a *handler.Response) error {
			a.Status, a.Headers = 503, append(a.Headers, handler.Header{Name: handler.HeaderRequestID, Value: "the-lookup"})
			a.Cause = errors.New("secret cause")
			return nil
		})})
		response, body := r.get(t, "/v1/llps/a")
		require.Equal(t, 503, response.StatusCode)
		require.NotContains(t, body, "secret")
		require.NoError(t, r.stop())
		require.Regexp(t, `"level":"ERROR","msg":"answered after a failure","request_id":"the-lookup","error":"secret cause"`, r.log.String())
	})
}

func TestAnswersDoNotShareData(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		turn := 0
		r := start(t, server.Config{Answerer: answerFunc(
			func(ctx context.Context, q *handler.Request, a *handler.Response) error {
				if turn++; turn > 1 {
					a.Status = 200
					return nil
				}
				return fine(ctx, q, a)
			})})
		r.get(t, "/v1/llps/a")
		response, body := r.get(t, "/v1/llps/a")
		require.Empty(t, body)
		require.Empty(t, response.Header.Get("RateLimit-Limit"))
	})
}
