package writer

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// TestNobodyWaitsForACommitWithoutEnd, if the loop that makes them hangs: changes, messages and looks end
// after ten seconds.
func TestNobodyWaitsForACommitWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := openUnrun(t) // nobody runs it
		for name, ask := range map[string]func() error{
			"a change": func() error {
				_, err := clientOf(w, firstOperator).AddAccount(t.Context(), "made-up", "", "starter")
				return err
			},
			"a look": func() error {
				_, err := clientOf(w, firstOperator).Health(t.Context())
				return err
			},
			"a change of tables": func() error {
				return w.Commit(t.Context(), Act{}, func(context.Context, *sql.Tx, int64) error { return nil })
			},
			"a message": func() error {
				_, err := w.exchange(t.Context(), "one", syncproto.Message{Hello: &syncproto.Hello{Boot: 1}})
				return err
			},
		} {
			began := time.Now()
			require.ErrorIs(t, ask(), ErrUnavailable, name)
			limit := 8 * time.Second // less than an operator's client waits
			if name == "a message" {
				limit = 10 * time.Second
			}
			require.Equal(t, limit, time.Since(began), name)
		}
	})
}

// readiness is what /readyz answers.
func readiness(w *Writer) (status int, text string) {
	answer := answerTo(w, "", http.MethodGet, "/readyz", nil)
	return answer.Code, answer.Body.String()
}

// TestAWriterThatCannotServeIsNotReady: fenced, or it hangs, or its ledger does, or two commits failed in a row.
func TestAWriterThatCannotServeIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := openUnrun(t)
		expect := func(status int, words string) {
			t.Helper()
			got, text := readiness(w)
			require.Equal(t, status, got, text)
			require.Contains(t, text, words)
		}
		remark := ""
		w.Remark(func() string { return remark })
		expect(http.StatusOK, "ready")
		remark = "registry database: no heartbeat"
		expect(http.StatusOK, "ready\nregistry database: no heartbeat\n")
		remark = ""
		w.busySince.Store(new(time.Now()))
		time.Sleep(stuckAfter)
		expect(http.StatusOK, "ready")
		time.Sleep(time.Second)
		expect(http.StatusServiceUnavailable, "for 6 s")
		w.busySince.Store(new(time.Now()))
		w.fenced.Store(true)
		expect(http.StatusServiceUnavailable, "another writer")
		w.fenced.Store(false)
		w.unwritten.Store(1) // a commit that met a lock
		expect(http.StatusOK, "ready")
		w.unwritten.Store(2)
		expect(http.StatusServiceUnavailable, "can't be written")
		w.unwritten.Store(0)
		_, err := w.config.Ledger.Exec(`UPDATE writer SET generation = generation + 1`)
		require.NoError(t, err)
		expect(http.StatusServiceUnavailable, "another writer")

		w.config.Ledger.SetMaxOpenConns(1)
		conn, err := w.config.Ledger.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		began := time.Now()
		expect(http.StatusServiceUnavailable, "can't be read")
		require.Equal(t, probeLimit, time.Since(began))
	})
}

// scripted is a transport that does one thing after the other.
type scripted []func(*http.Request) (*http.Response, error)

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	return next(r)
}

func unsent(*http.Request) (*http.Response, error) { return nil, io.ErrClosedPipe }

func lost(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).WroteHeaders()
	return nil, io.ErrUnexpectedEOF
}

