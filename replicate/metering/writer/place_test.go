package writer_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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

// TestALedgerThatIsAwayIsNotWritten: what was answered would be lost with the writer's end. Nothing is booked
// twice or lost once the file is back.
func TestALedgerThatIsAwayIsNotWritten(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, path string){
		"removed": func(*testing.T, string) {},
		"replaced": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			client, _, w := start(t, dir)
			a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
			require.NoError(t, err)
			becomes(t, w, http.StatusOK, "ready")
			path, away := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "away.db")
			require.NoError(t, os.Rename(path, away))
			replace(t, path)
			_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 5})
			require.ErrorIs(t, err, writer.ErrUnavailable)
			becomes(t, w, http.StatusServiceUnavailable, "can't be written")
			require.NoError(t, os.Rename(away, path))
			becomes(t, w, http.StatusOK, "ready")
			a, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 7})
			require.NoError(t, err)
			require.EqualValues(t, 7, a.Balance)
		})
	}
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
