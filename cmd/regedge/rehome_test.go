package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// run runs a command in dir and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

// TestTheModuleCanMove gives a copy of the tree another module path: all of it builds, its tests too, and
// go install makes a program that is called regedge.
func TestTheModuleCanMove(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles every package anew")
	}
	const moved = "git.example/some-one/registry"
	before := strings.TrimSpace(run(t, ".", "go", "list", "-m"))
	top, copied := filepath.Join("..", ".."), t.TempDir()
	run(t, copied, "git", "init", "-q")
	for _, name := range strings.Split(run(t, top, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		content, err := os.ReadFile(filepath.Join(top, name))
		if name == "" || os.IsNotExist(err) { // deleted, and not committed yet
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(copied, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(copied, name), content, 0o600))
	}
	run(t, copied, "git", "add", "--all")
	run(t, copied, "sh", "scripts/rehome.sh", moved)
	require.Equal(t, moved+"\n", run(t, copied, "go", "list", "-m"))
	require.Equal(t, moved+"/clients/go\n", run(t, filepath.Join(copied, "clients", "go"), "go", "list", "-m"))

	t.Setenv("GOBIN", filepath.Join(copied, "bin"))
	run(t, copied, "go", "install", moved+"/cmd/regedge")
	require.Contains(t, run(t, copied, filepath.Join(copied, "bin", "regedge"), "version"), "component sha256:")
	run(t, copied, "go", "build", "./...")
	tests := run(t, copied, "go", "list", "-test", "-e", "-f", "{{with .Error}}{{.}}{{end}}", "./...", "./testdata")
	require.Empty(t, strings.TrimSpace(tests), "imports that can't be found")
	left := exec.Command("git", "grep", "-InF", `"`+before+"/handler")
	left.Dir = copied
	out, _ := left.Output() // which fails where there is none
	require.Empty(t, string(out), "imports of the path from before")
}

// TestGoInstallTakesTheModule: it refuses a module with replacements or exclusions.
func TestGoInstallTakesTheModule(t *testing.T) {
	var module struct{ Replace, Exclude []json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(run(t, ".", "go", "mod", "edit", "-json")), &module))
	require.Empty(t, module.Replace)
	require.Empty(t, module.Exclude)
}
