package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
)

// TestABusyStoreSeesCommits keeps connections busy. No statement fails, all soon see the owner's
// commits, and the owner can checkpoint its WAL.
func TestABusyStoreSeesCommits(t *testing.T) {
	path, writer := newFile(t, people)
	require.NoError(t, writer.BusyTimeout(10*time.Second))
	s := open(t, sqlite.Config{Path: path, Connections: 2, ReadTx: time.Millisecond, CacheResults: true})
	const named = "SELECT name FROM person WHERE id = 2 AND ?1 <> ''"
	argument := []handler.Value{{Kind: handler.Text, Text: "x"}}
	var running sync.WaitGroup
	var stop atomic.Bool
	var answered atomic.Int64
	var newest atomic.Pointer[string]
	newest.Store(new(string))
	for range 3 {
		running.Go(func() {
			for !stop.Load() {
				var result handler.Result
				if err := s.Query(t.Context(), named, argument, &result); err != nil {
					t.Error(err)
					return
				}
				newest.Store(&result.Values[0].Text)
				answered.Add(1)
			}
		})
	}
	defer func() { stop.Store(true); running.Wait() }()
	for n := range 10 {
		name := fmt.Sprintf("Ravi %d", n)
		require.NoError(t, writer.Exec(fmt.Sprintf("UPDATE person SET name = '%s' WHERE id = 2", name)))
		emptyLog(t, path, writer)
		before := answered.Load()
		require.Eventually(t, func() bool {
			return *newest.Load() == name && answered.Load() > before
		}, time.Minute, time.Millisecond)
	}
}

// TestATransactionThatExpiresWhileAStatementRunsEndsWithIt: no other statement may come to end it.
func TestATransactionThatExpiresWhileAStatementRunsEndsWithIt(t *testing.T) {
	path, writer := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, Connections: 1, ReadTx: 5 * time.Millisecond, Timeout: 200 * time.Millisecond})
	const reading = "WITH RECURSIVE n(i) AS (SELECT count(*) FROM person UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"
	var result handler.Result
	require.ErrorIs(t, s.Query(t.Context(), reading, nil, &result), sqlite.ErrTimeout)
	require.NoError(t, writer.Exec("UPDATE person SET name = 'Ravi' WHERE id = 2"))
	emptyLog(t, path, writer)
}

// TestACallerThatGoesAwayDoesNotWaitForAConnection.
func TestACallerThatGoesAwayDoesNotWaitForAConnection(t *testing.T) {
	path, _ := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, Connections: 1, Timeout: time.Hour})
	busy, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		var result handler.Result
		_ = s.Query(busy, endless, nil, &result)
	})
	defer running.Wait()
	defer end()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var result handler.Result
		return errors.Is(s.Query(ctx, "SELECT 1", nil, &result), context.DeadlineExceeded)
	}, time.Minute, time.Millisecond)
}

// TestACallerWaitsForAConnectionAsLongAsAStatementMayTake.
func TestACallerWaitsForAConnectionAsLongAsAStatementMayTake(t *testing.T) {
	path, _ := newFile(t, people)
	s := open(t, sqlite.Config{Path: path, Connections: 1, Timeout: 50 * time.Millisecond})
	var running sync.WaitGroup
	for range 3 { // the second and the third wait for the first, and one of them in vain
		running.Go(func() {
			var result handler.Result
			require.ErrorIs(t, s.Query(t.Context(), endless, nil, &result), sqlite.ErrTimeout)
		})
	}
	running.Wait()
	worksOn(t, s) // the one place is free again
}
