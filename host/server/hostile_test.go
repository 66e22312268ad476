package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/server"
)

var statusLine = regexp.MustCompile(`HTTP/1\.[01] (\d{3})`)

// statuses sends bytes and lists the statuses of all answers until the connection ends.
func (r *running) statuses(t *testing.T, request string) string {
	t.Helper()
	return statusesIn(r.raw(t, request))
}

func statusesIn(answers string) string {
	var list []string
	for _, match := range statusLine.FindAllStringSubmatch(answers, -1) {
		list = append(list, match[1])
	}
	return strings.Join(list, " ")
}

// counted is the sum of a counter over its labels.
func (r *running) counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	for _, metric := range r.family(t, name) {
		sum += metric.GetCounter().GetValue()
	}
	return sum
}

func (r *running) family(t *testing.T, name string) []*client.Metric {
	t.Helper()
	families, err := r.metrics.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.Metric
		}
	}
	return nil
}

// measured is the sum of a gauge over its labels.
func (r *running) measured(t *testing.T, name string) (sum float64) {
	t.Helper()
	for _, metric := range r.family(t, name) {
		sum += metric.GetGauge().GetValue()
	}
	return sum
}

// TestMalformedRequestsAreRefused includes ambiguous requests, which could be used for request smuggling
// (RFC 9112, sections 3.2, 5.1 and 6.3).
func TestMalformedRequestsAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		for _, request := range []string{
			"GARBAGE\r\n\r\n", "\x16\x03\x01\x02\x00\x01\r\n\r\n", "GET /v1/llps/a\r\n\r\n",
			"GET /v1/llps/a HTTP/9\r\nHost: h\r\n\r\n", "GET /v1/llps/a HTTP/2.0\r\nHost: h\r\n\r\n", "GET /v1/llps/a b HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /v1/llps/a\x00 HTTP/1.1\r\nHost: h\r\n\r\n",
			"G@T /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\n\r\n", "GET /v1/llps/a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\nHost: a b\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n", "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
			"GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nX Y: a\r\n\r\n",
			"POST /v1/llps/a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
			"POST /v1/llps/a HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc",
			"POST /v1/llps/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		} {
			answer := r.raw(t, request)
			require.Equal(t, "400", statusesIn(answer), "%q", request)
			require.Contains(t, answer, "\r\nX-Request-Id: from-the-server\r\n", "%q", request)
			require.Contains(t, answer, `"code":"invalid_request"`, "%q", request)
		}
		require.NoError(t, r.stop())
		require.Contains(t, r.log.String(), `"route":"invalid","status":400`)
		require.Positive(t, r.counted(t, "regedge_requests_total"))
	})
}

func TestBodyIsNotParsedAsRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		var mu sync.Mutex
		var asked []string
		r := start(t, server.Config{Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, q.Target)
			return fine(ctx, q, a)
		})})
		const get = "GET /v1/llps/%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
		post, inside, next := "POST /v1/llps/a HTTP/1.1\r\nHost: h\r\n", fmt.Sprintf(get, "inside"), fmt.Sprintf(get, "next")
		for _, request := range []string{
			fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s%s", post, len(inside), inside, next),
			fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n%s", post, len(inside), inside, next),
			fmt.Sprintf("%sTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n%s", post, next),
			fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, 50_000*len(inside), strings.Repeat(inside, 50_000)),
		} {
			require.True(t, strings.HasPrefix(r.statuses(t, request), "200"), "the answer arrives before the connection ends")
		}
		require.NotContains(t, asked, "/v1/llps/inside")
		require.Equal(t, "200 200", r.statuses(t, "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n"+next), "one after the other")
	})
}

// TestAnswerDoesNotWaitForABody sends requests whose body never arrives.
func TestAnswerDoesNotWaitForABody(t *testing.T) {
	r := start(t, server.Config{Answerer: fine, ReadHeaderTimeout: time.Hour})
	for _, body := range []string{"Content-Length: 10", "Content-Length: 10\r\nExpect: 100-continue", "Transfer-Encoding: chunked"} {
		answer := r.raw(t, "POST /v1/llps/a HTTP/1.1\r\nHost: h\r\n"+body+"\r\n\r\n")
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 200"), answer)
		require.Contains(t, answer, "\r\nConnection: close\r\n")
	}
}

func TestHTTP10ClientsAreAnswered(t *testing.T) {
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

// TestRequestsDoNotShareMemory keeps requests after Answer returned, and compares them at the end.
func TestRequestsDoNotShareMemory(t *testing.T) {
	var kept []handler.Request
	r := start(t, server.Config{Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
		one := *q
		one.Headers = append([]handler.Header(nil), q.Headers...)
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

func TestUnusedConnectionIsClosedSilently(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, ReadHeaderTimeout: time.Second}) // the TLS handshake, too, has to be done by then
		require.Empty(t, r.raw(t, ""))
	})
}

// TestPipelinedAnswersAreSentAtOnce sends several requests in one packet. An answer must not wait for the
// next one.
func TestPipelinedAnswersAreSentAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		leave := make(chan struct{})
		end := sync.OnceFunc(func() { close(leave) })
		r := start(t, server.Config{Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
			if q.Target == "/v1/llps/second" {
				<-leave
			}
			return fine(ctx, q, a)
		})})
		c, err := r.dial()
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, "GET /v1/llps/first HTTP/1.1\r\nHost: h\r\n\r\nGET /v1/llps/second HTTP/1.1\r\nHost: h\r\n\r\n")
		require.NoError(t, err)
		from := bufio.NewReader(c)
		for range 2 {
			response, err := http.ReadResponse(from, nil)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Equal(t, "{}", string(body))
			end()
		}
	})
}

func TestIdleConnectionsDoNotDelayShutdown(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, DrainTimeout: time.Minute})
		for n := range 20 {
			c, err := r.dial()
			require.NoError(t, err)
			defer c.Close()
			_, err = io.WriteString(c, [...]string{
				"GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n", "POST /v1/llps/a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}",
			}[n%2])
			require.NoError(t, err)
			_, err = http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
		}
		began := time.Now()
		require.NoError(t, r.stop())
		require.Less(t, time.Since(began), 20*500*time.Millisecond/2, "one linger after the other")
	})
}
