package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the test modules are made of (WebAssembly Core, section 5).
const (
	i32t          = 0x7f
	opEnd         = 0x0b
	opI32Const    = 0x41
	sectionImport = 2
	sectionExport = 7
	sectionStart  = 8
	sectionCode   = 10
	externFunc    = 0
)

var modulePreamble = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// coreModuleWith assembles a module with one imported function, of the parameters given
// and no result, and the exports that the engine calls.
func coreModuleWith(from, name string, params []byte) []byte {
	handle := []byte{0x60, 2, i32t, i32t, 0}
	realloc := []byte{0x60, 4, i32t, i32t, i32t, i32t, 1, i32t}
	imported := append([]byte{0x60, byte(len(params))}, append(bytes.Clone(params), 0)...)
	return assemble(
		part{1, vector(imported, handle, realloc)},
		part{sectionImport, vector(bytes.Join([][]byte{text(from), text(name), {externFunc, 0}}, nil))},
		part{3, []byte{2, 1, 2}},
		part{5, []byte{1, 0, 1}},
		part{sectionExport, vector(
			append(text(exportHandle), externFunc, 1),
			append(text(exportRealloc), externFunc, 2),
			append(text(exportMemory), 2, 0))},
		part{sectionCode, vector([]byte{2, 0, opEnd}, []byte{4, 0, opI32Const, 8, opEnd})},
	)
}

type part struct {
	id      byte
	content []byte
}

func assemble(parts ...part) []byte {
	module := bytes.Clone(modulePreamble)
	for _, p := range parts {
		module = append(module, p.id)
		module = appendU32(module, uint32(len(p.content)))
		module = append(module, p.content...)
	}
	return module
}

// appendU32 appends n in LEB128.
func appendU32(b []byte, n uint32) []byte { return binary.AppendUvarint(b, uint64(n)) }

func vector(elements ...[]byte) []byte {
	return append(appendU32(nil, uint32(len(elements))), bytes.Join(elements, nil)...)
}

func text(s string) []byte { return append(appendU32(nil, uint32(len(s))), s...) }

func newFrom(t *testing.T, module []byte) error {
	config := hostileConfig(t, newLedger())
	config.Component = asComponent(module)
	e, err := New(context.Background(), config)
	if err == nil {
		require.NoError(t, e.Close(context.Background()))
	}
	return err
}

func TestMissingLinksAreNamed(t *testing.T) {
	require.NoError(t, newFrom(t, coreModuleWith(ioPoll, "poll", []byte{i32t, i32t, i32t})))

	err := newFrom(t, coreModuleWith("wasi:filesystem/preopens@0.2.0", "get-directories", []byte{i32t}))
	require.ErrorContains(t, err, "import wasi:filesystem/preopens@0.2.0 get-directories is not served")

	err = newFrom(t, coreModuleWith(ioPoll, "poll", []byte{i32t}))
	require.ErrorContains(t, err, "import wasi:io/poll@0.2.0 poll is (i32) -> (), want (i32, i32, i32) -> ()")
}

func TestExportOfAnotherSignatureIsNamed(t *testing.T) {
	module := coreModuleWith(ioPoll, "poll", []byte{i32t, i32t, i32t})
	swapped := bytes.Replace(module, append(text(exportHandle), externFunc, 1), append(text(exportHandle), externFunc, 2), 1)
	err := newFrom(t, swapped)
	require.ErrorContains(t, err, "export wasi:http/incoming-handler@0.2.0#handle is (i32, i32, i32, i32) -> (i32), want (i32, i32) -> ()")
}

func TestModuleThatCannotBeRestoredIsRefused(t *testing.T) {
	module := coreModuleWith(ioPoll, "poll", []byte{i32t, i32t, i32t})
	upToCode, code := module[:bytes.LastIndex(module, []byte{sectionCode, 9})], module[bytes.LastIndex(module, []byte{sectionCode, 9}):]
	start := append(append(bytes.Clone(upToCode), sectionStart, 1, 1), code...)
	require.ErrorContains(t, newFrom(t, start), "start function")

	table := bytes.Replace(module, []byte{externFunc, 0, 3}, []byte{2, 0, 3}, 1)
	require.ErrorContains(t, newFrom(t, table), "is not a function")

	for name, code := range map[string][]byte{
		"table.set":  {opI32Const, 0, opI32Const, 0, 0x26, 0},
		"table.copy": {opI32Const, 0, opI32Const, 0, opI32Const, 0, 0xfc, 14, 0, 0},
		"data.drop":  {0xfc, 9, 0},
		"simd":       {0xfd, 12},
	} {
		body := append(append([]byte{0}, code...), opEnd)
		body = append([]byte{byte(len(body))}, body...)
		content := vector(body, []byte{4, 0, opI32Const, 8, opEnd})
		changed := append(append(bytes.Clone(upToCode), sectionCode, byte(len(content))), content...)
		require.ErrorContains(t, newFrom(t, changed), "is not supported", name)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no meter":         {func(c *Config) { c.Meter = nil }, "needs a meter"},
		"no instances":     {func(c *Config) { c.MaxInstances = -1 }, "at least one instance"},
		"too little":       {func(c *Config) { c.MemoryLimit = 100 }, "memory limit"},
		"less than needed": {func(c *Config) { c.MemoryLimit = pageSize }, "compile guest"},
		"no host":          {func(c *Config) { c.Variables[variableMeterURL] = "meter" }, "variable meter_url"},
		"a path":           {func(c *Config) { c.Variables[variableMeterURL] = "http://meter/v2" }, "scheme and a host only"},
	} {
		t.Run(name, func(t *testing.T) {
			config := hostileConfig(t, newLedger())
			c.change(&config)
			_, err := New(context.Background(), config)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestEveryImportThatIsNotServedIsNamed, not the first alone.
func TestEveryImportThatIsNotServedIsNamed(t *testing.T) {
	e := newEngine(t, hostileConfig(t, newLedger()))
	all := len(e.compiled.ImportedFunctions())
	require.Greater(t, all, 2)
	require.Len(t, wrongImports(e.compiled, nil), all)
	require.Empty(t, wrongImports(e.compiled, served()))
}
