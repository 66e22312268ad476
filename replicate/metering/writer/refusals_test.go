package writer

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/syncproto"
)

// TestRefusedMessagesAreToldOnce, and then with their number: each edge sends two a second.
func TestRefusedMessagesAreToldOnce(t *testing.T) {
	w, _ := openUnrun(t)
	log := new(testkit.Log)
	w.config.Logger = slog.New(slog.NewTextHandler(log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() { cancel(); require.NoError(t, <-done) }()
	node, err := clientOf(w, firstOperator).AddNode(ctx, "one")
	require.NoError(t, err)
	hello := func(boot uint64) int {
		return syncAs(w, node.Token, syncproto.Message{Hello: &syncproto.Hello{Boot: boot}}).Code
	}
	require.Equal(t, http.StatusOK, hello(1))
	w.away.Store(true)
	for i := range 20 {
		require.Equal(t, http.StatusServiceUnavailable, hello(uint64(2+i)))
	}
	require.Equal(t, 1, strings.Count(log.String(), "messages of edges are refused"), log.String())
	require.NotContains(t, log.String(), "request failed")

	pass := func(d time.Duration) {
		r := &w.refusals
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last, r.logged = r.last.Add(-d), r.logged.Add(-d)
	}
	pass(refusalsPause)
	require.Equal(t, http.StatusServiceUnavailable, hello(30))
	require.Contains(t, log.String(), "refused=21")
	_, err = clientOf(w, firstOperator).AddAccount(ctx, "made-up", "", "starter")
	require.ErrorIs(t, err, ErrUnavailable)
	require.Contains(t, log.String(), "request failed", "an operator is told the request's id")

	w.away.Store(false)
	require.Equal(t, http.StatusOK, hello(31))
	require.NotContains(t, log.String(), "taken again", "some succeed among others that fail")
	pass(refusalsOver)
	require.Equal(t, http.StatusOK, hello(32))
	require.Contains(t, log.String(), `"messages of edges are taken again" refused=21`)
}

// TestFailuresThatAreOverAreToldOnceAndCountedAnew.
func TestFailuresThatAreOverAreToldOnceAndCountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r refusals
		var begun, over []int
		fail := func() { r.note(func(count int) { begun = append(begun, count) }) }
		succeed := func() { r.end(func(count int) { over = append(over, count) }) }
		for range 3 {
			fail()
		}
		time.Sleep(refusalsOver)
		for range 3 {
			succeed()
		}
		require.Equal(t, []int{3}, over)
		fail()
		require.Equal(t, []int{1, 1}, begun)
	})
}

// TestCommitsThatFailAreToldOnce, and when they succeed again; what is refused for
// its content is told each time.
func TestCommitsThatFailAreToldOnce(t *testing.T) {
	w, _ := openUnrun(t)
	log := new(testkit.Log)
	w.config.Logger = slog.New(slog.NewTextHandler(log, nil))
	lines := func() int { return strings.Count(log.String(), "the ledger can't be written") }
	for range 20 {
		require.ErrorIs(t, w.outcome(t.Context(), errors.New("disk I/O error")), ErrUnavailable)
		require.NoError(t, w.outcome(t.Context(), nil))
	}
	require.Equal(t, 1, lines(), log.String())
	w.unbooked.last = w.unbooked.last.Add(-refusalsOver)
	require.NoError(t, w.outcome(t.Context(), nil))
	require.Contains(t, log.String(), `"the ledger is written again" failed=20`)
	for range 2 {
		_, refused := w.config.Ledger.Exec(`INSERT INTO writer SELECT * FROM writer`)
		require.ErrorIs(t, w.outcome(t.Context(), refused), ErrUnavailable)
	}
	require.Equal(t, 3, lines(), log.String())
	status, _ := readiness(w)
	require.Equal(t, http.StatusOK, status, "what is refused for its content is no fault of the ledger")
}

// TestAnIdleWriterSaysThatItsLedgerCannotBeWritten, in its log and its metrics: it is not ready then, and
// nothing else would tell why.
func TestAnIdleWriterSaysThatItsLedgerCannotBeWritten(t *testing.T) {
	w, _ := openUnrun(t)
	log := new(testkit.Log)
	w.config.Logger = slog.New(slog.NewTextHandler(log, nil))
	fails := func() string {
		recorder := httptest.NewRecorder()
		w.metrics.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return regexp.MustCompile(`(?m)^regedge_writer_failed_groups_total .*$`).FindString(recorder.Body.String())
	}
	_, err := w.config.Ledger.Exec(`CREATE TRIGGER full BEFORE UPDATE ON writer BEGIN SELECT RAISE(FAIL, 'made-up words'); END`)
	require.NoError(t, err)
	for range 3 {
		w.everySecond(t.Context())
	}
	require.Equal(t, 1, strings.Count(log.String(), "the ledger can't be written"), log.String())
	require.Contains(t, log.String(), "made-up words")
	require.Equal(t, "regedge_writer_failed_groups_total 3", fails())
	require.EqualValues(t, 3, w.unwritten.Load())

	_, err = w.config.Ledger.Exec(`DROP TRIGGER full`)
	require.NoError(t, err)
	w.unbooked.last = w.unbooked.last.Add(-refusalsOver)
	w.everySecond(t.Context())
	require.Contains(t, log.String(), `"the ledger is written again" failed=3`)
	require.NoError(t, os.Rename(w.location.path, w.location.path+".away"))
	w.everySecond(t.Context())
	require.Equal(t, "regedge_writer_failed_groups_total 4", fails(), "one that is away can't be written either")
}
