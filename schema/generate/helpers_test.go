package generate

import (
	"context"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// generated is a folder of made-up files, uncompressed.
func generated(t *testing.T, companies int) string {
	t.Helper()
	out := t.TempDir()
	_, err := Run(context.Background(), Config{Companies: companies, Seed: 42, Out: out, OlderShare: 0.2})
	require.NoError(t, err)
	return out
}

// folder is the content of each file in a folder.
func folder(t *testing.T, companies int, seed uint64, how Compression) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	_, err := Run(context.Background(), Config{Companies: companies, Seed: seed, Out: out, Compress: how, OlderShare: 0.2})
	require.NoError(t, err)
	files := map[string][]byte{}
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	for _, entry := range entries {
		files[entry.Name()], err = os.ReadFile(filepath.Join(out, entry.Name()))
		require.NoError(t, err)
	}
	return files
}

// textOf is the text of a plain file.
func textOf(t *testing.T, out, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(out, name))
	require.NoError(t, err)
	return string(content)
}

// companies are the rows of all files of format A, but LLPs and foreign companies.
func companies(t *testing.T, out string) []map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(out, "companies-*.csv"))
	require.NoError(t, err)
	var rows []map[string]string
	for _, name := range names {
		if base := filepath.Base(name); !strings.Contains(base, "2021") && !strings.Contains(base, "foreign") {
			rows = append(rows, readRows(t, out, base)...)
		}
	}
	return rows
}

// readRows are the rows of a plain file, by column.
func readRows(t *testing.T, out, name string) []map[string]string {
	t.Helper()
	file, err := os.Open(filepath.Join(out, name))
	require.NoError(t, err)
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err, name)
	var rows []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, column := range records[0] {
			row[column] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func requireReads(t *testing.T, r io.Reader, want []byte) {
	t.Helper()
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
