package regedge_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRowsAreReadToTheirEnd: a function that goes through rows in a loop asks for the error behind it, without
// which a result that broke off looks whole, and closes the rows, also when it leaves the loop early.
func TestRowsAreReadToTheirEnd(t *testing.T) {
	loops := 0
	eachFunction(t, func(where string, function *ast.FuncDecl) {
		for _, rows := range loopedRows(function.Body) {
			loops++
			require.True(t, calls(function.Body, rows, "Err"), "%s: %s.Err() is not asked", where, rows)
			ofSorter := calls(function.Body, rows, "Key") // which closes them itself
			require.True(t, ofSorter || calls(function.Body, rows, "Close"), "%s: %s.Close() is not called", where, rows)
		}
	})
	require.Greater(t, loops, 15)
}

// TestStepsOfStatementsAreAskedForTheirErrors: Step reports false at the end of the rows, and also where they broke off.
func TestStepsOfStatementsAreAskedForTheirErrors(t *testing.T) {
	statements := 0
	eachFunction(t, func(where string, function *ast.FuncDecl) {
		stepped, asked, dropped := map[string]bool{}, map[string]bool{}, map[ast.Node]bool{}
		ast.Inspect(function.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ExprStmt:
				dropped[n.X] = true
			case *ast.DeferStmt:
				dropped[n.Call] = true
			case *ast.CallExpr: // visited after the statement that it is
				chosen, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || len(n.Args) > 0 {
					break
				}
				of, method := types.ExprString(chosen.X), chosen.Sel.Name
				stepped[of] = stepped[of] || method == "Step"
				asked[of] = asked[of] || !dropped[n] && (method == "Err" || method == "Reset")
			}
			return true
		})
		for of, steps := range stepped {
			if steps && !strings.HasPrefix(where, "internal") {
				statements++
				require.True(t, asked[of], "%s: neither %s.Err() nor %[2]s.Reset() is asked", where, of)
			}
		}
	})
	require.Greater(t, statements, 20)
}

// TestSecretsAreComparedInConstantTime where a client sends one: else the time tells how much of it is right. No other
// test sees the difference.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	var found []string
	eachFunction(t, func(where string, function *ast.FuncDecl) {
		if calls(function.Body, "subtle", "ConstantTimeCompare") {
			file, _, _ := strings.Cut(where, ":")
			found = append(found, filepath.ToSlash(file)+" "+function.Name.Name)
		}
	})
	require.ElementsMatch(t, []string{
		"host/engine/meter.go admits", "replicate/dashboard/code.go stepOf", "replicate/dashboard/lane.go matches",
		"replicate/metering/bearer/bearer.go In", "replicate/metering/writer/roles.go operatorOf",
	}, found)
}

// TestSettingsAreUsed: a field of a package's Config that is not read would do nothing, which nobody would notice who leaves it at
// its default. For flags see TestEachFlagIsHandedOn in host/cli.
func TestSettingsAreUsed(t *testing.T) {
	settings := map[string][]string{} // by folder
	used := map[string]bool{}         // by folder and name
	eachFile(t, func(path string, _ *token.FileSet, file *ast.File) {
		folder, set := filepath.ToSlash(filepath.Dir(path)), map[ast.Node]bool{}
		for _, declared := range file.Decls {
			function, _ := declared.(*ast.FuncDecl)
			checks := function != nil && (function.Name.Name == "Validate" || function.Name.Name == "check")
			ast.Inspect(declared, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for _, to := range n.Lhs { // which sets it
						if field, ok := to.(*ast.SelectorExpr); ok {
							set[field] = true
						}
					}
				case *ast.SelectorExpr:
					if set[n] {
						break
					}
					used[folder+" "+n.Sel.Name] = used[folder+" "+n.Sel.Name] || !checks
				case *ast.TypeSpec:
					settings[folder] = append(settings[folder], settingsOf(n)...)
				}
				return true
			})
		}
	})
	delete(settings, "web/apidoc") // which its template reads
	found := 0
	for folder, names := range settings {
		for _, name := range names {
			found++
			require.True(t, used[folder+" "+name], "%s: nothing reads %s", folder, name)
		}
	}
	require.Greater(t, found, 200)
}

// settingsOf returns the fields of a Config (ReplicaConfig, too).
func settingsOf(declared *ast.TypeSpec) (names []string) {
	shape, ok := declared.Type.(*ast.StructType)
	if !ok || !strings.HasSuffix(declared.Name.Name, "Config") {
		return nil
	}
	for _, field := range shape.Fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// eachFunction passes the functions of the module to visit, but for those of tests.
func eachFunction(t *testing.T, visit func(where string, function *ast.FuncDecl)) {
	t.Helper()
	eachFile(t, func(_ string, files *token.FileSet, file *ast.File) {
		for _, declared := range file.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok && function.Body != nil {
				visit(files.Position(function.Pos()).String(), function)
			}
		}
	})
}

// eachFile passes the source files of the module to visit, but for tests.
func eachFile(t *testing.T, visit func(path string, files *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && (entry.Name() == "node_modules" || entry.Name() == "build") {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err == nil {
			visit(path, files, file)
		}
		return err
	})
	require.NoError(t, err)
}

// loopedRows are the variables x of the loops "for x.Next()".
func loopedRows(body ast.Node) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		loop, ok := n.(*ast.ForStmt)
		if !ok || loop.Init != nil {
			return true
		}
		if variable, method := methodOf(loop.Cond); method == "Next" {
			names = append(names, variable)
		}
		return true
	})
	return names
}

// calls reports whether a function calls a method of a variable.
func calls(body ast.Node, variable, method string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			of, called := methodOf(e)
			found = found || of == variable && called == method
		}
		return !found
	})
	return found
}

// methodOf returns the parts of a call "variable.method(…)", empty for anything else.
func methodOf(e ast.Expr) (variable, method string) {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return "", ""
	}
	chosen, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if of, ok := chosen.X.(*ast.Ident); ok {
		return of.Name, chosen.Sel.Name
	}
	return "", ""
}
