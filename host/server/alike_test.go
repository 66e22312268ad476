package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/server"
)

// echo answers with what it was asked, so that two answers are equal if both requests were read alike.
var echo answerFunc = func(ctx context.Context, q *handler.Request, a *handler.Response) error {
	_ = fine(ctx, q, a)
	a.Body = fmt.Appendf(a.Body, "%q %q %q %q", q.Method, q.Target, q.Authority, q.Headers)
	return nil
}

var dateLine = regexp.MustCompile(`\r\nDate: [^\r]*`)

// FuzzListenersAnswerAlike sends the same bytes to a listener with TLS and to one without.
func FuzzListenersAnswerAlike(f *testing.F) {
	const get, host = "GET /v1/llps/a HTTP/1.1\r\n", "Host: h\r\n\r\n"
	for _, request := range []string{
		get + host, "GET /v1/llps/%ZZ HTTP/1.1\r\n" + host, "GET /% HTTP/1.1\r\n" + host, "GET /v1/llps/%2?%2 HTTP/1.1\r\n" + host,
		"GET http://a/%zz HTTP/1.1\r\n" + host, "GET /v1/llps/a HTTP/2.0\r\n" + host, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /v1/llps/a HTTP/1.0\r\n\r\n", "GET /v1/llps/a HTTP/1.1\nHost: h\n\n", get + "Content-Length: 2\r\n" + host + "{}",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n" + host + "0\r\n\r\n" + get + host,
		get + "Transfer-Encoding: chunked\r\n" + host + "2\r\n{}\r\n0\r\n\r\n", get + "Transfer-Encoding: gzip, chunked\r\n" + host,
		get + "Host: a\r\n" + host, get + "\r\n", get + "X: " + strings.Repeat("a", 2000) + "\r\n" + host, get + " folded: a\r\n" + host,
		"GET /" + strings.Repeat("a", 200) + " HTTP/1.1\r\n" + host, "OPTIONS * HTTP/1.1\r\n" + host, "CONNECT a:1 HTTP/1.1\r\n" + host,
		"HEAD /healthz HTTP/1.1\r\n" + host + get + host, "\r\n\r\n" + get + host, get + "Expect: 100-continue\r\n" + host, "GARBAGE", "",
	} {
		f.Add(request)
	}
	config := server.Config{Answerer: echo, MaxTargetBytes: 100, MaxHeaderBytes: 1000}
	plain, secure := start(f, config), startSecure(f, config)
	f.Fuzz(func(t *testing.T, request string) {
		without, with := plain.half(t, request), secure.half(t, request)
		require.Equal(t, without, with, "got without TLS, and with it")
		for _, match := range statusLine.FindAllString(without, -1) {
			if match != "HTTP/1.1 100" {
				require.Contains(t, without, "\r\nX-Request-Id: from-the-")
			}
		}
	})
}

// half sends bytes and the end of the stream, and returns all answers without their dates.
func (r *running) half(t *testing.T, request string) string {
	t.Helper()
	c, err := r.dial()
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, _ = io.WriteString(c, request) // the server may have hung up
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	answer, err := io.ReadAll(c)
	if failed, ok := err.(net.Error); ok {
		require.False(t, failed.Timeout(), "the connection is not closed: %q", request)
	}
	return dateLine.ReplaceAllString(string(answer), "")
}

// TestHTTP2AnswersAlike compares answers over HTTP/2 with those of HTTP/1.1.
func TestHTTP2AnswersAlike(t *testing.T) {
	config := server.Config{Answerer: fine, MaxTargetBytes: 100, MaxHeaderBytes: 1000}
	plain, secure := start(t, config), startSecure(t, config)
	secure.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	for name, c := range map[string]struct{ method, target, header, body string }{
		"lookup": {"GET", "/v1/llps/a", "", ""}, "body": {"GET", "/v1/llps/a", "", "{}"}, "half an escape in a query": {"GET", "/v1/llps/a?b=%2", "", ""},
		"long target": {"GET", "/" + strings.Repeat("a", 200), "", ""}, "long header": {"GET", "/v1/llps/a", strings.Repeat("a", 2000), ""},
		"preflight": {"OPTIONS", "/v1/llps/a", "", ""}, "page": {"GET", "/healthz", "", ""}, "page by another method": {"POST", "/healthz", "", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []string
			for _, r := range []*running{plain, secure} {
				request, err := http.NewRequest(c.method, r.url+c.target, strings.NewReader(c.body))
				require.NoError(t, err)
				request.Header.Set("X", c.header)
				response, err := r.client.Do(request)
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				response.Header.Del("Date")
				answers = append(answers, fmt.Sprintln(response.StatusCode, response.Header, string(body)))
			}
			require.Equal(t, answers[0], answers[1])
			require.Contains(t, answers[0], "X-Request-Id")
		})
	}
}

func TestAStopDoesNotWaitForAHandshake(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: fine})
	silent, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer silent.Close()
	began := time.Now()
	require.NoError(t, r.stop())
	require.Less(t, time.Since(began), server.DefaultReadHeaderTimeout)
}
