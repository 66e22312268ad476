package devdata_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/devdata"
	"regedge/host/service"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// TestAnInterruptedFirstStartIsResumed: the next start imports the sample, and those after it do not.
func TestAnInterruptedFirstStartIsResumed(t *testing.T) {
	dir := t.TempDir()
	start := func(ctx context.Context) (sampled bool, err error) {
		var closers service.Closers
		data, err := devdata.Open(ctx, dir, "", time.Now, io.Discard, &closers)
		require.NoError(t, closers.Close())
		return err == nil && data.Sampled, err
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := start(interrupted)
	require.ErrorIs(t, err, context.Canceled)
	var made [2]int
	for i := range made {
		sampled, err := start(t.Context())
		require.NoError(t, err)
		require.True(t, sampled)
		db, err := schema.OpenReadOnly(filepath.Join(dir, "registry.db"))
		require.NoError(t, err)
		require.NoError(t, db.QueryRow("SELECT count(*) FROM release").Scan(&made[i]))
		require.NoError(t, db.Close())
	}
	require.Positive(t, made[0])
	require.Equal(t, made[0], made[1])
}

// TestTheSecretsAreTheirOwnersAlone, also once they were written again.
func TestTheSecretsAreTheirOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var closers service.Closers
	data, err := devdata.Open(t.Context(), dir, "", time.Now, io.Discard, &closers)
	require.NoError(t, err)
	require.NoError(t, closers.Close())
	for path, want := range map[string]os.FileMode{dir: 0o700, data.SecretsFile(): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}

// TestTheDemoAccountIsMadeOnce, though a start ended before it saved the key: its owner signs in to the account that
// has the key.
func TestTheDemoAccountIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	var closers service.Closers
	defer func() { require.NoError(t, closers.Close()) }()
	data, err := devdata.Open(t.Context(), dir, "own.db", time.Now, io.Discard, &closers)
	require.NoError(t, err)
	ledger, err := schema.OpenFile(data.LedgerFile())
	require.NoError(t, err)
	closers.Add(ledger.Close)
	access, err := schema.OpenFile(data.AccessFile())
	require.NoError(t, err)
	closers.Add(access.Close)
	central, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: data.OperatorToken})
	require.NoError(t, err)
	closers.Add(central.Close)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { central.Run(ctx) })
	closers.Add(func() error { stop(); running.Wait(); return nil })
	client := writer.NewClient("http://writer", data.OperatorToken, &http.Client{Transport: writer.InProcess(central.Handler())})
	data.OperatorPassword = "made already"
	for range 2 {
		data.NodeToken, data.LiveKey = "", "" // what the start before made, and did not save
		require.NoError(t, data.Provision(t.Context(), client, nil))
	}
	accounts, err := client.Accounts(t.Context())
	require.NoError(t, err)
	require.Len(t, accounts, 1)
	require.EqualValues(t, 100_000, accounts[0].Bought)
	require.NotEmpty(t, data.LiveKey)
}
