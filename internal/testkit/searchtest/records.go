package searchtest

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Record is a company or an LLP: CIN or LLPIN, name and status.
type Record struct{ Value, Name, Status string }

const (
	cinLen   = 21
	llpinLen = 8
)

// Sample returns the companies and LLPs of testdata/registry.
func Sample(t testing.TB) []Record {
	t.Helper()
	folder := filepath.Join(Root(t), "testdata", "registry")
	list := read(t, filepath.Join(folder, "companies-2025.csv.gz"), 11)
	list = append(list, read(t, filepath.Join(folder, "made-up-companies.csv.gz"), 11)...)
	return append(list, read(t, filepath.Join(folder, "made-up-llps.csv.gz"), 2)...)
}

// Real returns the companies of ../shared/data, none if that folder does not exist.
func Real(t testing.TB) []Record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(t), "../shared/data/companies/datagov-rocwise-2025/*.csv.gz"))
	require.NoError(t, err)
	seen := make(map[string]bool)
	var list []Record
	for _, name := range files {
		for _, r := range read(t, name, 11) {
			if !seen[r.Value] {
				seen[r.Value] = true
				list = append(list, r)
			}
		}
	}
	return list
}

// Others returns companies of ../shared/data that Real does not have: those of older and damaged
// files, none if that folder does not exist.
func Others(t testing.TB) []Record {
	t.Helper()
	folder := filepath.Join(Root(t), "../shared/data/companies")
	var list []Record
	if name := filepath.Join(folder, "excel-resaved", "Delhi.csv.gz"); exists(name) {
		list = read(t, name, 11)
	}
	older, err := filepath.Glob(filepath.Join(folder, "datagov-statewise-2021", "*.csv.gz"))
	require.NoError(t, err)
	for _, name := range older {
		list = append(list, read(t, name, 2)...)
	}
	seen := make(map[string]bool)
	for _, r := range Real(t) {
		seen[r.Value] = true
	}
	return slices.DeleteFunc(list, func(r Record) bool {
		known := seen[r.Value]
		seen[r.Value] = true
		return known
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Root returns the folder of the module.
func Root(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		require.NotEqual(t, parent, folder, "no go.mod above the test")
		folder = parent
	}
}

// read reads a gzip-compressed CSV file with a header: the number and the name, its first columns, and the status in another.
func read(t testing.TB, path string, status int) []Record {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	rows := csv.NewReader(z)
	rows.ReuseRecord = true
	var list []Record
	for line := 0; ; line++ {
		row, err := rows.Read()
		if err == io.EOF {
			return list
		}
		require.NoError(t, err, path)
		if n := len(row[0]); line == 0 || n != cinLen && n != llpinLen {
			continue
		}
		r := Record{row[0], row[1], "INACTIVE"}
		if strings.EqualFold(row[status], "active") {
			r.Status = "ACTIVE"
		}
		list = append(list, r)
	}
}
