// Package regedge_test holds the structure of the module against its rules
// (ARCHITECTURE.md, "Packages").
package regedge_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the path of the module, which make rehome changes.
var module = func() string {
	out, err := exec.Command("go", "list", "-m").Output()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(out))
}()

// handlerNever lists what the component cannot afford: reflection and all that brings it.
var handlerNever = []string{"reflect", "fmt", "net", "encoding/json", "database/sql"}

// mayImport lists which packages of this module a package may import: "a" is package a alone,
// "a/..." all packages below a as well. The longest folder that contains the package decides,
// for all packages below it, which may import one another too.
var mayImport = map[string][]string{
	"handler": {
		"handler/charge", "handler/directors", "handler/fastbytes", "handler/ident", "handler/names", "handler/network",
	},
	"handler/ident":     {"handler/fastbytes"},
	"handler/names":     {"handler/fastbytes"},
	"handler/charge":    {},
	"handler/directors": {"handler/fastbytes"},
	"handler/fastbytes": {},

	"wasm": {"handler", "handler/charge", "handler/fastbytes"},

	"schema":                 {"handler/ident"},
	"schema/extsort":         {},
	"schema/generate":        {"handler/ident"},
	"schema/search":          {"handler/fastbytes", "handler/names", "schema/extsort"},
	"schema/content":         {"schema/extsort"},
	"schema/verify":          {"handler/directors", "handler/names", "schema", "schema/search"},
	"schema/importer":        {"schema/extsort"},
	"schema/importer/record": {},
	"schema/importer/source": {"handler/ident", "schema/importer/record"},
	"schema/importer/merge":  {"schema/extsort", "schema/importer/record"},
	"schema/importer/load": {
		"handler/directors", "schema", "schema/content", "schema/importer/merge", "schema/importer/record", "schema/search",
	},
	"schema/sample": {"schema/importer", "testdata"},

	"replicate/metering":           {},
	"replicate/metering/bearer":    {},
	"replicate/metering/syncproto": {"handler/charge"},
	"replicate/metering/lease":     {"handler/charge", "replicate/metering/syncproto"},
	"replicate/metering/ledger":    {"handler/charge", "replicate/metering/syncproto"},
	"replicate/metering/journal":   {"replicate/metering/syncproto"},
	"replicate/metering/meter": {
		"handler/charge", "replicate/metering/bearer", "replicate/metering/journal",
		"replicate/metering/lease", "replicate/metering/syncproto",
	},
	"replicate/disk": {},
	"replicate/dial": {},
	"replicate/metering/writer": {
		"handler/charge", "handler/ident", "handler/network", "replicate/dial", "replicate/disk", "replicate/metering/ledger", "replicate/metering/syncproto",
		"replicate/registry/libsql", "schema",
	},
	"replicate/registry/freeport": {},
	"replicate/registry/libsql":   {"replicate/dial"},
	"replicate/registry/sqld":     {"replicate/dial", "replicate/registry/freeport", "replicate/registry/libsql"},
	"replicate/registry/push":     {"replicate/registry/libsql", "replicate/registry/sqld", "schema", "schema/content", "schema/search"},
	"replicate/heartbeat":         {"replicate/registry/libsql"},
	"replicate/notice":            {"handler/ident", "replicate/metering/ledger", "replicate/metering/syncproto"},
	"replicate/webhook":           {"replicate/notice"},
	"replicate/mail":              {"replicate/notice"},
	"replicate/dashboard": {
		"handler/charge", "handler/ident", "replicate/metering/ledger", "replicate/metering/syncproto",
		"replicate/mail", "replicate/metering/writer", "replicate/notice", "replicate/registry/push", "replicate/webhook",
		"web/...",
	},

	"cmd":          {"host/cli"},
	"host":         {"handler/...", "replicate/...", "schema/...", "wasm"},
	"host/hint":    {},
	"host/service": {},
	"host/units":   {},
	"host/doctor": {
		"host/pki", "replicate/dial", "replicate/disk", "replicate/metering/ledger", "replicate/metering/writer", "replicate/registry/libsql", "schema",
	},
	"host/pki":       {"replicate/registry/libsql"},
	"host/tracing":   {},
	"host/server":    {"handler", "handler/fastbytes", "handler/ident", "web"},
	"host/reference": {"handler/...", "web/..."},
	"host/sqlite":    {"handler", "schema"},
	"host/engine":    {"handler/...", "host/server", "wasm/..."},
	"host/edge": {
		"handler", "handler/charge", "host/engine", "host/hint", "host/server", "host/service", "host/sqlite",
		"replicate/...", "schema",
	},
	"host/devdata": {"handler/ident", "host/edge", "host/hint", "host/service", "replicate/...", "schema/..."},

	"web":      {},
	"testdata": {},
	"internal": {"handler/...", "host/...", "replicate/...", "schema/..."},
}

