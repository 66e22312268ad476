package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDevThatIsStoppedEarlySaysSo, and nothing about what it was doing.
func TestDevThatIsStoppedEarlySaysSo(t *testing.T) {
	p := start("dev", "--listen", "127.0.0.1:0", "--writer-listen", "127.0.0.1:0", "--data", t.TempDir())
	require.Equal(t, exitFailure, p.halt())
	require.Equal(t, "regedge: stopped before it was ready\n", p.stderr.String())
}

// TestDevMakesNothingForARegistryThatIsNotThere: its name may be misspelt.
func TestDevMakesNothingForARegistryThatIsNotThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	code, said := ran("dev", "--listen", "127.0.0.1:0", "--writer-listen", "127.0.0.1:0", "--data", dir, "--registry", filepath.Join(t.TempDir(), "misspelt.db"))
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "misspelt.db")
	require.NoDirExists(t, dir)
}

// TestDevNamesTheProgramAsAShellFindsIt: a binary that was built or unpacked is seldom on the PATH.
func TestDevNamesTheProgramAsAShellFindsIt(t *testing.T) {
	elsewhere, onPath := filepath.Join(t.TempDir(), "regedge"), filepath.Join(t.TempDir(), "regedge")
	for _, file := range []string{elsewhere, onPath} {
		require.NoError(t, os.WriteFile(file, nil, 0o700))
	}
	t.Setenv("PATH", "")
	require.Equal(t, elsewhere, typedName(elsewhere))
	t.Setenv("PATH", filepath.Dir(onPath))
	require.Equal(t, elsewhere, typedName(elsewhere))
	require.Equal(t, "regedge", typedName(onPath))
	require.Equal(t, "go run ./host", typedName("/tmp/go-build1234/b001/exe/host"))
}
