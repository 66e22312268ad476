package writer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// ready is what /readyz answers.
func ready(w *writer.Writer) (status int, text string) {
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return answer.Code, answer.Body.String()
}

// becomes waits until /readyz answers so.
func becomes(t *testing.T, w *writer.Writer, status int, words string) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, text := ready(w)
		return got == status && strings.Contains(text, words)
	}, time.Minute, 20*time.Millisecond, words)
}

// TestALedgerThatIsAwayIsNotWritten: what was answered would be lost with the writer's end. What was answered
// before is there for the next one.
func TestALedgerThatIsAwayIsNotWritten(t *testing.T) {
	for name, c := range map[string]struct{ takeAway, putBack func(path string) error }{
		"moved": {
			func(path string) error { return os.Rename(path, path+".away") },
			func(path string) error { return os.Rename(path+".away", path) },
		},
		"replaced": {
			func(path string) error {
				return errors.Join(os.Rename(path, path+".away"), os.WriteFile(path, nil, 0o600))
			},
			func(path string) error { return os.Rename(path+".away", path) },
		},
		"without its log": {
			func(path string) error { return os.Remove(path + "-wal") },
			func(path string) error { return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "ledger.db")
			client, stop := startOnce(t, dir)
			a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
			require.NoError(t, err)
			_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 5})
			require.NoError(t, err)
			require.NoError(t, c.takeAway(path))
			_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 7})
			require.ErrorIs(t, err, writer.ErrUnavailable)
			require.NoError(t, c.putBack(path))
			killed := filepath.Join(t.TempDir(), "ledger.db") // as a kill leaves it, whatever becomes of the log
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(killed, content, 0o600))
			after, _ := startOnce(t, filepath.Dir(killed))
			a, err = after.Account(t.Context(), a.ID)
			require.NoError(t, err)
			require.EqualValues(t, 5, a.Balance)
			_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 7})
			require.ErrorIs(t, err, writer.ErrUnavailable, "until it was started again")
			status, text := ready(stop.writer)
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, text, "removed, moved or replaced")
			stop.now()
			client, _ = startOnce(t, dir)
			a, err = client.Account(t.Context(), a.ID)
			require.NoError(t, err)
			require.EqualValues(t, 5, a.Balance)
		})
	}
}

// stopped is a writer that is stopped by now, or at the end of the test.
type stopped struct {
	writer *writer.Writer
	now    func()
}

// startOnce runs a writer on files in dir, with databases of its own.
func startOnce(t *testing.T, dir string) (*writer.Client, stopped) {
	ledger, access := openDatabases(t, dir)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: token, TakeOver: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, errors.Join(<-done, ledger.Close(), access.Close()))
	})
	t.Cleanup(stop)
	return newClient(w, token), stopped{w, stop}
}

// TestAWriterWhoseCommitsFailIsNotReady, though nobody asks it for one.
func TestAWriterWhoseCommitsFailIsNotReady(t *testing.T) {
	dir := t.TempDir()
	_, _, w := start(t, dir)
	becomes(t, w, http.StatusOK, "ready")
	ledger, _ := openDatabases(t, dir)
	_, err := ledger.Exec(`CREATE TRIGGER full BEFORE UPDATE ON writer BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END`)
	require.NoError(t, err)
	becomes(t, w, http.StatusServiceUnavailable, "can't be written")
	_, err = ledger.Exec(`DROP TRIGGER full`)
	require.NoError(t, err)
	becomes(t, w, http.StatusOK, "ready")
}
