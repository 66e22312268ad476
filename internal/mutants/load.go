package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// listed is the output of go list for a package.
type listed struct {
	Dir, ImportPath, Export, Name string
	GoFiles                       []string
	variables                     map[string][]edit // by file: constants that become variables
}

// locate returns the folder and the import path of a package.
func locate(folder string) (dir, importPath string, err error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}\n{{.ImportPath}}", folder).Output()
	if err != nil {
		return "", "", fmt.Errorf("list %s: %w", folder, err)
	}
	dir, importPath, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return dir, importPath, nil
}

// load finds the mutants of a package.
func load(folder string) (listed, []*mutant, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,Name,GoFiles", folder).Output()
	if err != nil {
		return listed{}, nil, fmt.Errorf("list %s: %w", folder, err)
	}
	exports := map[string]string{}
	var last listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return last, nil, err
		}
		exports[p.ImportPath] = p.Export
		last = p // the package itself comes after what it imports
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range last.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(last.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return last, nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	pkg, err := (&types.Config{Importer: imports}).Check(last.ImportPath, fset, files, info)
	if err != nil {
		return last, nil, err
	}
	var found []*mutant
	last.variables = map[string][]edit{}
	next := 0
	for i, syntax := range files {
		name := last.GoFiles[i]
		source, err := os.ReadFile(filepath.Join(last.Dir, name))
		if err != nil {
			return last, nil, err
		}
		for _, planted := range []bool{false, true} {
			f := &file{
				fset: fset, info: info, pkg: pkg, syntax: syntax, name: name, source: string(source),
				lines: strings.Split(string(source), "\n"), imports: importNames(pkg, syntax), next: &next, planted: planted,
			}
			found = append(found, f.find()...)
			last.variables[name] = f.variables()
		}
	}
	return last, found, nil
}

func importNames(pkg *types.Package, syntax *ast.File) map[string]string {
	byPath := map[string]string{}
	for _, p := range pkg.Imports() {
		byPath[p.Path()] = p.Name()
	}
	names := map[string]string{}
	for _, s := range syntax.Imports {
		path, _ := strconv.Unquote(s.Path.Value)
		names[path] = byPath[path]
		if s.Name != nil {
			names[path] = s.Name.Name
		}
	}
	return names
}
