package generate

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
)

// official are the real files, where a checkout has them beside it.
const official = "../../../shared/data/companies/datagov-rocwise-2025"

func TestNamesAreLikeTheRealOnes(t *testing.T) {
	real := realNames(t)
	var made []string
	for _, row := range companies(t, generated(t, enough)) {
		made = append(made, row["CompanyName"])
	}
	require.InDelta(t, mean(real, nameLength), mean(made, nameLength), 2)
	require.InDelta(t, mean(real, wordCount), mean(made, wordCount), 0.3)
	for _, word := range []string{"LIMITED", "PRIVATE", "SERVICES", "SOLUTIONS", "TECHNOLOGIES", "AND", "PVT", "(OPC)"} {
		has := func(name string) float64 {
			if slices.Contains(strings.Fields(name), word) {
				return 1
			}
			return 0
		}
		require.InDelta(t, mean(real, has), mean(made, has), 0.04, word)
	}
}

func nameLength(name string) float64 { return float64(len(name)) }
func wordCount(name string) float64  { return float64(len(strings.Fields(name))) }

func mean(names []string, of func(string) float64) float64 {
	sum := 0.0
	for _, name := range names {
		sum += of(name)
	}
	return sum / float64(len(names))
}

func realNames(t *testing.T) (names []string) {
	t.Helper()
	for _, record := range realRows(t) {
		names = append(names, record[1])
	}
	return names
}

// realRows are the rows of all official files. The test is skipped without them.
func realRows(t *testing.T) (rows [][]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(official, "*.csv.gz"))
	require.NoError(t, err)
	if len(paths) == 0 {
		t.Skip("the official files are not here: nothing is compared with them")
	}
	for _, path := range paths {
		file, err := os.Open(path)
		require.NoError(t, err)
		plain, err := gzip.NewReader(file)
		require.NoError(t, err)
		records, err := csv.NewReader(plain).ReadAll()
		require.NoError(t, err)
		rows = append(rows, records[1:]...)
		require.NoError(t, file.Close())
	}
	return rows
}
