// Package sampletest gives tests the embedded sample as a registry database, and names those
// of its records that are examples of something.
package sampletest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/schema/sample"
)

// importedAt is last_updated of every record.
var importedAt = time.Date(2025, 5, 6, 4, 30, 0, 0, time.UTC)

// content is the registry file, imported once a process.
var content = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "regedge-sample-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "registry.db")
	if _, err := sample.Import(context.Background(), path, func() time.Time { return importedAt }); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Registry writes the sample's registry to a file that is removed with the test, and returns
// its path. All copies of a process are the same; their last_updated is 2025-05-06T04:30:00Z.
func Registry(t testing.TB) string {
	t.Helper()
	data, err := content()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "registry.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}
