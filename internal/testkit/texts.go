package testkit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Texts returns the texts of the files that match patterns of filepath.Glob, by their paths. Each pattern must match some.
func Texts(t testing.TB, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			texts[file] = string(content)
		}
	}
	return texts
}
