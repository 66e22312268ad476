//go:build unix

package importer

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPipeIsOpenedOnce: what was read from it to recognise its format is gone the second time, and nobody may write
// to it again.
func TestAPipeIsOpenedOnce(t *testing.T) {
	w := newFixture(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	written := make(chan error, 1)
	go func() {
		in, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err == nil {
			_, err = in.WriteString(gzipped(manyCompanies(5000)))
			err = errors.Join(err, in.Close())
		}
		written <- err
	}()
	report := w.run("2025-05-05", pipe)
	require.NoError(t, <-written)
	require.EqualValues(t, 5000, report.Files[0].Read)
}
