package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// emptyPackages imports empty packages: the fields of this package's own structs are known without the others.
type emptyPackages struct{}

func (emptyPackages) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// TestEachFlagIsHandedOn: one that a command parses and checks, and that nothing reads which its Run calls, would be set in vain.
// The commands of doctor take flags of services that say nothing to them.
func TestEachFlagIsHandedOn(t *testing.T) {
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	set, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	ignore := func(error) {} // of what is missing in the packages that were not read
	read, _ := (&types.Config{Importer: emptyPackages{}, Error: ignore}).Check("cli", set, files, info)

	uses := map[types.Object][]types.Object{} // of each function
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				ast.Inspect(f, func(n ast.Node) bool {
					if name, ok := n.(*ast.Ident); ok && info.Uses[name] != nil {
						uses[info.Defs[f.Name]] = append(uses[info.Defs[f.Name]], info.Uses[name])
					}
					return true
				})
			}
		}
	}
	checked := []string{"accountInvite.Operator", "keyAllow.Anywhere", "meterCommand.BehindTLS"} // which is all that they are for
	found := 0
	for _, name := range read.Scope().Names() {
		run, _, _ := types.LookupFieldOrMethod(types.NewPointer(read.Scope().Lookup(name).Type()), true, read, "Run")
		if _, ok := run.(*types.Func); !ok || strings.HasPrefix(name, "doctor") {
			continue
		}
		reached := map[types.Object]bool{}
		reach(run, uses, reached)
		for _, flag := range flagsIn(read.Scope().Lookup(name).Type()) {
			found++
			if !reached[flag] && !slices.Contains(checked, name+"."+flag.Name()) {
				t.Errorf("%s.%s is parsed, and handed on to nothing", name, flag.Name())
			}
		}
	}
	require.Greater(t, found, 300)
}

// reach notes what a function uses, and what the functions do that it calls.
func reach(at types.Object, uses map[types.Object][]types.Object, reached map[types.Object]bool) {
	if !reached[at] {
		reached[at] = true
		for _, used := range uses[at] {
			reach(used, uses, reached)
		}
	}
}

// flagsIn returns the flags and arguments of a command, with those of the structs that it embeds.
func flagsIn(command types.Type) (flags []*types.Var) {
	of, ok := command.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for i := range of.NumFields() {
		if of.Field(i).Embedded() {
			flags = append(flags, flagsIn(of.Field(i).Type())...)
		} else if reflect.StructTag(of.Tag(i)).Get("help") != "" {
			flags = append(flags, of.Field(i))
		}
	}
	return flags
}
