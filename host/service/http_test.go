package service

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	standardlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// started runs a server until stop, which returns how it ended.
func started(t *testing.T, handler http.HandlerFunc) (address string, log *testkit.Log, stop func() error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	log = new(testkit.Log)
	s := HTTP("api", listener, handler, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return listener.Addr().String(), log, func() error { cancel(); return <-ended }
}

// asked sends a request, and tells when it was answered.
func asked(address string) (answered chan error) {
	answered = make(chan error, 1)
	go func() {
		answer, err := http.Get("http://" + address)
		if err == nil {
			answer.Body.Close()
		}
		answered <- err
	}()
	return answered
}

// TestAStopDoesNotWaitForUnusedConnections, which clients open in advance.
func TestAStopDoesNotWaitForUnusedConnections(t *testing.T) {
	address, log, stop := started(t, func(http.ResponseWriter, *http.Request) {})
	unused, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer unused.Close()
	answer, err := http.Get("http://" + address) // the one before was accepted by then
	require.NoError(t, err)
	answer.Body.Close()
	require.NoError(t, stop())
	_, err = unused.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Empty(t, log.String())
}

// TestAConnectionThatComesWithTheStopIsClosed: it was accepted just before the listener was closed.
func TestAConnectionThatComesWithTheStopIsClosed(t *testing.T) {
	web := &http.Server{}
	unused := watchUnused(web)
	unused.close()
	client, accepted := net.Pipe()
	defer client.Close()
	require.NoError(t, client.SetReadDeadline(time.Now().Add(10*time.Second)))
	web.ConnState(accepted, http.StateNew)
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// TestConnectionsThatEndUnusedAreForgotten, such as those of a health check that only connects: each would stay in memory.
func TestConnectionsThatEndUnusedAreForgotten(t *testing.T) {
	web := &http.Server{}
	unused := watchUnused(web)
	_, conn := net.Pipe()
	web.ConnState(conn, http.StateNew)
	web.ConnState(conn, http.StateClosed)
	require.Empty(t, unused.conns)
}

// TestAPanicIsLogged with its place, though its client only sees that the connection ends. A handler that gives up an
// answer does not count as a panic.
func TestAPanicIsLogged(t *testing.T) {
	for cause, want := range map[any]string{"broken": "panic: broken", http.ErrAbortHandler: ""} {
		address, log, stop := started(t, func(http.ResponseWriter, *http.Request) { panic(cause) })
		require.Error(t, <-asked(address))
		require.NoError(t, stop())
		if want == "" {
			require.Empty(t, log.String())
			continue
		}
		require.Contains(t, log.String(), "level=ERROR")
		require.Contains(t, log.String(), "server=api")
		require.Contains(t, log.String(), want)
		require.Contains(t, log.String(), "http_test.go")
		require.Equal(t, 1, strings.Count(log.String(), "panic: broken"))
	}
}

// TestWhatTheServerRemarksIsOfNoInterest to an operator: anybody can cause much of it. It is not written past the log either.
func TestWhatTheServerRemarksIsOfNoInterest(t *testing.T) {
	past := new(testkit.Log)
	standardlog.SetOutput(past)
	defer standardlog.SetOutput(os.Stderr)
	address, log, stop := started(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.WriteHeader(http.StatusOK) // net/http remarks it
	})
	require.NoError(t, <-asked(address))
	require.NoError(t, stop())
	require.Empty(t, past.String())
	require.Empty(t, log.String())
}

// TestAStopWaitsForRequestsInFlight as long as it said, and says when one was cut off.
func TestAStopWaitsForRequestsInFlight(t *testing.T) {
	for name, ends := range map[string]bool{"one that ends": true, "one that hangs": false} {
		t.Run(name, func(t *testing.T) {
			begun, proceed := make(chan struct{}), make(chan struct{})
			address, log, stop := started(t, func(w http.ResponseWriter, r *http.Request) {
				close(begun)
				<-proceed
			})
			answered := asked(address)
			<-begun
			if ends {
				go func() {
					for { // until it has begun to stop
						conn, err := net.Dial("tcp", address)
						if err != nil {
							close(proceed)
							return
						}
						conn.Close()
					}
				}()
			} else {
				defer close(proceed)
			}
			require.NoError(t, stop())
			if ends {
				require.NoError(t, <-answered)
				require.Empty(t, log.String())
			} else {
				require.Error(t, <-answered)
				require.Contains(t, log.String(), "requests were cut off at the end")
			}
		})
	}
}

// TestRequestsLearnOfTheStop: long polls, such as an edge's sync, end at once.
func TestRequestsLearnOfTheStop(t *testing.T) {
	begun := make(chan struct{})
	address, log, stop := started(t, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	answered := asked(address)
	<-begun
	require.NoError(t, stop())
	require.NoError(t, <-answered)
	require.Empty(t, log.String())
}

// pipes is a listener of connections within the test, whose time is the test's.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowAndIdleClientsAreHungUpOn: their connections would fill the process.
func TestSlowAndIdleClientsAreHungUpOn(t *testing.T) {
	for name, c := range map[string]struct {
		sent  string
		after time.Duration
	}{
		"a header that does not end": {"GET / HTTP/1.1\r\nHost: a", 5 * time.Second},
		"a body that does not end":   {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", 30 * time.Second},
		"no second request":          {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := pipes{make(chan net.Conn), make(chan struct{})}
				s := HTTP("api", listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), slog.New(slog.DiscardHandler))
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.Run(ctx) }()
				client, accepted := net.Pipe()
				listener.conns <- accepted
				began := time.Now()
				go io.WriteString(client, c.sent)
				_, _ = io.Copy(io.Discard, client) // until it is closed
				require.WithinDuration(t, began.Add(c.after), time.Now(), time.Second)
				stop()
				require.NoError(t, <-ended)
			})
		})
	}
}

