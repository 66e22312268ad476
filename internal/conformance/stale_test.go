package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// logStale explains in advance why vectors fail if the component was not rebuilt: go test shows
// the line above their failures, and hides it if none fails.
func logStale(t *testing.T) {
	t.Helper()
	changed, err := StaleSource("../..")
	if err != nil {
		t.Errorf("compare wasm/registry.wasm with its sources: %v", err)
	} else if changed != "" {
		t.Logf("wasm/registry.wasm is older than %s: run make wasm", changed)
	}
}

func TestASourceThatChangedSinceTheBuildIsNamed(t *testing.T) {
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing changed":       {map[string]string{"handler/a.go": "hello", "wasm/guest/b.go": "hello"}, ""},
		"a file changed":        {map[string]string{"handler/a.go": "hello!", "wasm/guest/b.go": "hello"}, "handler/a.go"},
		"a file is new":         {map[string]string{"handler/a.go": "hello", "wasm/guest/b.go": "hello", "handler/names/c.go": ""}, "handler/names/c.go"},
		"a file is gone":        {map[string]string{"handler/a.go": "hello"}, "wasm/guest/b.go"},
		"tests are not sources": {map[string]string{"handler/a.go": "hello", "wasm/guest/b.go": "hello", "handler/a_test.go": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, folder := range []string{"handler/names", "wasm/guest", "wasm/labels"} {
				require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
			}
			for path, content := range test.files {
				require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(content), 0o644))
			}
			hashes := hello + "  handler/a.go\n" + hello + "  wasm/guest/b.go\n"
			require.NoError(t, os.WriteFile(filepath.Join(root, sourceHashes), []byte(hashes), 0o644))
			got, err := StaleSource(root)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// TestTheComponentHasItsSourceHashes checks that wasm/build.sh and StaleSource look at the same
// files.
func TestTheComponentHasItsSourceHashes(t *testing.T) {
	built, err := readHashes(filepath.Join("../..", sourceHashes))
	require.NoError(t, err)
	for path := range built {
		require.True(t, isSource(path), path)
	}
	require.Contains(t, built, "handler/handler.go")
	require.Contains(t, built, "wasm/guest/main.go")
	require.Contains(t, built, "wasm/labels/doc.go")
}
