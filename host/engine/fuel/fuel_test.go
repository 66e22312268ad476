package fuel_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"regedge/host/engine/fuel"
)

// countdown is a module with the function run(n), which calls a function n times in a loop:
//
//	(func $leaf)
//	(func (export "run") (param i32)
//	  (loop (call $leaf) (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
var countdown = []byte{
	0, 'a', 's', 'm', 1, 0, 0, 0,
	1, 8, 2, 0x60, 0, 0, 0x60, 1, 0x7f, 0, // types
	3, 3, 2, 0, 1, // functions
	7, 7, 1, 3, 'r', 'u', 'n', 0, 1, // exports
	10, 21, 2, // code
	2, 0, 0x0b,
	16, 0, 0x03, 0x40, 0x10, 0, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x0b,
}

// descent is a module with the function run(n), which calls itself n times, one within the other, by a table:
//
//	(table funcref (elem $run))
//	(func $run (export "run") (param i32)
//	  (if (local.get 0) (then (call_indirect (param i32) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0)))))
var descent = []byte{
	0, 'a', 's', 'm', 1, 0, 0, 0,
	1, 5, 1, 0x60, 1, 0x7f, 0, // types
	3, 2, 1, 0, // functions
	4, 4, 1, 0x70, 0, 1, // table
	7, 7, 1, 3, 'r', 'u', 'n', 0, 0, // exports
	9, 7, 1, 0, 0x41, 0, 0x0b, 1, 0, // elements
	10, 19, 1, // code
	17, 0, 0x20, 0, 0x04, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x41, 0, 0x11, 0, 0, 0x0b, 0x0b,
}

// run calls run(n) of the instrumented countdown and returns the steps that are left.
func run(ctx context.Context, n uint64, steps int32) (left int32, err error) {
	return runOf(ctx, countdown, n, steps)
}

func runOf(ctx context.Context, core []byte, n uint64, steps int32) (left int32, err error) {
	module, err := fuel.Parse(core)
	if err != nil {
		return 0, err
	}
	binary, err := module.Instrument()
	if err != nil {
		return 0, err
	}
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	instance, err := runtime.Instantiate(ctx, binary)
	if err != nil {
		return 0, err
	}
	global := instance.ExportedGlobal(fuel.ExportSteps).(api.MutableGlobal)
	global.Set(api.EncodeI32(steps))
	_, err = instance.ExportedFunction("run").Call(ctx, n)
	return api.DecodeI32(global.Get()), err
}

func TestEachTurnOfALoopAndEachCallTakesAStep(t *testing.T) {
	// The function that calls others takes one step, each turn of its loop another.
	for _, n := range []uint64{1, 2, 100} {
		left, err := run(t.Context(), n, 1000)
		require.NoError(t, err)
		require.Equal(t, int32(1000-1-n), left)
	}
}

// TestACallByATableTakesAStep: a guest could recur without end by its tables.
func TestACallByATableTakesAStep(t *testing.T) {
	for _, n := range []uint64{0, 1, 100} {
		left, err := runOf(t.Context(), descent, n, 1000)
		require.NoError(t, err)
		require.Equal(t, int32(1000-1-n), left)
	}
}

func TestRunningOutOfStepsTraps(t *testing.T) {
	left, err := run(t.Context(), 99, 100)
	require.NoError(t, err)
	require.Zero(t, left)
	left, err = run(t.Context(), 100, 100)
	require.ErrorContains(t, err, "unreachable")
	require.Negative(t, left)
}

func TestUnsupportedModulesAreRefused(t *testing.T) {
	_, err := fuel.Parse([]byte("something else"))
	require.ErrorContains(t, err, "not a core module")
	module, err := fuel.Parse(countdown)
	require.NoError(t, err)
	binary, err := module.Instrument()
	require.NoError(t, err)
	again, err := fuel.Parse(binary)
	require.NoError(t, err)
	require.True(t, again.Exports("run", fuel.ExportSteps))
	_, err = again.Instrument()
	require.ErrorContains(t, err, "reserved name")
}

func Example() {
	left, err := run(context.Background(), 1_000_000, 10_000)
	fmt.Println(left, err != nil)
	// Output: -1 true
}
