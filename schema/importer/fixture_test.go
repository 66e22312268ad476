package importer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/directors"
	"regedge/schema"
	"regedge/schema/importer/record"
	"regedge/testdata"
)

// sharedData is the folder with the official files, on a machine that has them.
const sharedData = "../../../shared/data"

// realFiles lists official files, and skips the test without them.
func realFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sharedData, pattern))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skipf("no %s in %s", pattern, sharedData)
	}
	return files
}

// officialFiles are real files of the 2025 and the 2021 export: of the six states that
// the shared data has both of, or else of the embedded sample.
func officialFiles(t *testing.T) (now, before, pincodes []string) {
	t.Helper()
	for _, name := range []string{"47aea*", "664e*", "7235*", "938c*", "da87*", "f86d*"} {
		list, err := filepath.Glob(filepath.Join(sharedData, "companies/datagov-rocwise-2025", name))
		require.NoError(t, err)
		now = append(now, list...)
	}
	if len(now) > 0 {
		return now, realFiles(t, "companies/datagov-statewise-2021/*"), realFiles(t, "pincodes/*")
	}
	t.Logf("no official files in %s: using the embedded sample", sharedData)
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, testdata.Registry()))
	in := func(name string) string { return filepath.Join(folder, name) }
	return []string{in("companies-2025.csv.gz"), in("companies-2025-resaved.csv.gz")},
		[]string{in("companies-2021.csv.gz"), in("companies-2021-variant.csv.gz")}, []string{in("pincodes.csv.gz")}
}

var testTime = time.Date(2026, 11, 21, 7, 15, 0, 0, time.UTC)

// fixture is one registry database and a clock that moves on a day with each import.
type fixture struct {
	t        *testing.T
	folder   string
	registry string
	rejects  string
	now      time.Time
	files    int
}

func newFixture(t *testing.T) *fixture {
	folder := t.TempDir()
	return &fixture{
		t: t, folder: folder, now: testTime,
		registry: filepath.Join(folder, "registry.db"), rejects: filepath.Join(folder, "rejects.csv"),
	}
}

// registryFiles lists the registry and what stands beside it.
func (w *fixture) registryFiles() []string {
	w.t.Helper()
	list, err := filepath.Glob(w.registry + "*")
	require.NoError(w.t, err)
	return list
}

// file writes a file and returns its path.
func (w *fixture) file(content string) string {
	w.t.Helper()
	w.files++
	path := filepath.Join(w.folder, fmt.Sprintf("file%d", w.files))
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func (w *fixture) config(asOf string, files ...string) Config {
	w.now = w.now.AddDate(0, 0, 1)
	now := w.now
	return Config{
		Registry: w.registry, Rejects: w.rejects, Files: files, AsOf: asOf,
		Now: func() time.Time { return now }, Random: bytes.NewReader([]byte{1, 2, byte(now.Day())}),
	}
}

// run imports files that must be readable.
func (w *fixture) run(asOf string, files ...string) Report {
	w.t.Helper()
	report, err := Run(context.Background(), w.config(asOf, files...))
	require.NoError(w.t, err)
	require.Len(w.t, report.Files, len(files))
	return report
}

// text imports one file of the given content.
func (w *fixture) text(asOf, content string) FileReport {
	w.t.Helper()
	return w.run(asOf, w.file(content)).Files[0]
}

// row is the first row of a query as text, columns separated by "|", NULL as "-".
func (w *fixture) row(query string, args ...any) string {
	w.t.Helper()
	rows := w.rows(query, args...)
	if len(rows) == 0 {
		return "no row"
	}
	return rows[0]
}

// exec runs SQL on the registry.
func (w *fixture) exec(script string) {
	w.t.Helper()
	db, err := schema.OpenFile(w.registry)
	require.NoError(w.t, err)
	defer db.Close()
	_, err = db.Exec(script)
	require.NoError(w.t, err)
}

func (w *fixture) rows(query string, args ...any) (list []string) {
	w.t.Helper()
	db, err := schema.OpenReadOnly(w.registry)
	require.NoError(w.t, err)
	defer db.Close()
	rows, err := db.Query(query, args...)
	require.NoError(w.t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(w.t, err)
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		require.NoError(w.t, rows.Scan(values...))
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = "-"
			if x := *v.(*any); x != nil {
				texts[i] = fmt.Sprint(x)
			}
		}
		list = append(list, strings.Join(texts, "|"))
	}
	require.NoError(w.t, rows.Err())
	return list
}

// content is the whole registry except times and releases: what must not depend on the order of imports.
func (w *fixture) content() map[string][]string {
	w.t.Helper()
	dump := map[string][]string{}
	for _, t := range record.Tables {
		columns := strings.Join(append(append([]string{}, t.Key...), t.Columns...), ", ")
		dump[t.Name] = w.rows(fmt.Sprintf("SELECT %s, as_of, older FROM %s ORDER BY 1, 2", columns, t.Name))
	}
	dump["pincode"] = w.rows("SELECT pincode, district, state FROM pincode ORDER BY 1")
	dump["search"] = w.rows("SELECT value, name FROM search_name ORDER BY place")
	dump["list"] = w.rows("SELECT cin, directors FROM company ORDER BY 1")
	require.Empty(w.t, w.rows(`SELECT cin, district FROM company
		WHERE district IS NOT coalesce((SELECT district FROM pincode p WHERE p.pincode = company.pincode), district)`), "districts match the pincodes")
	require.Equal(w.t, w.rows("SELECT cin, coalesce("+directors.Of("company.cin")+", '') FROM company ORDER BY 1"),
		dump["list"], "directors lists match the appointments")
	return dump
}

// everything is the content with times and releases.
func (w *fixture) everything() map[string][]string {
	w.t.Helper()
	dump := w.content()
	for _, t := range record.Tables {
		if t.Stamped {
			dump[t.Name+" times"] = w.rows(fmt.Sprintf("SELECT %s, last_updated FROM %s ORDER BY 1", t.Key[0], t.Name))
		}
	}
	for _, name := range []string{"release", "unreleased", "search_name", "search_pending", "search_index_data"} {
		dump["all of "+name] = w.rows(fmt.Sprintf("SELECT * FROM %s ORDER BY 1", name))
	}
	return dump
}

func (w *fixture) rejected() string {
	w.t.Helper()
	text, err := os.ReadFile(w.rejects)
	require.NoError(w.t, err)
	return string(text)
}
