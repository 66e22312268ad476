package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	committed = "../../testdata/registry"
	official  = "../../../shared/data"
)

func TestTheMadeUpFilesAreWhatThisProgramWrites(t *testing.T) {
	out := t.TempDir()
	copyFile(t, out, "companies-2025.csv.gz")
	require.NoError(t, run("", out))
	requireCommitted(t, out, 10)
}

func TestTheRealFilesAreWhatThisProgramPicks(t *testing.T) {
	if _, err := os.Stat(official); err != nil {
		t.Skip("the official files are not here: the real files of the sample are taken as they are")
	}
	out := t.TempDir()
	require.NoError(t, run(official, out))
	requireCommitted(t, out, 14)
}

func TestWithoutRealCompaniesItSaysWhatToDo(t *testing.T) {
	require.ErrorContains(t, run("", t.TempDir()), "run once with -data")
}

func TestHomesAreRecognised(t *testing.T) {
	for address, want := range map[string]bool{
		"C/O A PERSON,AIZAWL":            true,
		"C/OAPERSON,AIZAWL":              true,
		"S / o a person":                 true,
		"H NO 10, A ROAD":                true,
		"H.No. 4":                        true,
		"HOUSE 7":                        true,
		"a residential flat":             true,
		"Dr A Person's Building":         true,
		"PLOT NO. 35, INDUSTRIAL ESTATE": false,
		"OFFICE 4, DREAM TOWER":          false,
	} {
		require.Equal(t, want, personal([]string{"U74999SK2016PTC000000", address}), address)
	}
	require.True(t, personal([]string{"U74999SK2016OPC000000", "PLOT NO. 35"}))
}

// requireCommitted compares the files in folder with the committed ones, unpacked: how
// they are packed may change with the compiler.
func requireCommitted(t *testing.T, folder string, files int) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, files)
	for _, entry := range entries {
		require.Equal(t, unpacked(t, committed, entry.Name()), unpacked(t, folder, entry.Name()),
			"%s differs: run go run ./internal/sample", entry.Name())
	}
}

func unpacked(t *testing.T, folder, name string) []string {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return strings.Split(string(data), "\n")
}

func copyFile(t *testing.T, folder, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(committed, name))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
}
