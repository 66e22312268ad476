package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/hint"
	"regedge/internal/testkit"
	"regedge/replicate/registry/push"
)

// TestAPushToAnotherServerSaysSo: to one that speaks TLS, to one of other pages, to one of another database, and to a primary that
// is about to exit, which says so in words of its own.
func TestAPushToAnotherServerSaysSo(t *testing.T) {
	for what, answer := range map[string]struct {
		status     int
		text, want string
	}{
		"one that speaks TLS": {400, "Client sent an HTTP request to an HTTPS server.", "hint: does another service listen at "},
		"other pages":         {404, "404 page not found", "hint: does another service listen at "},
		"one that stops":      {404, `{"error":"Namespace ` + "`default`" + ` doesn't exist"}`, " is stopping, and takes no more calls\nhint: when it runs again "},
		"another database":    {401, "Unauthorized: `The JWT is invalid`", "'s primary, not that of access, and not a replica?"},
	} {
		t.Run(what, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, answer.text, answer.status)
			}))
			t.Cleanup(server.Close)
			code, said := ran("push", "pushhints_test.go", "--dry-run", "--registry", server.URL)
			require.Equal(t, exitFailure, code)
			require.Contains(t, said, answer.want)
			require.Contains(t, said, server.URL)
			require.NotContains(t, said, "Namespace")
		})
	}
}

// TestAPushWhoseAnswerBreaksOffSaysSo: it said "unexpected EOF", neither of what nor what to do.
func TestAPushWhoseAnswerBreaksOffSaysSo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"baton"`)
	}))
	t.Cleanup(server.Close)
	code, said := ran("push", "pushhints_test.go", "--dry-run", "--registry", server.URL)
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "the answer of "+server.URL+" broke off: ")
	require.Contains(t, said, "hint: did the primary end just now?")
}

// TestWhoEndsACommandIsNotToldThatThePrimaryIsSilent.
func TestWhoEndsACommandIsNotToldThatThePrimaryIsSilent(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		stop()
		<-ended
	}))
	defer server.Close()
	defer close(ended)
	said := new(testkit.Log)
	m := &Main{Stdin: strings.NewReader(""), Stdout: said, Stderr: said, Environ: func() []string { return nil }, Now: time.Now}
	require.Equal(t, exitFailure, m.Run(ctx, []string{"push", "pushhints_test.go", "--dry-run", "--registry", server.URL}))
	require.Contains(t, said.String(), "context canceled")
	require.NotContains(t, said.String(), "does the primary's machine hang")
}

// TestAPushIsConfirmedByAllThatWouldGo: records and the parts of those that stay.
func TestAPushIsConfirmedByAllThatWouldGo(t *testing.T) {
	report := &push.Report{Counts: []push.Count{{Removed: 2}}, PartsRemoved: 3, Doubts: []string{"3 of 9 appointments would go"}}
	for yes, confirmed := range map[int64]bool{2: false, 3: false, 5: true, 6: false} {
		require.Equal(t, confirmed, (&pushCommand{Yes: &yes}).confirm(t.Context(), &Main{}, report) == nil, yes)
	}
}

// TestAPushTellsProgramsItsTimeInSeconds, and what was sent apart from what was received.
func TestAPushTellsProgramsItsTimeInSeconds(t *testing.T) {
	told := pushedOf(&push.Report{Elapsed: 1500 * time.Millisecond, Sent: 7, Received: 3}, false)
	require.InDelta(t, 1.5, told.Elapsed, 0)
	require.Equal(t, []int64{7, 3}, []int64{told.Sent, told.Received})
}

// TestAFileOfAnotherUserIsExplained, for a registry and for the keys of a cluster.
func TestAFileOfAnotherUserIsExplained(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may open every file")
	}
	dir := filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.Mkdir(dir, 0))
	code, said := ran("import", "--verify", "--registry", filepath.Join(dir, "registry.db"))
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "hint: let the user that this runs as read the file")
	code, said = ran("trust", "token", "registry", "--trust", dir)
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "hint: run it as the user that may read the keys")
}

// TestAPushThatHasThePrimarysDirectoryIsNotToldOfAFasterOne.
func TestAPushThatHasThePrimarysDirectoryIsNotToldOfAFasterOne(t *testing.T) {
	for dir, faster := range map[string]bool{"": true, t.TempDir(): false} {
		f, shown := pushFlags{Primary: dir, Releases: t.TempDir()}, newStages(io.Discard, time.Now, "pushing")
		err := f.run(t.Context(), &Main{Now: time.Now}, push.Config{Release: "none"}, shown)
		require.ErrorIs(t, err, push.ErrNoSnapshot)
		require.Equal(t, faster, shown.faster != "")
	}
}

// TestAPushNamesEveryDiskThatMayBeFull: a file that is handed over is written to the primary's directory.
func TestAPushNamesEveryDiskThatMayBeFull(t *testing.T) {
	said := hint.Of((&pushFlags{}).explain(&os.PathError{Op: "write", Path: "data.part", Err: syscall.ENOSPC}))
	for _, flag := range []string{"--releases", "--primary-dir", "the registry file"} {
		require.Contains(t, said, flag)
	}
}
