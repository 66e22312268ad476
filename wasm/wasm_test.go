package wasm_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"regedge/wasm"
)

// maxComponentBytes keeps instantiation cheap: Spin instantiates the component for each request.
const maxComponentBytes = 200 << 10

func parsed(t *testing.T) contents {
	t.Helper()
	found, err := parse(wasm.Component)
	require.NoError(t, err)
	return found
}

func TestComponentIsSmall(t *testing.T) {
	require.LessOrEqual(t, len(wasm.Component), maxComponentBytes)
}

func TestComponentImportsOnlyItsWorld(t *testing.T) {
	want := []string{
		"fermyon:spin/sqlite@2.0.0",
		"fermyon:spin/variables@2.0.0",
		"wasi:clocks/monotonic-clock@0.2.0",
		"wasi:clocks/wall-clock@0.2.0",
		"wasi:http/outgoing-handler@0.2.0",
		"wasi:http/types@0.2.0",
		"wasi:io/error@0.2.0",
		"wasi:io/poll@0.2.0",
		"wasi:io/streams@0.2.0",
		"wasi:random/random@0.2.0",
	}
	got := parsed(t).imports
	slices.Sort(got)
	require.Equal(t, want, got)
}

func TestComponentExportsOnlyItsHandler(t *testing.T) {
	require.Equal(t, []string{"wasi:http/incoming-handler@0.2.0"}, parsed(t).exports)
}

func TestComponentHasNoPathsOfTheBuild(t *testing.T) {
	for _, path := range []string{"/root/", "/home/", "/usr/", "/tmp/", "/go/pkg/", "build/wasm"} {
		require.NotContains(t, string(wasm.Component), path)
	}
}

func TestTruncatedComponentIsRefused(t *testing.T) {
	for _, size := range []int{0, 7, 9, len(wasm.Component) / 2, len(wasm.Component) - 1} {
		_, err := parse(wasm.Component[:size])
		require.Error(t, err, "%d bytes", size)
	}
}

// TestGuestStartsSmall bounds the memory that a host restores before each request, and the memory
// of an instance.
func TestGuestStartsSmall(t *testing.T) {
	guest := initialised(t)
	require.EqualValues(t, 256<<10, guest.Memory().Size())
	end, err := guest.ExportedFunction("cabi_realloc").Call(context.Background(), 0, 0, 1, 1)
	require.NoError(t, err)
	require.Less(t, end[0], uint64(72<<10))
}

// TestGuestAllocatesUpwards checks the guarantees of package guest about its allocator.
func TestGuestAllocatesUpwards(t *testing.T) {
	guest := initialised(t)
	realloc := func(args ...uint64) uint32 {
		results, err := guest.ExportedFunction("cabi_realloc").Call(context.Background(), args...)
		require.NoError(t, err)
		return uint32(results[0])
	}
	end := realloc(0, 0, 1, 1)

	t.Run("addresses increase, are aligned and do not overlap", func(t *testing.T) {
		free := end
		for _, size := range []uint64{1, 3, 8, 24, 1000, 70_000, 5} {
			block := realloc(0, 0, 8, size)
			require.GreaterOrEqual(t, block, free)
			require.Zero(t, block%16)
			free = block + uint32(size)
			require.True(t, guest.Memory().WriteByte(free-1, 1), "the block is in the memory")
		}
	})
	t.Run("a growing block keeps its content", func(t *testing.T) {
		block := realloc(0, 0, 1, 4)
		require.True(t, guest.Memory().WriteString(block, "abcd"))
		grown := realloc(uint64(block), 4, 1, 40)
		text, _ := guest.Memory().Read(grown, 4)
		require.Equal(t, "abcd", string(text))
	})
	t.Run("a shrinking block stays", func(t *testing.T) {
		block := realloc(0, 0, 1, 40)
		require.Equal(t, block, realloc(uint64(block), 40, 1, 4))
	})
	t.Run("an empty block is aligned and allocates nothing", func(t *testing.T) {
		before := realloc(0, 0, 1, 1)
		require.Zero(t, realloc(0, 0, 8, 0)%8)
		require.Equal(t, before+16, realloc(0, 0, 1, 1))
	})
	t.Run("an allocation of one byte returns the end of the heap", func(t *testing.T) {
		above := realloc(0, 0, 1, 1) + 1
		rest, _ := guest.Memory().Read(above, guest.Memory().Size()-above)
		require.Empty(t, strings.Trim(string(rest), "\x00"), "memory above the end is untouched")
	})
}

// initialised instantiates the component's main module and runs _initialize. Its imports panic,
// since _initialize must not call any.
func initialised(t *testing.T) api.Module {
	t.Helper()
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { _ = runtime.Close(ctx) })

	compiled, err := runtime.CompileModule(ctx, mainModule(t))
	require.NoError(t, err)
	hosts := map[string]wazero.HostModuleBuilder{}
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if hosts[module] == nil {
			hosts[module] = runtime.NewHostModuleBuilder(module)
		}
		fails := api.GoModuleFunc(func(context.Context, api.Module, []uint64) {
			panic(module + "#" + name + " was called")
		})
		hosts[module].NewFunctionBuilder().WithGoModuleFunction(fails, f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, host := range hosts {
		_, err := host.Instantiate(ctx)
		require.NoError(t, err)
	}
	guest, err := runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	require.NoError(t, err)
	return guest
}

// mainModule returns the largest core module. The others are glue made by wasm-tools.
func mainModule(t *testing.T) []byte {
	t.Helper()
	return slices.MaxFunc(parsed(t).coreModules, func(a, b []byte) int { return len(a) - len(b) })
}
