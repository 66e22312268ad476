package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestABatchHoldsLittleText of long rows or documents, since it is in memory with all of it.
func TestABatchHoldsLittleText(t *testing.T) {
	const count, most = 17, 2*maxBatchBytes - 1
	for name, c := range map[string]struct {
		text string
		long int // bytes of each row or document
	}{
		"documents": {strings.Repeat(`{"companyData":{"cin":"x","a":"`+strings.Repeat("a", 1<<20)+`"}}`, count), 1 << 20},
		"rows": {"LLPIN,LLP Name,Founded,Status,Address\n" +
			strings.Repeat("AAB-1234,A LLP,2020-01-01,Active,"+strings.Repeat("a", 60_000)+"\n", 16*count), 60_000},
	} {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		read := 0
		file := NewFile(0, path, func(b *Batch) error {
			require.LessOrEqual(t, b.Read*c.long, most, name)
			read += b.Read
			return nil
		}, NewOffices())
		require.NoError(t, file.Open(context.Background(), nil, "2025-05-05"))
		defer file.Close()
		require.NoError(t, file.Read("2025-05-05"))
		require.Equal(t, len(c.text)/c.long, read, name)
	}
}