// neverImport lists what a folder must not import at all, directly or not.
var neverImport = map[string][]string{
	"schema/importer/record": {"database/sql", "github.com/ncruces/go-sqlite3"},
	"schema/importer/source": {"database/sql", "github.com/ncruces/go-sqlite3"},
	"schema/importer/merge":  {"database/sql", "github.com/ncruces/go-sqlite3"},
}

func TestHandlerStaysSmall(t *testing.T) {
	for _, dep := range goList(t, "{{join .Deps \"\\n\"}}", "./handler/...") {
		for _, never := range handlerNever {
			if dep == never || strings.HasPrefix(dep, never+"/") {
				t.Errorf("handler depends on %s, which the component cannot carry", dep)
			}
		}
		if !within(dep, []string{module}) && strings.Contains(strings.SplitN(dep, "/", 2)[0], ".") {
			t.Errorf("handler depends on %s: it may use the standard library only", dep)
		}
	}
}

func TestImportsPointOneWay(t *testing.T) {
	used := map[string]bool{}
	for _, line := range goList(t, "{{range .Imports}}{{$.ImportPath}} {{.}}\n{{end}}", "./...") {
		from, to, ok := strings.Cut(line, " ")
		if !ok || !strings.HasPrefix(to, module+"/") {
			continue
		}
		from, to = strings.TrimPrefix(from, module+"/"), strings.TrimPrefix(to, module+"/")
		folder := ruleOf(from)
		allowed := within(to, []string{folder})
		for _, entry := range mayImport[folder] {
			below, ok := strings.CutSuffix(entry, "/...")
			if to == entry || ok && within(to, []string{below}) {
				allowed, used[folder+" "+entry] = true, true
			}
		}
		if !allowed {
			t.Errorf("%s imports %s: %s may import %v", from, to, folder, mayImport[folder])
		}
	}
	for folder, entries := range mayImport {
		for _, entry := range entries {
			if !used[folder+" "+entry] {
				t.Errorf("%s may import %s and does not: delete it from mayImport", folder, entry)
			}
		}
	}
}

// TestTheArchitectureNamesWhatHandlerAndReplicateShare, so that whoever reads the rule can rely on it.
func TestTheArchitectureNamesWhatHandlerAndReplicateShare(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	rule := regexp.MustCompile("(?m)^- `handler` and `replicate` know nothing of each other but (.*)\\.$").FindSubmatch(text)
	require.NotNil(t, rule)
	var named []string
	for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllSubmatch(rule[1], -1) {
		named = append(named, "handler/"+string(name[1]))
	}
	shared := map[string]bool{}
	for folder, entries := range mayImport {
		for _, entry := range entries {
			handles, replicates := within(folder, []string{"handler"}), within(folder, []string{"replicate"})
			if replicates && within(entry, []string{"handler"}) || handles && within(entry, []string{"replicate"}) {
				shared[entry] = true
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(shared)), named)
}

// TestTheArchitectureNamesEachFolder at the top, so that nobody has to guess what one is for.
func TestTheArchitectureNamesEachFolder(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	out, err := exec.Command("git", "ls-tree", "-d", "--name-only", "HEAD").Output()
	if err != nil {
		t.Skip("needs git's list of the folders")
	}
	folders := strings.Fields(string(out))
	require.Greater(t, len(folders), 5)
	for _, folder := range folders {
		if !strings.HasPrefix(folder, ".") {
			named := regexp.MustCompile("`" + folder + "[`/]|\\]\\(" + folder + "/")
			require.True(t, named.Match(text), "ARCHITECTURE.md, \"Packages\": %s", folder)
		}
	}
}

// TestRulesNameFolders checks that no rule outlives its folder.
func TestRulesNameFolders(t *testing.T) {
	for _, folder := range slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(neverImport))) {
		require.DirExists(t, folder)
	}
}

