package writer_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/writer"
)

// openSecond opens another writer on the files in dir, and returns what it logged.
func openSecond(t *testing.T, dir string, takeOver bool) (*writer.Writer, string, error) {
	ledger, access := openDatabases(t, dir)
	log := &lockedBuffer{}
	w, err := writer.Open(t.Context(), writer.Config{
		Ledger: ledger, Access: access, OperatorToken: token, TakeOver: takeOver, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	return w, log.String(), err
}

// TestASecondWriterLeavesTheFirstAlone starts a second writer by mistake.
func TestASecondWriterLeavesTheFirstAlone(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	_, _, err := openSecond(t, dir, false)
	require.ErrorIs(t, err, writer.ErrHeld)
	host, err2 := os.Hostname()
	require.NoError(t, err2)
	require.ErrorContains(t, err, fmt.Sprintf("process %d at %s, since 20", os.Getpid(), host))
	require.ErrorContains(t, err, "last heard 20")
	_, err = client.AddAccount(t.Context(), "made-up", "", "free")
	require.NoError(t, err, "the first one still holds the ledger")
}

// TestAWriterOfAnotherMachineIsLeftAlone as well: that it is heard tells that it runs, not where.
func TestAWriterOfAnotherMachineIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	files, _ := openDatabases(t, dir)
	_, err := files.Exec(`UPDATE writer SET host = 'elsewhere', pid = 1`)
	require.NoError(t, err)
	_, _, err = openSecond(t, dir, false)
	require.ErrorIs(t, err, writer.ErrHeld)
	require.ErrorContains(t, err, "process 1 at elsewhere, since 20")
	_, err = client.AddAccount(t.Context(), "made-up", "", "free")
	require.NoError(t, err)
}

// TestASecondWriterThatIsToldTakesTheLedger is the same with TakeOver.
func TestASecondWriterThatIsToldTakesTheLedger(t *testing.T) {
	dir := t.TempDir()
	files, access := openDatabases(t, dir)
	first, err := writer.Open(t.Context(), writer.Config{Ledger: files, Access: access, OperatorToken: token})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- first.Run(context.Background()) }()
	_, log, err := openSecond(t, dir, true)
	require.NoError(t, err)
	require.Contains(t, log, "taking the ledger over")
	require.ErrorIs(t, <-done, writer.ErrFenced, "it notices without being asked")
	h, err := ledger.ReadHolder(t.Context(), files)
	require.NoError(t, err)
	require.NotZero(t, h.PID, "the first one does not give up what it lost")
}

// TestAWriterAfterOneThatWasKilled waits until that one is silent, and says so. After one that ended in
// order there is nothing to wait for.
func TestAWriterAfterOneThatWasKilled(t *testing.T) {
	dir := t.TempDir()
	_, _, err := openSecond(t, dir, false) // never runs, as if it was killed
	require.NoError(t, err)
	next, log, err := openSecond(t, dir, false)
	require.NoError(t, err)
	require.Contains(t, log, "waiting whether its writer is still heard")
	require.Contains(t, log, "that writer is silent: taking the ledger")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, next.Run(ctx))
	_, log, err = openSecond(t, dir, false)
	require.NoError(t, err)
	require.Empty(t, log)
}
