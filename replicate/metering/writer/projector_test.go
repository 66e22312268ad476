package writer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/sqld"
)

// hang stops a server's process, so that it neither answers nor refuses connections, until the
// returned function or the end of the test.
func hang(t *testing.T, server *sqld.Server) (resume func()) {
	t.Helper()
	pid := server.PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	require.Eventually(t, func() bool { return isStopped(t, pid) }, time.Minute, time.Millisecond)
	return resume
}

// isStopped reports whether all threads of a process have stopped: on a busy machine, one may still answer after
// SIGSTOP was sent. Where there is no /proc it is not known.
func isStopped(t *testing.T, pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	require.NoError(t, err)
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err == nil && !strings.Contains(string(stat), ") T ") { // proc(5): the state follows the name
			return false
		}
	}
	return true
}

// get returns the status and the body of a path of the writer.
func get(t *testing.T, w *writer.Writer, path string) (int, string) {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, request)
	body, err := io.ReadAll(recorder.Body)
	require.NoError(t, err)
	return recorder.Code, string(body)
}

// metric reads a metric without labels.
func metric(t *testing.T, w *writer.Writer, name string) float64 {
	t.Helper()
	_, text := get(t, w, "/metrics")
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
	require.NotNil(t, found, text)
	value, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return value
}

// projected waits until the access database misses nothing, which on a busy machine may take longer than a change waits for it.
func projected(t *testing.T, w *writer.Writer) {
	t.Helper()
	require.Eventually(t, func() bool { return metric(t, w, "regedge_writer_access_pending") == 0 }, time.Minute, 20*time.Millisecond)
}

// TestAHangingAccessServerHoldsUpNothing stops the server of the access database, which is worse than
// its end: every call to it waits.
func TestAHangingAccessServerHoldsUpNothing(t *testing.T) {
	files, _ := openDatabases(t, t.TempDir())
	primary := sqldtest.Primary(t)
	access := sqldtest.Open(t, primary)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: files, Access: access, OperatorToken: token})
	require.NoError(t, err)
	runUntilEnd(t, w)
	client := newClient(w, token)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	key, err := client.AddKey(t.Context(), a.ID, "key")
	require.NoError(t, err)
	projected(t, w)

	resume := hang(t, primary)
	fresh, err := client.AddKey(t.Context(), a.ID, "made meanwhile")
	require.NoError(t, err)
	require.True(t, fresh.Pending, "no edge knows the key")
	for _, change := range []struct{ method, path, body string }{
		{http.MethodDelete, "/v1/keys/" + strconv.FormatInt(key.ID, 10), ""},
		{http.MethodPatch, "/v1/accounts/" + strconv.FormatInt(a.ID, 10), `{"suspended":true}`},
	} { // the key works on: the answer must say so
		got := changeAs(t, w, token, writer.NewIdempotencyKey(), change.method, change.path, change.body)
		require.Equal(t, http.StatusAccepted, got.Code, "%s %s", change.method, got.Body)
		require.Contains(t, got.Body.String(), `"pending":true`)
	}
	for n := range 20 { // longer than the first retries
		_, err := client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 1})
		require.NoError(t, err, "change %d of the ledger", n)
		time.Sleep(200 * time.Millisecond)
	}
	status, text := get(t, w, "/readyz")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "the access database misses 3 changes")
	require.Equal(t, 3.0, metric(t, w, "regedge_writer_access_pending"))
	require.Greater(t, metric(t, w, "regedge_writer_access_behind_seconds"), 2.0)

	resume()
	projected(t, w)
	require.Zero(t, metric(t, w, "regedge_writer_access_behind_seconds"))
	require.Zero(t, count(t, access, `SELECT count(*) FROM api_key WHERE id = ?`, key.ID))
	require.Equal(t, 1, count(t, access, `SELECT count(*) FROM api_key WHERE id = ?`, fresh.ID))
	require.Equal(t, 1, count(t, access, `SELECT count(*) FROM account WHERE id = ? AND suspended`, a.ID))
	require.Eventually(t, func() bool { // a busy server takes longer than a change waits for it
		got := changeAs(t, w, token, writer.NewIdempotencyKey(), http.MethodPatch, "/v1/accounts/1", `{"suspended":false}`)
		return got.Code == http.StatusOK && !strings.Contains(got.Body.String(), `"pending"`)
	}, time.Minute, time.Millisecond, "what edges know is not pending")
}

// TestAWriterStartsWithoutItsAccessServer starts a writer while the server of the access database
// hangs. It serves the ledger, and projects once the server is back.
func TestAWriterStartsWithoutItsAccessServer(t *testing.T) {
	files, _ := openDatabases(t, t.TempDir())
	primary := sqldtest.Primary(t)
	access := sqldtest.Open(t, primary)
	resume := hang(t, primary)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: files, Access: access, OperatorToken: token})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	client := newClient(w, token)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	require.True(t, a.Pending)
	resume()
	projected(t, w)
	require.Equal(t, 1, count(t, access, `SELECT count(*) FROM account WHERE id = ?`, a.ID))
	require.Equal(t, 4, count(t, access, `SELECT count(*) FROM plan`))
	cancel()
	require.NoError(t, <-done)
}

// TestARowThatFailsHoldsUpNoOther refuses the rows of one account in the access database.
func TestARowThatFailsHoldsUpNoOther(t *testing.T) {
	client, access, w := start(t, t.TempDir())
	refused, err := client.AddAccount(t.Context(), "refused", "", "starter")
	require.NoError(t, err)
	other, err := client.AddAccount(t.Context(), "other", "", "starter")
	require.NoError(t, err)
	_, err = access.Exec(`CREATE TRIGGER refuse BEFORE UPDATE ON account WHEN new.id = ` + strconv.FormatInt(refused.ID, 10) +
		` BEGIN SELECT raise(ABORT, 'refused by the test'); END`)
	require.NoError(t, err)
	suspended := true
	got, err := client.ChangeAccount(t.Context(), refused.ID, writer.AccountChange{Suspended: &suspended})
	require.NoError(t, err)
	require.True(t, got.Pending)
	got, err = client.ChangeAccount(t.Context(), other.ID, writer.AccountChange{Suspended: &suspended})
	require.NoError(t, err)
	require.False(t, got.Pending)
	require.Equal(t, 1.0, metric(t, w, "regedge_writer_access_pending"))

	_, err = access.Exec(`DROP TRIGGER refuse`)
	require.NoError(t, err)
	projected(t, w)
	require.Equal(t, 2, count(t, access, `SELECT count(*) FROM account WHERE suspended`))
}
