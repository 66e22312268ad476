package sqld_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

// mirror is a folder that a web server shows.
type mirror struct {
	*sqld.Mirror
	folder string
	asked  atomic.Int64 // for a file that it has
}

// newMirror makes one to which a command uploads, in which DIR stands for its folder.
func newMirror(t *testing.T, upload string) *mirror {
	t.Helper()
	m := &mirror{folder: t.TempDir()}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(filepath.Join(m.folder, filepath.Base(r.URL.Path))); err == nil {
			m.asked.Add(1)
		}
		http.FileServer(http.Dir(m.folder)).ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	at, err := url.Parse(web.URL)
	require.NoError(t, err)
	m.Mirror = &sqld.Mirror{URL: at, Upload: strings.ReplaceAll(upload, "DIR", m.folder)}
	return m
}

// files are the names in the mirror.
func (m *mirror) files(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(m.folder)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// putFile is a command that shows a file only once it is whole.
const putFile = `cp "$REGEDGE_FILE" DIR/.part && mv DIR/.part DIR/"$REGEDGE_NAME"`

// TestReplicasCopyFromTheMirror, which has a release before it is current, and only once; what follows comes by the log. What
// the mirror has lost comes from the primary.
func TestReplicasCopyFromTheMirror(t *testing.T) {
	t.Parallel()
	m := newMirror(t, "echo x >> DIR/times; "+putFile)
	g := startMirrored(t, m.Mirror)
	g.handOver(1)
	names := m.files(t)
	require.Len(t, names, 2)
	require.Regexp(t, regexp.MustCompile(`^[0-9a-f]{64}\.zst$`), names[0])
	require.Equal(t, 1, times(g.log, "uploaded the compressed database to the mirror in"), g.log)

	near, log := g.replica("")
	follows(t, near, 1)
	require.EqualValues(t, 1, m.asked.Load())
	require.Equal(t, 1, times(log, "copying the database from the mirror"), log)
	first, err := os.Stat(filepath.Join(m.folder, names[0]))
	require.NoError(t, err)
	require.Greater(t, near.Traffic.Received.Load(), first.Size(), "what is copied")
	before := near.Traffic.Received.Load()
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 2")
	follows(t, near, 2)
	require.Greater(t, near.Traffic.Received.Load(), before, "so does the log")
	sqldtest.RequireIntact(t, sqld.File(near.Dir))

	g.Stop()
	require.NoError(t, g.Start())
	sqldtest.Await(t, g.Server, "")
	g.handOver(3)
	follows(t, near, 3)
	require.EqualValues(t, 2, m.asked.Load())
	content, err := os.ReadFile(filepath.Join(m.folder, "times"))
	require.NoError(t, err)
	require.Equal(t, "x\nx\n", string(content), "a start uploads nothing again")
	require.Zero(t, times(g.log, "until the mirror has it"), g.log)

	for _, name := range m.files(t) {
		require.NoError(t, os.Remove(filepath.Join(m.folder, name)))
	}
	late, lateLog := g.replica("")
	follows(t, late, 3)
	require.Equal(t, 1, times(lateLog, "copying the database from the primary"), lateLog)
	require.Greater(t, late.Traffic.Received.Load(), first.Size()/2, "and what the primary sends")
	require.Equal(t, 1, times(lateLog, "404 Not Found"), lateLog)
}

// TestAnUploadThatFailsHoldsNothingUp: the release is current, the reason is logged, and it is tried again.
func TestAnUploadThatFailsHoldsNothingUp(t *testing.T) {
	m := newMirror(t, "echo no way there >&2; test -e DIR/open || exit 3; "+putFile)
	g := startMirrored(t, m.Mirror)
	g.handOver(1)
	require.Contains(t, g.log.String(), `--mirror-upload: exit status 3: "no way there"`)
	require.Empty(t, m.files(t))
	require.NoError(t, os.WriteFile(filepath.Join(m.folder, "open"), nil, 0o600))
	g.Stop()
	require.NoError(t, g.Start())
	require.Eventually(t, func() bool { return len(m.files(t)) == 2 }, patience, 10*time.Millisecond, g.log)
	near, _ := g.replica("")
	follows(t, near, 1)
	require.EqualValues(t, 1, m.asked.Load())
}

// TestAnUploadThatHangsEndsWithThePrimary, together with what the shell has started.
func TestAnUploadThatHangsEndsWithThePrimary(t *testing.T) {
	m := newMirror(t, "sleep 1000 & echo $! > DIR/pid; wait")
	g := startMirrored(t, m.Mirror)
	require.NoError(t, sqld.Seed(g.Dir).Put(seedOf(t, 1, "wal"), nil))
	pid := m.pid(t)
	began := time.Now()
	g.Stop()
	require.Less(t, time.Since(began), patience)
	require.Eventually(t, func() bool { return !sqld.Runs(pid) }, patience, 10*time.Millisecond)
	require.True(t, sqld.Seed(g.Dir).Waits(), "the release was not current yet, and waits")
	require.Zero(t, times(g.log, "until the mirror has it"), "a stop is no failure")
}

// TestAnUploadEndsWithAServerThatEnds by itself: its caller goes on, or ends, without the upload.
func TestAnUploadEndsWithAServerThatEnds(t *testing.T) {
	m := newMirror(t, "echo $$ > DIR/pid; exec sleep 1000")
	g := startMirrored(t, m.Mirror)
	g.Stop()
	ran := make(chan error, 1)
	go func() { ran <- g.Run(t.Context()) }()
	sqldtest.Await(t, g.Server, "")
	require.NoError(t, sqld.Seed(g.Dir).Put(seedOf(t, 1, "wal"), nil))
	pid := m.pid(t)
	server, err := os.FindProcess(g.PID())
	require.NoError(t, err)
	require.NoError(t, server.Kill())
	require.ErrorIs(t, <-ran, sqld.ErrEnded)
	require.False(t, sqld.Runs(pid))
}

// TestAnUploadBesideEndsWithThePrimary: it reads a file that the next start may replace.
func TestAnUploadBesideEndsWithThePrimary(t *testing.T) {
	t.Parallel()
	m := newMirror(t, "test -e DIR/open || exit 3; echo $$ > DIR/pid; exec sleep 1000")
	g := startMirrored(t, m.Mirror)
	g.handOver(1)
	require.NoError(t, os.WriteFile(filepath.Join(m.folder, "open"), nil, 0o600))
	g.Stop()
	require.NoError(t, g.Start())
	pid := m.pid(t)
	g.Stop()
	require.False(t, sqld.Runs(pid))
}

// pid waits for the process id that a command has left.
func (m *mirror) pid(t *testing.T) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		content, _ := os.ReadFile(filepath.Join(m.folder, "pid"))
		_, err := fmt.Sscan(string(content), &pid)
		return err == nil
	}, patience, 10*time.Millisecond)
	return pid
}