// TestClientsThatReadNothingHoldUpNoStop: to take leave of each, TLS waits for 5 s, and there may be hundreds.
func TestClientsThatReadNothingHoldUpNoStop(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		s := HTTP("api", tls.NewListener(listener, web.TLS), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		for range 3 {
			client, accepted := net.Pipe() // which takes only what is read
			listener.conns <- accepted
			secured := tls.Client(client, &tls.Config{InsecureSkipVerify: true})
			_, err := io.WriteString(secured, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			require.NoError(t, err)
			answer, err := http.ReadResponse(bufio.NewReader(secured), nil)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
		}
		synctest.Wait()
		began := time.Now()
		stop()
		require.NoError(t, <-ended)
		require.Less(t, time.Since(began), time.Second)
		time.Sleep(time.Minute) // until the goroutines have ended
	})
}

// TestAClientThatDoesNotReadItsAnswerIsHungUpOn: its answer stays in memory until then.
func TestAClientThatDoesNotReadItsAnswerIsHungUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		failed := make(chan error, 1)
		s := HTTP("api", listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 1<<20))
			failed <- err
		}), slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		client, accepted := net.Pipe()
		defer client.Close()
		listener.conns <- accepted
		began := time.Now()
		_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		select {
		case err = <-failed:
		case <-time.After(24 * time.Hour):
		}
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.WithinDuration(t, began.Add(5*time.Minute), time.Now(), time.Second)
		stop()
		require.NoError(t, <-ended)
	})
}

// TestMetricsAreReadOnly, in a short header; profiles are there when they are wanted, without the command line.
func TestMetricsAreReadOnly(t *testing.T) {
	for profiles, found := range map[bool]int{true: http.StatusOK, false: http.StatusNotFound} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Metrics(listener, NewMetrics(), profiles, slog.New(slog.DiscardHandler)).Run(ctx) }()
		ask := func(method, path, header string) (int, string) {
			r, err := http.NewRequest(method, "http://"+listener.Addr().String()+path, nil)
			require.NoError(t, err)
			r.Header.Set("Long", header)
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			return answer.StatusCode, string(body)
		}
		_, page := ask(http.MethodGet, "/debug/pprof/symbol", "")
		require.Equal(t, profiles, strings.Contains(page, "num_symbols: 1"))
		_, page = ask(http.MethodGet, "/metrics", "")
		require.Contains(t, page, "\ngo_goroutines ")
		require.Contains(t, page, "\nprocess_open_fds ")
		for path, want := range map[string]int{"POST /metrics": http.StatusMethodNotAllowed, "GET /debug/pprof/": found, "GET /debug/pprof/symbol": found, "GET /debug/pprof/heap": found, "GET /debug/pprof/cmdline": http.StatusNotFound} {
			method, path, _ := strings.Cut(path, " ")
			status, _ := ask(method, path, "")
			require.Equal(t, want, status, "%s %s", method, path)
		}
		status, _ := ask(http.MethodGet, "/metrics", strings.Repeat("x", 32<<10))
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, status)
		http.DefaultClient.CloseIdleConnections()
		stop()
		require.NoError(t, <-ended)
	}
}

// TestAServerThatCanNotAcceptEndsWithTheReason, so that the process ends, and says why.
func TestAServerThatCanNotAcceptEndsWithTheReason(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	s := HTTP("api", listener, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	require.ErrorIs(t, s.Run(t.Context()), net.ErrClosed)
}
