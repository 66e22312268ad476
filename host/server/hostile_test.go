package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/server"
)

var statusLine = regexp.MustCompile(`HTTP/1\.[01] (\d{3})`)

// statuses sends bytes and lists the statuses of all answers until the connection ends.
func (r *running) statuses(t *testing.T, request string) string {
	t.Helper()
	var list []string
	for _, match := range statusLine.FindAllStringSubmatch(r.raw(t, request), -1) {
		list = append(list, match[1])
	}
	return strings.Join(list, " ")
}

// TestWhatIsNotARequestIsRefused and so is a request that two readers could take for two
// things (RFC 9112, sections 3.2, 5.1 and 6.3).
func TestWhatIsNotARequestIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		for _, request := range []string{
			"GARBAGE\r\n\r\n", "\x16\x03\x01\x02\x00\x01\r\n\r\n", "GET /v1/llps/a\r\n\r\n",
			"GET /v1/llps/a HTTP/9\r\nHost: h\r\n\r\n", "GET /v1/llps/a b HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /v1/llps/a\x00 HTTP/1.1\r\nHost: h\r\n\r\n",
			"G@T /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\n\r\n", "GET /v1/llps/a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\nHost: a b\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n", "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
			"POST /v1/llps/a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
			"POST /v1/llps/a HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc",
			"POST /v1/llps/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		} {
			require.Equal(t, "400", r.statuses(t, request), "%q", request)
		}
	})
}

func TestABodyIsNotTakenForARequest(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		const next = "GET /v1/llps/b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
		post := "POST /v1/llps/a HTTP/1.1\r\nHost: h\r\n"
		require.Equal(t, "200 200", r.statuses(t, "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n"+next), "one after the other")
		require.Equal(t, "200 200", r.statuses(t, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s%s", post, len(next), next, next)))
		require.Equal(t, "200 200", r.statuses(t, fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n%s", post, len(next), next, next)))
		body := strings.Repeat(next, 50_000)
		require.Equal(t, "200", r.statuses(t, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, len(body), body)),
			"the answer arrives before the connection ends")
	})
}

func TestOlderClientsAreAnswered(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		require.Equal(t, "200", r.statuses(t, "GET /v1/llps/a HTTP/1.0\r\n\r\n"))
		require.Equal(t, "200 200", r.statuses(t, "GET /v1/llps/a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /v1/llps/a HTTP/1.0\r\n\r\n"))
	})
}

func TestAnAnswerToHEADHasNoBody(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		for path, length := range map[string]string{"/v1/llps/a": "2", "/healthz": "16"} {
			answer := r.raw(t, "HEAD "+path+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			require.Contains(t, answer, "\r\nContent-Length: "+length+"\r\n", path)
			require.True(t, strings.HasSuffix(answer, "\r\n\r\n"), answer)
		}
	})
}

// TestNothingOfARequestStaysInItsMemory keeps what a request gave to the Answerer beyond it.
func TestNothingOfARequestStaysInItsMemory(t *testing.T) {
	var kept []server.Request
	r := start(t, server.Config{Answerer: answerFunc(func(ctx context.Context, q *server.Request, a *handler.Response) error {
		one := *q
		one.Header = append([]handler.Header(nil), q.Header...)
		kept = append(kept, one)
		return fine(ctx, q, a)
	})})
	request := func(n int) string {
		return fmt.Sprintf("GET /v1/llps/%04d HTTP/1.1\r\nHost: host-%04d\r\nAuthorization: Bearer %04d\r\n", n, n, n)
	}
	c, err := r.dial()
	require.NoError(t, err)
	defer c.Close()
	for n := range 9 {
		_, err = io.WriteString(c, request(n)+"\r\n")
		require.NoError(t, err)
	}
	_, err = io.WriteString(c, request(9)+"Connection: close\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(c)
	require.NoError(t, err)
	require.Len(t, kept, 10)
	for n, q := range kept {
		require.Equal(t, fmt.Sprintf("/v1/llps/%04d", n), q.Target)
		require.Equal(t, fmt.Sprintf("host-%04d", n), q.Authority)
		require.Equal(t, []string{fmt.Sprintf("Bearer %04d", n)}, q.Values("Authorization"))
		require.Empty(t, q.Values("Host"))
	}
}

// TestAPanicOfAPageEndsItsRequestOnly and not the process.
func TestAPanicOfAPageEndsItsRequestOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, Ready: func() error { panic("secret cause") }, IdleTimeout: time.Second})
		response, body := r.get(t, "/readyz")
		require.Equal(t, http.StatusInternalServerError, response.StatusCode)
		require.Equal(t, handler.InternalError, code(t, body))
		response, _ = r.get(t, "/healthz")
		require.Equal(t, 200, response.StatusCode)
		require.NoError(t, r.stop())
		require.Contains(t, r.log.String(), "secret cause")
	})
}
