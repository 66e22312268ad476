package wasm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/wasm"
)

// TestComponentTargetsSpin checks with wasm-tools that the component fits the world that Spin
// serves (testdata/http-trigger), including the signatures of all functions.
func TestComponentTargetsSpin(t *testing.T) {
	wasmTools := buildWasmTools(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "wit"), os.DirFS("testdata/http-trigger")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "registry.wasm"), wasm.Component, 0o600))
	targets := func() (string, error) {
		cmd := exec.Command(wasmTools, "component", "targets", "--world", "http-trigger", "wit", "registry.wasm")
		cmd.Dir = dir // wasm-tools sees only its working directory
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := targets()
	require.NoError(t, err, out)

	for _, change := range []struct{ name, old, new string }{
		{"lacks an interface", "  import wasi:random/random@0.2.0;\n", ""},
		{"has another signature", "get: func(name: string) -> result<string, error>;", "get: func(name: u32) -> result<string, error>;"},
	} {
		t.Run("and not a world that "+change.name, func(t *testing.T) {
			path := filepath.Join(dir, "wit", "world.wit")
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(text), change.old)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), change.old, change.new, 1)), 0o600))
			_, err = targets()
			require.Error(t, err)
			require.NoError(t, os.WriteFile(path, text, 0o600))
		})
	}
}

// buildWasmTools builds the pinned wasm-tools of the nested module. It skips the test if the
// module cannot be downloaded.
func buildWasmTools(t *testing.T) string {
	t.Helper()
	download := exec.Command("go", "mod", "download", "go.bytecodealliance.org")
	download.Dir = "tools"
	if out, err := download.CombinedOutput(); err != nil {
		testkit.MissingTool(t, "wasm-tools cannot be downloaded: ", err, "\n", string(out))
	}
	path := filepath.Join(t.TempDir(), "wasm-tools")
	build := exec.Command("go", "build", "-o", path, "go.bytecodealliance.org/internal/cmd/wasm-tools")
	build.Dir = "tools"
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}
