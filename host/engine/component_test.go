package engine

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"regedge/host/engine/fuel"
	"regedge/wasm"
)

func TestMainModuleIsFoundByItsExports(t *testing.T) {
	modules, err := coreModules(wasm.Component)
	require.NoError(t, err)
	require.Greater(t, len(modules), 1, "the component has modules that adapt the main one")
	m, err := mainModule(wasm.Component, exportHandle, exportRealloc, exportMemory)
	require.NoError(t, err)
	require.NotEmpty(t, m.Mutable, "the stack pointer")
	for _, list := range [][][]byte{{modulePreamble, hostileModule}, {hostileModule, modulePreamble}} {
		m, err = mainModule(asComponent(list...), exportHandle, exportRealloc, exportMemory)
		require.NoError(t, err)
		require.True(t, m.Exports(exportHandle))
	}
}

func TestComponentIsRefusedWithTheReason(t *testing.T) {
	empty := bytes.Clone(modulePreamble)
	for name, c := range map[string]struct {
		component []byte
		want      string
	}{
		"empty":          {nil, "not a WebAssembly component"},
		"text":           {[]byte("<html>"), "not a WebAssembly component"},
		"core module":    {hostileModule, "it is a core module"},
		"no module":      {componentPreamble, "none of the component's 0 core modules"},
		"other exports":  {asComponent(empty), "none of the component's 1 core modules exports all of"},
		"two of a kind":  {asComponent(hostileModule, hostileModule), "two core modules"},
		"cut in section": {asComponent(hostileModule)[:200], "unexpected end"},
		"long number":    {append(bytes.Clone(componentPreamble), 1, 0xff, 0xff, 0xff, 0xff, 0xff), "over 32 bits"},
		"bad module":     {asComponent([]byte("nothing like it")), "not a core module"},
		"too many":       {asComponent(make([][]byte, maxCoreModules+1)...), "over 64 core modules"},
		"too large":      {make([]byte, maxComponentBytes+1), "over the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mainModule(c.component, exportHandle, exportRealloc, exportMemory)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestTruncatedComponentIsAnError(t *testing.T) {
	whole := asComponent(hostileModule)
	for n := range len(whole) {
		_, err := mainModule(whole[:n], exportHandle, exportRealloc, exportMemory)
		require.Error(t, err, "cut at %d", n)
	}
}

func TestInstrumentedModuleIsValid(t *testing.T) {
	for name, component := range map[string][]byte{"service": wasm.Component, "hostile": asComponent(hostileModule)} {
		t.Run(name, func(t *testing.T) {
			m, err := mainModule(component, exportHandle, exportRealloc, exportMemory)
			require.NoError(t, err)
			binary, err := m.Instrument()
			require.NoError(t, err)
			again, err := fuel.Parse(binary)
			require.NoError(t, err)
			require.Len(t, again.Mutable, len(m.Mutable)+2)
			require.True(t, again.Exports(fuel.ExportSteps, fuel.GlobalName(0)))
			_, err = again.Instrument()
			require.ErrorContains(t, err, "reserved name")
		})
	}
}

// FuzzComponent parses and instruments arbitrary bytes. A module that wazero accepts before it is
// instrumented must be accepted afterwards.
func FuzzComponent(f *testing.F) {
	f.Add(asComponent(hostileModule))
	f.Add(asComponent(coreModuleWith("wasi:io/poll@0.2.0", "poll", []byte{i32t, i32t, i32t})))
	f.Add(bytes.Clone(componentPreamble))
	config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(coreFeatures).WithMemoryLimitPages(64)
	f.Fuzz(func(t *testing.T, component []byte) {
		modules, err := coreModules(component)
		if err != nil {
			return
		}
		for _, binary := range modules {
			m, err := fuel.Parse(binary)
			if err != nil {
				continue
			}
			rewritten, err := m.Instrument()
			if err != nil {
				continue
			}
			runtime := wazero.NewRuntimeWithConfig(t.Context(), config)
			if _, err = runtime.CompileModule(t.Context(), binary); err == nil {
				_, err = runtime.CompileModule(t.Context(), rewritten)
				require.NoError(t, err)
			}
			require.NoError(t, runtime.Close(t.Context()))
		}
	})
}
