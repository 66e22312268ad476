package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The interfaces that the engine implements.
const (
	httpTypes       = "wasi:http/types@0.2.0"
	httpOutgoing    = "wasi:http/outgoing-handler@0.2.0"
	ioError         = "wasi:io/error@0.2.0"
	ioPoll          = "wasi:io/poll@0.2.0"
	ioStreams       = "wasi:io/streams@0.2.0"
	wallClock       = "wasi:clocks/wall-clock@0.2.0"
	monotonicClock  = "wasi:clocks/monotonic-clock@0.2.0"
	randomInterface = "wasi:random/random@0.2.0"
	spinSQLite      = "fermyon:spin/sqlite@2.0.0"
	spinVariables   = "fermyon:spin/variables@2.0.0"
)

// The exports of the core module that the engine calls.
const (
	exportHandle     = "wasi:http/incoming-handler@0.2.0#handle"
	exportRealloc    = "cabi_realloc"
	exportMemory     = "memory"
	exportInitialize = "_initialize" // optional
)

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// function is one import that the engine implements, with its lowered signature. serve takes its
// parameters from stack and puts its result into stack[0]. Only the lower half of an i32's element
// is significant.
type function struct {
	module, name    string
	params, results []api.ValueType
	serve           func(i *instance, stack []uint64)
}

// define makes a function. signature has the types of parameters and result, such as "iiI:i", with i
// for i32 and I for i64.
func define(module, name, signature string, serve func(*instance, []uint64)) function {
	params, results, _ := strings.Cut(signature, ":")
	return function{module, name, valueTypes(params), valueTypes(results), serve}
}

func valueTypes(letters string) []api.ValueType {
	types := make([]api.ValueType, len(letters))
	for n := range letters {
		types[n] = i32
		if letters[n] == 'I' {
			types[n] = i64
		}
	}
	return types
}

// drop is the import that drops a resource of kind k.
func drop(module string, k kind) function {
	return define(module, "[resource-drop]"+k.String(), "i:", func(i *instance, stack []uint64) {
		i.remove(uint32(stack[0]), k)
	})
}

func served() []function {
	return slices.Concat(typesImports(), outgoingImports(), ioImports(), clockImports(),
		sqliteImports(), variableImports())
}

// Call implements api.GoFunction. It traps outside a request, and within another call, when the
// guest runs in its cabi_realloc.
func (f *function) Call(ctx context.Context, stack []uint64) {
	i, ok := ctx.(*instance)
	if !ok || !i.mayCall {
		trap("%s %s was called out of turn", f.module, f.name)
	}
	if i.calls++; i.calls > maxCalls {
		trap("over %d calls of the host", maxCalls)
	}
	f.serve(i, stack)
}

// maxCalls bounds the calls of the host in one request. A lookup makes 32.
const maxCalls = 10_000

// serveImports instantiates host modules with the functions.
func serveImports(ctx context.Context, runtime wazero.Runtime, functions []function) error {
	modules := map[string]wazero.HostModuleBuilder{}
	for n := range functions {
		f := &functions[n]
		m, ok := modules[f.module]
		if !ok {
			m = runtime.NewHostModuleBuilder(f.module)
			modules[f.module] = m
		}
		m.NewFunctionBuilder().WithGoFunction(f, f.params, f.results).WithName(f.name).Export(f.name)
	}
	for name, m := range modules {
		if _, err := m.Instantiate(ctx); err != nil {
			return fmt.Errorf("serve %s: %w", name, err)
		}
	}
	return nil
}

// checkLinks returns an error that names every import and export of the module that does not fit: not
// implemented here, missing there, or of another signature.
func checkLinks(module wazero.CompiledModule, functions []function) error {
	wrong := append(wrongImports(module, functions), wrongExports(module)...)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("component does not fit this host:\n  %s", strings.Join(wrong, "\n  "))
}

func wrongImports(module wazero.CompiledModule, functions []function) []string {
	var wrong []string
	for _, d := range module.ImportedFunctions() {
		from, name, _ := d.Import()
		n := slices.IndexFunc(functions, func(f function) bool { return f.module == from && f.name == name })
		if n < 0 {
			wrong = append(wrong, fmt.Sprintf("import %s %s is not served", from, name))
			continue
		}
		if got, want := signature(d.ParamTypes(), d.ResultTypes()), functions[n].signature(); got != want {
			wrong = append(wrong, fmt.Sprintf("import %s %s is %s, want %s", from, name, got, want))
		}
	}
	return wrong
}

func wrongExports(module wazero.CompiledModule) []string {
	var wrong []string
	for _, want := range []function{
		define("", exportHandle, "ii:", nil),
		define("", exportRealloc, "iiii:i", nil),
		define("", exportInitialize, ":", nil),
	} {
		d, ok := module.ExportedFunctions()[want.name]
		switch {
		case !ok && want.name != exportInitialize:
			wrong = append(wrong, fmt.Sprintf("export %s is missing", want.name))
		case ok && signature(d.ParamTypes(), d.ResultTypes()) != want.signature():
			wrong = append(wrong, fmt.Sprintf("export %s is %s, want %s", want.name,
				signature(d.ParamTypes(), d.ResultTypes()), want.signature()))
		}
	}
	if _, ok := module.ExportedMemories()[exportMemory]; !ok {
		wrong = append(wrong, fmt.Sprintf("export %s is missing, or no memory", exportMemory))
	}
	return wrong
}

func (f function) signature() string { return signature(f.params, f.results) }

func signature(params, results []api.ValueType) string {
	return "(" + typeNames(params) + ") -> (" + typeNames(results) + ")"
}

func typeNames(types []api.ValueType) string {
	names := make([]string, len(types))
	for n, t := range types {
		names[n] = api.ValueTypeName(t)
	}
	return strings.Join(names, ", ")
}
