package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/server"
)

func TestFullServerAnswersOverloaded(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		entered, leave := make(chan struct{}), make(chan struct{})
		r := start(t, server.Config{MaxInFlight: 1, Answerer: answerFunc(
			func(ctx context.Context, q *handler.Request, a *handler.Response) error {
				entered <- struct{}{}
				<-leave
				return fine(ctx, q, a)
			})})
		first := make(chan int)
		go func() {
			response, err := r.client.Get(r.url + "/v1/llps/a")
			if err != nil {
				first <- 0
				return
			}
			first <- response.StatusCode
		}()
		<-entered
		require.Equal(t, 1.0, r.measured(t, "regedge_requests_in_flight"))
		response, body := r.get(t, "/v1/llps/b")
		require.Equal(t, 503, response.StatusCode)
		require.Equal(t, handler.Overloaded, code(t, body))
		require.Equal(t, "1", response.Header.Get("Retry-After"))
		require.Equal(t, "from-the-server", response.Header.Get("X-Request-Id"))
		require.Equal(t, 1.0, r.measured(t, "regedge_requests_in_flight"), "a refusal gives nobody else's place back")
		health, _ := r.get(t, "/healthz")
		require.Equal(t, 200, health.StatusCode, "the health pages are not counted")
		close(leave)
		require.Equal(t, 200, <-first)
		go func() { <-entered }()
		after, _ := r.get(t, "/v1/llps/c")
		require.Equal(t, 200, after.StatusCode)
	})
}

func TestOverloadedAnswererAnswersOverloaded(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: answerFunc(
			func(context.Context, *handler.Request, *handler.Response) error {
				return fmt.Errorf("wait for an instance: %w", server.ErrOverloaded)
			})})
		response, body := r.get(t, "/v1/llps/b")
		require.Equal(t, 503, response.StatusCode)
		require.Equal(t, handler.Overloaded, code(t, body))
	})
}

func TestSizesAreBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, MaxTargetBytes: 100, MaxHeaderBytes: 1000, DocsURL: "http://docs.example"})
		response, body := r.get(t, "/v1/search/companies?name="+strings.Repeat("a", 100))
		require.Equal(t, 414, response.StatusCode)
		require.Equal(t, handler.URITooLong, code(t, body))
		require.Equal(t, "from-the-server", response.Header.Get("X-Request-Id"))
		response, _ = r.get(t, "/v1/search/companies?name="+strings.Repeat("a", 74))
		require.Equal(t, 200, response.StatusCode, "100 bytes")
		answer := r.raw(t, "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\nX-Long: "+strings.Repeat("a", 9000)+"\r\n\r\n")
		require.Contains(t, answer, "431 Request Header Fields Too Large")
		require.Contains(t, answer, `"code":"header_too_large"`)
	})
}

func TestASlowHeaderIsCutOff(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, ReadHeaderTimeout: time.Second}) // the TLS handshake, too, has to be done by then
		answer := r.raw(t, "GET /v1/llps/a HTTP/1.1\r\nHost:")                       // never finished: raw returns once the server hangs up
		require.NotContains(t, answer, "200 OK")
	})
}

func TestAnIdleConnectionIsClosed(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, IdleTimeout: 50 * time.Millisecond})
		answer := r.raw(t, "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n")
		require.Contains(t, answer, "200 OK")
	})
}

func TestShutdownFinishesRequestsInFlight(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		entered, leave := make(chan struct{}), make(chan struct{})
		r := start(t, server.Config{Answerer: answerFunc(
			func(ctx context.Context, q *handler.Request, a *handler.Response) error {
				close(entered)
				<-leave
				return fine(ctx, q, a)
			})})
		c, err := r.dial()
		require.NoError(t, err)
		defer c.Close()
		fmt.Fprint(c, "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n")
		<-entered
		stopped := make(chan error)
		go func() { stopped <- r.stop() }()
		require.Eventually(t, func() bool {
			_, err := r.dial()
			return err != nil
		}, time.Minute, time.Millisecond, "no new connection is taken")
		close(leave)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, 200, response.StatusCode)
		require.NoError(t, <-stopped)
	})
}

func TestShutdownCutsOffSlowRequests(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		entered, leave := make(chan struct{}), make(chan struct{})
		r := start(t, server.Config{DrainTimeout: 20 * time.Millisecond, Answerer: answerFunc(
			func(context.Context, *handler.Request, *handler.Response) error {
				close(entered)
				<-leave
				return nil
			})})
		defer close(leave)
		go r.client.Get(r.url + "/v1/llps/a")
		<-entered
		require.ErrorContains(t, r.stop(), "finish requests in flight")
		require.Zero(t, r.measured(t, "regedge_connections_open"), "who asked is not left waiting")
	})
}

func TestDisconnectDoesNotStopItsRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		r := start(t, server.Config{Answerer: answerFunc(
			func(ctx context.Context, q *handler.Request, a *handler.Response) error {
				close(entered)
				<-leave
				done <- ctx.Err()
				return fine(ctx, q, a)
			})})
		c, err := r.dial()
		require.NoError(t, err)
		fmt.Fprint(c, "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n")
		<-entered
		require.NoError(t, c.Close())
		close(leave)
		require.NoError(t, <-done)
	})
}

func TestShutdownRightAfterStart(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		for range 20 {
			r := start(t, server.Config{Answerer: fine})
			require.NoError(t, r.stop())
			_, err := r.dial()
			require.Error(t, err)
		}
	})
}

// TestARefusalIsSentLongAfterTheLastAnswer, whose time to be written has passed.
func TestARefusalIsSentLongAfterTheLastAnswer(t *testing.T) {
	const limit = time.Second
	r := start(t, server.Config{Answerer: fine, WriteTimeout: limit})
	conn, err := r.dial()
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n"))
	require.NoError(t, err)
	answers := bufio.NewReader(conn)
	first, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, first.Body)
	require.NoError(t, err)
	time.Sleep(limit + 100*time.Millisecond)
	_, err = conn.Write([]byte("no request\r\n\r\n"))
	require.NoError(t, err)
	refusal, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	require.Equal(t, 400, refusal.StatusCode)
}

// TestShutdownCutsOffSlowRequestsOverHTTP2.
func TestShutdownCutsOffSlowRequestsOverHTTP2(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	r := startSecure(t, server.Config{DrainTimeout: 20 * time.Millisecond, WriteTimeout: time.Hour, Answerer: answerFunc(
		func(context.Context, *handler.Request, *handler.Response) error {
			close(entered)
			<-leave
			return nil
		})})
	defer close(leave)
	asked := make(chan error, 1)
	client := r.from(t, "127.0.0.1", true)
	go func() {
		response, err := client.Get(r.url + "/v1/llps/a")
		if err == nil {
			response.Body.Close()
		}
		asked <- err
	}()
	<-entered
	require.ErrorContains(t, r.stop(), "context deadline exceeded")
	select {
	case err := <-asked:
		require.Error(t, err, "who asked is not left waiting")
	case <-time.After(time.Minute):
		t.Error("the client still waits")
	}
}

// TestWhoIsTooSlowIsToldSo, if the header has begun.
func TestWhoIsTooSlowIsToldSo(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, ReadHeaderTimeout: 2 * time.Second}) // of the TLS handshake, too
		answer := r.raw(t, "GET /v1/llps/a HTTP/1.1\r\nHost:")
		require.Contains(t, answer, "408 Request Timeout")
		require.Contains(t, answer, `"code":"request_timeout"`)
	})
}