// TestOnePackageNamesTheLibSQLDriver, so that it can be replaced there.
func TestOnePackageNamesTheLibSQLDriver(t *testing.T) {
	const imports = "{{range .Imports}}{{$.ImportPath}} {{.}}\n{{end}}{{range .TestImports}}{{$.ImportPath}} {{.}}\n{{end}}{{range .XTestImports}}{{$.ImportPath}} {{.}}\n{{end}}"
	for _, line := range goList(t, imports, "./...") {
		from, to, _ := strings.Cut(line, " ")
		if strings.HasPrefix(to, "github.com/tursodatabase/") && from != module+"/replicate/registry/libsql" {
			t.Errorf("%s imports %s: open libSQL databases by package libsql", from, to)
		}
	}
}

// TestOnePackageNamesTheTracesSDK: all others make spans through the interfaces of
// go.opentelemetry.io/otel/trace. gRPC, which the library's own way over HTTP brings
// with it, is not in the program.
func TestOnePackageNamesTheTracesSDK(t *testing.T) {
	for _, line := range goList(t, "{{range .Imports}}{{$.ImportPath}} {{.}}\n{{end}}", "./...") {
		from, to, _ := strings.Cut(line, " ")
		sends := within(to, []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "go.opentelemetry.io/proto"})
		if sends && !within(from, []string{module + "/host/tracing", module + "/internal"}) {
			t.Errorf("%s imports %s: make spans by what the configuration has", from, to)
		}
	}
	for _, dep := range goList(t, "{{join .Deps \"\\n\"}}", "./host") {
		if strings.HasPrefix(dep, "google.golang.org/grpc") {
			t.Errorf("the program has %s", dep)
		}
	}
}

// ruleOf returns the longest folder of mayImport that contains a package.
func ruleOf(path string) string {
	for path != "." {
		if _, ok := mayImport[path]; ok {
			return path
		}
		path = filepath.Dir(path)
	}
	return "nothing" // no package is in it, so that any import is refused
}

func TestPureFoldersStayPure(t *testing.T) {
	for folder, never := range neverImport {
		for _, dep := range goList(t, "{{join .Deps \"\\n\"}}", "./"+folder+"/...") {
			if within(dep, never) {
				t.Errorf("%s depends on %s", folder, dep)
			}
		}
	}
}

// TestEveryPackageSaysItsJob checks that every package begins with a sentence that says
// what it is for.
func TestEveryPackageSaysItsJob(t *testing.T) {
	for _, line := range goList(t, "{{.ImportPath}} {{.Name}} {{.Doc}}", "./...") {
		path, rest, _ := strings.Cut(line, " ")
		name, doc, _ := strings.Cut(rest, " ")
		if strings.HasPrefix(path, module+"/wasm/bindings/") || path == module {
			continue
		}
		want := "Package " + name + " "
		if name == "main" && path != module+"/wasm/guest" { // the guest is no command
			want = "Command "
		}
		if !strings.HasPrefix(doc, want) {
			t.Errorf("%s: the package comment begins with %q, want %q", path, doc, want)
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

// goList runs go list. It also stats every source file, so that the test cache drops the
// result when one changes.
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
