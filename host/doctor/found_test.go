package doctor

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// found is what one check notes, which is one thing.
func found(t *testing.T, check func(*Exam)) Finding {
	t.Helper()
	e := exam()
	check(e)
	require.Len(t, e.Findings, 1, "%v", e.Findings)
	return e.Findings[0]
}

func TestADatabaseWithoutAHeartbeatHasNoAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	f := found(t, func(e *Exam) { e.File(t.Context(), schema.Access, path, time.Minute) })
	require.Equal(t, Wrong, f.Level)
	require.Contains(t, f.Found, "has no heartbeat")
	require.Equal(t, OK, found(t, func(e *Exam) { e.File(t.Context(), schema.Access, path, 0) }).Level, "a file that is written here")
}

// TestAnOldBackupAndALargeLogAreFound at the limits of the alarms.
func TestAnOldBackupAndALargeLogAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	require.NoError(t, os.WriteFile(file, []byte("made up"), 0o600))
	for age, want := range map[time.Duration]Level{backupOld: OK, backupOld + time.Second: Wrong} {
		made := exam().Now().Add(-age)
		require.NoError(t, os.Chtimes(file, made, made))
		require.Equal(t, want, found(t, func(e *Exam) { e.Backup(file) }).Level, age)
	}
	require.Equal(t, Wrong, found(t, func(e *Exam) { e.Backup(file + "-missing") }).Level)

	log, err := os.Create(file + "-wal")
	require.NoError(t, err)
	defer log.Close()
	for size, want := range map[int64]Level{largeLog: OK, largeLog + 1: Soon} {
		require.NoError(t, log.Truncate(size)) // without a block on the disk
		require.Equal(t, want, found(t, func(e *Exam) { e.Size("ledger file", file) }).Level, size)
	}
}

// TestAnotherServiceIsNoWriter, though it answers with 200.
func TestAnotherServiceIsNoWriter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }))
	defer server.Close()
	f := found(t, func(e *Exam) { require.False(t, e.Writer(t.Context(), server.URL, "made-up", OperatorToken)) })
	require.Equal(t, Wrong, f.Level)
	require.Contains(t, f.Found, "is not a writer (status 200)")
}

// TestTheTokensOfAnEdgeAreReadFromItsMetrics, also when these are on all interfaces.
func TestTheTokensOfAnEdgeAreReadFromItsMetrics(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "regedge_read_token_ends_seconds{database=\"access\"} 90.5\nregedge_read_token_ends_seconds{database=\"registry\"} x\n")
	})}}
	server.Start()
	defer server.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	left := exam().TokensLeft(t.Context(), "[::]:"+port)
	require.Equal(t, map[string]time.Duration{"access": 90*time.Second + 500*time.Millisecond}, left)
	require.Empty(t, exam().TokensLeft(t.Context(), ""))
}

// TestWhyACertificateIsRefusedIsTold: its time, or its names.
func TestWhyACertificateIsRefusedIsTold(t *testing.T) {
	for reason, want := range map[x509.InvalidReason]string{x509.Expired: "is not valid now", x509.IncompatibleUsage: "does not answer"} {
		err := x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: reason}
		require.Contains(t, found(t, func(e *Exam) { e.silent("writer", "centre:443", err) }).Found, want)
	}
	nameless := x509.HostnameError{Certificate: &x509.Certificate{}, Host: "centre"}
	require.Contains(t, found(t, func(e *Exam) { e.silent("writer", "centre:443", nameless) }).Found, "is for no machine, not for centre")
}
