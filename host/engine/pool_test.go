package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// TestTheComponentHasTheLimitsOfItsHost, and the defaults where it has none.
func TestTheComponentHasTheLimitsOfItsHost(t *testing.T) {
	databases, _ := newDatabases(t)
	parts := Parts{Access: databases["access"], Registry: databases["registry"], Meter: newLedger(), Clock: frozen(1), Random: constant{}}
	for limits, instances := range map[Limits]int{{}: DefaultMaxInstances, {Instances: 3, Fresh: true}: 3} {
		e, err := NewComponent(t.Context(), parts, limits)
		require.NoError(t, err)
		require.Equal(t, instances, cap(e.pool.slots))
		require.Equal(t, limits.Fresh, e.config.Fresh)
		require.NoError(t, e.Close(t.Context()))
	}
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

// TestADiscardedInstanceIsClosed, also when its client is gone: until then the runtime keeps its memory.
func TestADiscardedInstanceIsClosed(t *testing.T) {
	e := newEngine(t, hostileConfig(t, newLedger()))
	failed, err := e.acquire(t.Context())
	require.NoError(t, err)
	good, err := e.acquire(t.Context())
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	e.release(ctx, failed, true)
	e.release(ctx, good, false)
	require.True(t, failed.module.IsClosed())
	require.False(t, good.module.IsClosed())
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

// TestAnyByteMakesAnotherState, also one behind all that the first instance wrote.
func TestAnyByteMakesAnotherState(t *testing.T) {
	e := newEngine(t, hostileConfig(t, newLedger()))
	i, err := e.acquire(t.Context())
	require.NoError(t, err)
	defer e.release(t.Context(), i, true)
	require.True(t, e.snapshot.matches(i))
	for _, at := range []uint32{0, e.snapshot.base - 1, e.snapshot.base, e.snapshot.size - 1} {
		was, _ := i.memory.ReadByte(at)
		require.True(t, i.memory.WriteByte(at, was+1))
		require.False(t, e.snapshot.matches(i), "byte %d", at)
		require.True(t, i.memory.WriteByte(at, was))
	}
}

func TestInstancesAreMeasured(t *testing.T) {
	e, registry := newEngine(t, hostileConfig(t, newLedger())), prometheus.NewRegistry()
	require.NoError(t, e.Register(registry))
	require.Error(t, e.Register(registry), "their names are taken")
	for range 3 {
		i, err := e.acquire(t.Context())
		require.NoError(t, err)
		defer e.release(t.Context(), i, false)
	}
	failed, err := e.acquire(t.Context())
	require.NoError(t, err)
	e.release(t.Context(), failed, true)
	families, err := registry.Gather()
	require.NoError(t, err)
	measured := map[string]float64{}
	for _, family := range families {
		measured[family.GetName()] = family.Metric[0].GetCounter().GetValue() + family.Metric[0].GetGauge().GetValue()
	}
	require.Equal(t, map[string]float64{
		"regedge_instances_created_total": 4, "regedge_instances_discarded_total": 1, "regedge_instances_busy": 3,
	}, measured)
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
