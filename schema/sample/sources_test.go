package sample_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/internal/testkit/sampletest"
	"regedge/schema/sample"
	"regedge/testdata"
)

// mostBytes keeps the program that embeds the sample small.
const mostBytes = 300_000

func TestEveryEmbeddedFileIsListedAndSmall(t *testing.T) {
	listed := map[string]bool{sample.Pincodes: true, sample.Irregular: true}
	for _, source := range sample.Sources() {
		_, err := time.Parse(time.DateOnly, source.AsOf)
		require.NoError(t, err)
		require.False(t, listed[source.Name], source.Name)
		listed[source.Name] = true
	}
	entries, err := fs.ReadDir(testdata.Registry(), ".")
	require.NoError(t, err)
	require.Len(t, entries, len(listed))
	var size int64
	for _, entry := range entries {
		require.True(t, listed[entry.Name()], entry.Name())
		info, err := entry.Info()
		require.NoError(t, err)
		size += info.Size()
	}
	require.Less(t, size, int64(mostBytes))
}

func TestRealCompaniesAreOfNoPerson(t *testing.T) {
	for _, name := range []string{"companies-2025.csv.gz", "companies-2025-resaved.csv.gz", "companies-2021.csv.gz", "companies-2021-variant.csv.gz"} {
		rows := rowsOf(t, name)
		require.NotEmpty(t, rows)
		for _, row := range rows {
			cin, ok := ident.CIN(row[0])
			require.True(t, ok, row[0])
			require.NotEqual(t, "OPC", cin[12:15])
			require.NotContains(t, strings.Join(row, "\n"), "One Person")
			require.NotContains(t, strings.ToUpper(strings.Join(row, "\n")), "C/O")
		}
	}
}

func TestMadeUpRowsSaySo(t *testing.T) {
	const mark = "(MADE-UP)"
	for name, column := range map[string]int{"made-up-companies.csv.gz": 1, "made-up-directors.csv.gz": 1, "made-up-partners.csv.gz": 2,
		"made-up-llps.csv.gz": 1, "made-up-llps-monthly.csv.gz": 1} {
		for _, row := range rowsOf(t, name) {
			require.Contains(t, row[column], mark, name)
		}
	}
	for _, row := range rowsOf(t, "made-up-contacts.csv.gz") {
		cin, ok := ident.CIN(row[0])
		require.True(t, ok)
		require.True(t, strings.HasPrefix(ident.RegistrationNumber(cin), "99"), "a contact of a real company: %s", cin)
	}
}

func TestDocumentsAreJSON(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(string(read(t, "made-up-documents.json.gz"))), "\n")
	require.Len(t, lines, 3)
	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)))
	}
}

func TestExamplesShowWhatTheySay(t *testing.T) {
	current, former, links := map[string]int{}, map[string]int{}, map[string]int{}
	for _, row := range rowsOf(t, "made-up-appointments.csv.gz") {
		if row[4] != "" {
			former[row[0]]++
			continue
		}
		current[row[0]]++
		links[row[1]]++
	}
	require.Equal(t, 57, current[sampletest.CompanyGrandBoard])
	require.Equal(t, 5, former[sampletest.CompanyGrandBoard])
	require.Equal(t, 50, current[sampletest.CompanyFullBoard])
	require.Zero(t, current[sampletest.CompanyNoDirector])
	require.Zero(t, current[sampletest.CompanyFormerBoard])
	require.Equal(t, 24, links[sampletest.DirectorManyLinks])
	require.Equal(t, 10, links[sampletest.DirectorTenLinks])
	require.Zero(t, links[sampletest.DirectorUnlinked])

	partners := map[string]int{}
	for _, row := range rowsOf(t, "made-up-partners.csv.gz") {
		partners[row[0]]++
	}
	require.Equal(t, 57, partners[sampletest.LLPManyPartners])
	require.Equal(t, 50, partners[sampletest.LLPFiftyPartners])
	require.Zero(t, partners[sampletest.LLPBare])
}

// rowsOf are the rows of a CSV file below its header.
func rowsOf(t *testing.T, name string) [][]string {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(read(t, name))).ReadAll()
	require.NoError(t, err, name)
	return records[1:]
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	file, err := testdata.Registry().Open(name)
	require.NoError(t, err)
	defer file.Close()
	plain, err := gzip.NewReader(file)
	require.NoError(t, err)
	data, err := io.ReadAll(plain)
	require.NoError(t, err)
	return data
}