func answers(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		header := http.Header{RequestIDHeader: {"R"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

// TestAChangeThatMayHaveBeenMadeStaysUncertain, whatever becomes of later attempts, until the
// writer itself says what it did.
func TestAChangeThatMayHaveBeenMadeStaysUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retried := func(limit time.Duration, script ...func(*http.Request) (*http.Response, error)) (left int, err error) {
			s := scripted(script)
			client := NewClient("http://writer", "token", &http.Client{Transport: &s}).Retrying(limit, func(error, time.Duration) {})
			_, err = client.AddNode(t.Context(), "one")
			return len(s), err
		}
		left, err := retried(time.Second, unsent, unsent)
		require.NotErrorIs(t, err, ErrUncertain, "nothing was sent")
		require.Equal(t, 1, left, "it is not tried again")
		_, err = retried(600*time.Millisecond, lost, unsent)
		require.ErrorIs(t, err, ErrUncertain)
		_, err = retried(time.Minute, lost, unsent, answers(409, `{"code":"taken"}`))
		require.ErrorIs(t, err, ErrTaken)
		require.NotErrorIs(t, err, ErrUncertain)
		_, err = retried(time.Minute, lost, unsent, answers(200, `{"name":"one"}`))
		require.NoError(t, err)
		_, err = retried(100*time.Millisecond, answers(503, `{"code":"unavailable"}`))
		require.ErrorIs(t, err, ErrUncertain, "its commit may have been made")
		_, err = retried(100*time.Millisecond, answers(503, `{"code":"fenced"}`))
		require.NotErrorIs(t, err, ErrUncertain)
		_, err = retried(600*time.Millisecond, lost, answers(503, `{"code":"fenced"}`))
		require.ErrorIs(t, err, ErrUncertain, "the writer before may have made it")
		for status, code := range map[int]string{401: "unauthorized", 403: "forbidden", 429: "too_many_requests", 500: "internal"} {
			_, err = retried(600*time.Millisecond, lost, answers(status, `{"code":"`+code+`"}`))
			require.ErrorIs(t, err, ErrUncertain, "%s says nothing of the attempt before", code)
			require.ErrorIs(t, err, errorOf(code))
			_, err = retried(600*time.Millisecond, answers(status, `{"code":"`+code+`"}`))
			require.NotErrorIs(t, err, ErrUncertain, code)
		}
		_, err = retried(600*time.Millisecond, lost, answers(401, `{"code":"token_ended"}`))
		require.ErrorIs(t, err, ErrUncertain)
		_, err = retried(100*time.Millisecond, answers(502, `<html>`))
		require.ErrorIs(t, err, ErrUncertain, "a proxy does not know")
		_, err = retried(100*time.Millisecond, answers(404, `<html>`))
		require.NotErrorIs(t, err, ErrUncertain)
	})
}

// TestWhoWaitsForAnAnswerIsToldSo until it has come.
func TestWhoWaitsForAnAnswerIsToldSo(t *testing.T) {
	waits := false
	s := scripted{func(r *http.Request) (*http.Response, error) {
		require.True(t, waits)
		return answers(200, `[]`)(r)
	}}
	client := NewClient("http://writer", "token", &http.Client{Transport: &s}).Watched(func() func() {
		waits = true
		return func() { waits = false }
	})
	_, err := client.Plans(t.Context())
	require.NoError(t, err)
	require.False(t, waits)
}

// TestAWriterEndsThoughItsLedgerHangs: the one that takes over waits some seconds then.
func TestAWriterEndsThoughItsLedgerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := openUnrun(t)
		w.config.Ledger.SetMaxOpenConns(1)
		conn, err := w.config.Ledger.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		began := time.Now()
		w.noteEnd()
		require.Equal(t, endLimit, time.Since(began))
	})
}

// TestAProjectionUnderWayIsAwaitedAtTheEnd for a second: whoever runs the writer then closes the databases.
func TestAProjectionUnderWayIsAwaitedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := openUnrun(t)
		w.config.Access.SetMaxOpenConns(1)
		conn, err := w.config.Access.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		w.projector.add(changedRow{table: planTable, id: "free"})
		ctx, cancel := context.WithCancel(t.Context())
		stop := w.startProjector(ctx)
		synctest.Wait()
		began := time.Now()
		cancel()
		stop()
		require.Equal(t, endGrace, time.Since(began))
	})
}

// TestAStatementOfTheProjectionIsBounded: a server that hangs ends it after five seconds.
func TestAStatementOfTheProjectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := projectorOf(t, nil)
		p.access.SetMaxOpenConns(1)
		conn, err := p.access.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		began := time.Now()
		err = p.drop(t.Context(), projection[planTable], []any{"none"})
		require.True(t, hangs(err), err)
		require.Equal(t, rowLimit, time.Since(began))
	})
}
