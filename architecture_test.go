// Package regedge_test holds the structure of the module against its rules
// (ARCHITECTURE.md, "Packages").
package regedge_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// handlerNever lists what the component cannot afford: reflection and all that brings it.
var handlerNever = []string{"reflect", "fmt", "net", "encoding/json", "database/sql"}

// mayImport says which folders of the module each folder may use besides itself.
var mayImport = map[string][]string{
	"handler":   {},
	"wasm":      {"handler"},
	"schema":    {"handler/ident", "handler/names", "handler/directors"},
	"replicate": {"schema", "handler/ident", "handler/charge", "web"},
	"web":       {},
	"testdata":  {"schema", "handler", "replicate"},
}

// mayNotImport says which packages of one folder stay apart: what an edge decides and what
// the writer decides share only the messages between them.
var mayNotImport = map[string][]string{
	"replicate/metering/syncproto": {"replicate/metering/lease", "replicate/metering/ledger"},
	"replicate/metering/lease":     {"replicate/metering/ledger"},
	"replicate/metering/ledger":    {"replicate/metering/lease"},
}

func TestHandlerStaysSmall(t *testing.T) {
	for _, dep := range goList(t, "{{join .Deps \"\\n\"}}", "./handler/...") {
		for _, never := range handlerNever {
			if dep == never || strings.HasPrefix(dep, never+"/") {
				t.Errorf("handler depends on %s, which the component cannot carry", dep)
			}
		}
		if strings.Contains(strings.SplitN(dep, "/", 2)[0], ".") {
			t.Errorf("handler depends on %s: it may use the standard library only", dep)
		}
	}
}

func TestImportsPointOneWay(t *testing.T) {
	for _, line := range goList(t, "{{range .Imports}}{{$.ImportPath}} {{.}}\n{{end}}", "./...") {
		from, to, ok := strings.Cut(line, " ")
		if !ok || !strings.HasPrefix(to, "regedge/") {
			continue
		}
		from, to = strings.TrimPrefix(from, "regedge/"), strings.TrimPrefix(to, "regedge/")
		if within(to, mayNotImport[from]) {
			t.Errorf("%s imports %s: it may not import %v", from, to, mayNotImport[from])
		}
		folder, _, _ := strings.Cut(from, "/")
		allowed, ruled := mayImport[folder]
		if !ruled || folder == strings.SplitN(to, "/", 2)[0] {
			continue
		}
		if !within(to, allowed) {
			t.Errorf("%s imports %s: %s may import %v", from, to, folder, allowed)
		}
	}
}

func within(path string, folders []string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}

// goList asks the go command. Its result is kept by the test cache only while no source
// changes: that is what the sources are looked at for.
func goList(t *testing.T, format, pattern string) []string {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (path == ".git" || path == "build" || path == "data") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			_, err = os.Stat(path)
		}
		return err
	}))
	out, err := exec.Command("go", "list", "-f", format, pattern).Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Greater(t, len(lines), 3, "go list found nothing")
	return lines
}
