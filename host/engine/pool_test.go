package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
)

func TestRequestsWaitForAFreeInstance(t *testing.T) {
	config := hostileConfig(t, newLedger())
	config.MaxInstances = 1
	e := newEngine(t, config)
	i, err := e.acquire(t.Context())
	require.NoError(t, err)

	ctx, leave := context.WithCancel(t.Context())
	leave()
	var resp handler.Response
	require.ErrorIs(t, e.Answer(ctx, lookup("/o", ""), &resp), ErrOverloaded)

	served := make(chan error)
	go func() {
		var resp handler.Response
		served <- e.Answer(context.Background(), lookup("/o", ""), &resp)
	}()
	e.release(t.Context(), i, false)
	require.NoError(t, <-served)
	require.Equal(t, int64(1), e.Stats().Created)
}

func TestInstancesAreBounded(t *testing.T) {
	config := hostileConfig(t, newLedger())
	config.MaxInstances = 2
	e := newEngine(t, config)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				var resp handler.Response
				require.NoError(t, e.Answer(context.Background(), lookup("/o", ""), &resp))
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, e.Stats().Created, int64(2))
}

func TestFreshInstanceForEachRequest(t *testing.T) {
	config := hostileConfig(t, newLedger())
	config.Fresh = true
	e := newEngine(t, config)
	before := e.Stats().Created
	var resp handler.Response
	for range 3 {
		require.NoError(t, e.Answer(t.Context(), lookup("/o", ""), &resp))
	}
	require.Equal(t, before+3, e.Stats().Created)
	require.Equal(t, e.Stats().Created, e.Stats().Discarded)
}

// TestAnInstanceThatCannotBeMadeLeavesItsSlot for later requests, however many failed.
func TestAnInstanceThatCannotBeMadeLeavesItsSlot(t *testing.T) {
	config := hostileConfig(t, newLedger())
	config.MaxInstances = 3
	e := newEngine(t, config)
	first, err := e.acquire(t.Context()) // the later ones have to be made
	require.NoError(t, err)
	defer e.release(t.Context(), first, false)
	good := e.snapshot.globals[0]
	e.snapshot.globals[0]++ // no instance begins in this state
	var resp handler.Response
	for range 2 * config.MaxInstances {
		require.ErrorContains(t, e.Answer(t.Context(), lookup("/o", ""), &resp), "a different state")
		require.Equal(t, 1, e.Stats().Busy)
	}
	require.Equal(t, e.Stats().Created, e.Stats().Discarded+1)
	e.snapshot.globals[0] = good
	requireAlive(t, e)
}

func TestCloseWaitsForRequestsInFlight(t *testing.T) {
	e, err := New(context.Background(), hostileConfig(t, newLedger()))
	require.NoError(t, err)
	i, err := e.acquire(t.Context())
	require.NoError(t, err)
	closed := make(chan error)
	go func() { closed <- e.Close(context.Background()) }()
	select {
	case <-closed:
		t.Fatal("closed while a request was served")
	case <-time.After(10 * time.Millisecond):
	}
	e.release(t.Context(), i, false)
	require.NoError(t, <-closed)

	var resp handler.Response
	require.ErrorIs(t, e.Answer(t.Context(), lookup("/o", ""), &resp), ErrClosed)
}
