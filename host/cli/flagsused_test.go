package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
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

// TestEachFlagIsHandedOn: one that is parsed and checked, and read by nothing else, would be set in vain. What doctor reads of
// the flags of a service does not count.
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
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	ignore := func(error) {} // of what the packages that were not read have
	_, _ = (&types.Config{Importer: emptyPackages{}, Error: ignore}).Check("cli", set, files, info)

	flags, read := flagsIn(files, info), map[types.Object]bool{}
	for _, file := range files {
		for _, declared := range file.Decls {
			d, ok := declared.(*ast.FuncDecl)
			if !ok || d.Name.Name == "Validate" || d.Name.Name == "check" {
				continue
			}
			doctors := d.Recv != nil && strings.HasPrefix(types.ExprString(d.Recv.List[0].Type), "*doctor")
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && info.Selections[s] != nil {
					field := info.Selections[s].Obj()
					read[field] = read[field] || !doctors || strings.HasPrefix(flags[field], "doctor") || flags[field] == "printFlag"
				}
				return true
			})
		}
	}
	require.Greater(t, len(flags), 150)
	// Of these it is enough to check that they stand in place of another one.
	alternatives := []string{"accountInvite.Operator", "keyAllow.Anywhere"}
	for field, of := range flags {
		if name := of + "." + field.Name(); !read[field] && !slices.Contains(alternatives, name) {
			t.Errorf("%s is parsed, and handed on to nothing", name)
		}
	}
}

// flagsIn returns the fields of flags and arguments, with the names of their structs.
func flagsIn(files []*ast.File, info *types.Info) map[types.Object]string {
	flags := map[types.Object]string{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			made, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if of, ok := made.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					if field.Tag != nil && len(field.Names) == 1 && strings.Contains(field.Tag.Value, `help:"`) && !strings.Contains(field.Tag.Value, `cmd:"`) {
						flags[info.Defs[field.Names[0]]] = made.Name.Name
					}
				}
			}
			return false
		})
	}
	return flags
}
