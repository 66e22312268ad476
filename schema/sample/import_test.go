package sample_test

import (
	"context"
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sampletest"
	"regedge/schema"
	"regedge/schema/importer"
	"regedge/schema/sample"
	"regedge/testdata"
)

func TestTheSampleImportsWithoutARefusal(t *testing.T) {
	i := newImport(t)
	total := i.sample(t, 1)
	require.Empty(t, total.Rejected)
	require.Empty(t, total.Unread)
	require.Equal(t, map[string]int64{"foreign company": 1}, total.LeftOut)
	for table, want := range map[string]int{"company": 544, "llp": 46, "director": 199, "appointment": 313, "partner": 116, "pincode": 150} {
		require.Equal(t, want, i.number(t, "SELECT count(*) FROM "+table), table)
	}
}

// TestImportIsTheWholeSample: it has the newest release of all runs, and leaves no file behind.
func TestImportIsTheWholeSample(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	path := filepath.Join(t.TempDir(), "registry.db")
	now := firstImport
	report, err := sample.Import(t.Context(), path, func() time.Time {
		now = now.Add(time.Second)
		return now
	})
	require.NoError(t, err)
	require.Len(t, report.Files, len(sample.Sources())+2, "and the directory of pincodes in each run")
	require.Greater(t, report.Elapsed, time.Second)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)

	db, err := schema.OpenReadOnly(path)
	require.NoError(t, err)
	i := &imported{db: db}
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.Equal(t, 544, i.number(t, "SELECT count(*) FROM company"))
	require.Equal(t, 150, i.number(t, "SELECT count(*) FROM pincode"))
	require.Equal(t, []string{"2021-03-31", "2025-05-05"}, i.texts(t, "SELECT DISTINCT as_of FROM company"))
	require.Equal(t, []string{report.Release}, i.texts(t, "SELECT id FROM release WHERE seq = (SELECT max(seq) FROM release)"))
	require.Equal(t, 2, i.number(t, "SELECT count(*) FROM release"))
	require.Equal(t, 2025, i.number(t, "SELECT CAST(strftime('%Y', max(last_updated), 'unixepoch') AS INTEGER) FROM company"), "the clock is the given one")

	again, err := sample.Import(t.Context(), filepath.Join(temporary, "none", "registry.db"), nil)
	require.ErrorContains(t, err, "import the sample: ")
	require.Empty(t, again.Release)
	left, err = os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheSampleImportedAgainChangesNothing(t *testing.T) {
	i := newImport(t)
	i.sample(t, 1)
	releases := i.number(t, "SELECT count(*) FROM release")
	i.sample(t, 100_000)
	require.Equal(t, releases, i.number(t, "SELECT count(*) FROM release"))
	require.Zero(t, i.number(t, "SELECT count(*) FROM company WHERE last_updated <> 1748736001"))
	require.Zero(t, i.number(t, "SELECT count(*) FROM director WHERE last_updated <> 1748736001"))
	require.Zero(t, i.number(t, "SELECT count(*) FROM llp WHERE last_updated <> 1748736001"))
}

func TestTheSampleShowsEveryStatus(t *testing.T) {
	i := newImport(t)
	i.sample(t, 1)
	for query, want := range map[string][]string{
		"SELECT DISTINCT status FROM company":                            {"ACTIVE", "DISSOLVED", "INACTIVE", "STRUCK_OFF", "SUSPENDED", "UNDER_LIQUIDATION"},
		"SELECT DISTINCT status FROM llp":                                {"ACTIVE", "DISSOLVED", "INACTIVE", "SUSPENDED"},
		"SELECT DISTINCT coalesce(status, '') FROM partner":              {"", "ACTIVE", "INACTIVE", "RETIRED"},
		"SELECT DISTINCT coalesce(cessation, '') FROM appointment":       {"", "CEASED", "REMOVED", "RESIGNED"},
		"SELECT DISTINCT coalesce(disqualified, '') || '' FROM director": {"", "0", "1"},
	} {
		require.Equal(t, want, i.texts(t, query), query)
	}
}

func TestTheSampleHasNullsEverywhereTheyMayBe(t *testing.T) {
	i := newImport(t)
	i.sample(t, 1)
	for table, columns := range map[string][]string{
		"company": {"incorporation_date", "category", "sub_category", "class", "roc", "authorized_capital", "paid_up_capital", "listed",
			"main_division", "business_activity", "principal_business", "state", "pincode", "address_line", "city", "email", "phone", "website"},
		"llp":         {"incorporation_date", "main_division", "business_activity", "contribution", "state", "pincode", "address_line", "city"},
		"director":    {"disqualified", "designation", "appointment_date"},
		"appointment": {"designation", "appointment_date", "cessation_date"},
		"partner":     {"din", "status", "joined_on", "left_on"},
	} {
		for _, column := range columns {
			from := " FROM " + table + " WHERE " + column
			require.Positive(t, i.number(t, "SELECT count(*)"+from+" IS NULL"), "%s.%s is never null", table, column)
			require.Positive(t, i.number(t, "SELECT count(*)"+from+" IS NOT NULL"), "%s.%s is always null", table, column)
		}
	}
}

func TestTheFullExampleHasEveryField(t *testing.T) {
	i := newImport(t)
	i.sample(t, 1)
	require.Equal(t, 1, i.number(t, `SELECT count(*) FROM company
		WHERE cin = ? AND length(incorporation_date || category || sub_category || class || roc || authorized_capital
		|| paid_up_capital || listed || main_division || business_activity || state || pincode || address_line
		|| city || email || phone || website || district) > 0`, sampletest.CompanyEveryField))
	require.Equal(t, 1, i.number(t, `SELECT count(*) FROM llp JOIN pincode USING (pincode)
		WHERE llpin = ? AND length(incorporation_date || main_division || business_activity || contribution || llp.state
		|| address_line || city || district) > 0`, sampletest.LLPEveryField))
	require.Equal(t, 9007199254740991, i.number(t, "SELECT authorized_capital FROM company WHERE cin = ?", sampletest.CompanyGrandBoard))
}

// TestMadeUpOfficesAreInOneState compares the state, the registrar's one in the CIN, and that of the
// pincode's post offices. Pincodes that no directory has are in none.
func TestMadeUpOfficesAreInOneState(t *testing.T) {
	i := newImport(t)
	i.sample(t, 1)
	require.Equal(t, []string{"560999"}, i.texts(t, `SELECT pincode FROM company
		WHERE company_name LIKE '%(MADE-UP)%' AND pincode IS NOT NULL AND pincode NOT IN (SELECT pincode FROM pincode)`))
	require.Equal(t, []string{"600999"}, i.texts(t, "SELECT pincode FROM llp WHERE pincode NOT IN (SELECT pincode FROM pincode)"))
	require.Empty(t, i.texts(t, `SELECT company_name || ': ' || c.state || ', ' || p.state FROM company c JOIN pincode p USING (pincode)
		WHERE company_name LIKE '%(MADE-UP)%' AND c.state <> p.state`))
	require.Empty(t, i.texts(t, "SELECT llp_name FROM llp l JOIN pincode p USING (pincode) WHERE l.state <> p.state"))
	require.Empty(t, i.texts(t, `SELECT company_name || ': ' || state FROM company WHERE company_name LIKE '%(MADE-UP)%' AND state IS NOT NULL
		AND state <> CASE substr(cin, 7, 2) WHEN 'DL' THEN 'Delhi' WHEN 'GA' THEN 'Goa' WHEN 'KA' THEN 'Karnataka'
			WHEN 'MH' THEN 'Maharashtra' WHEN 'TN' THEN 'Tamil Nadu' ELSE '' END`))
}

func TestPersonalContactsOfTheDocumentsAreDropped(t *testing.T) {
	i := newImport(t)
	i.sample(t, 1)
	for _, table := range []string{"company", "director", "partner", "appointment", "llp"} {
		rows, err := i.db.Query("SELECT * FROM " + table)
		require.NoError(t, err)
		for rows.Next() {
			for _, cell := range cells(t, rows) {
				require.NotContains(t, cell, "person@example.com")
				require.NotContains(t, cell, "+910000000020")
				require.NotContains(t, cell, "A MADE-UP HOME")
			}
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
}

func TestIrregularRowsAreRefusedLeftOutOrMended(t *testing.T) {
	i := newImport(t)
	report := i.run(t, 1, "2025-05-05", nil, []string{sample.Irregular})
	total := report.Total()
	require.Equal(t, map[string]int64{"invalid CIN": 3, "invalid capital": 2, "invalid date": 1, "no name": 2, "unknown status": 2}, total.Rejected)
	require.Equal(t, map[string]int64{"foreign company": 1}, total.LeftOut)
	require.Equal(t, []string{"U45209KA2013PTC990500", "U45209KA2013PTC990510", "U45209KA2013PTC990511"}, i.texts(t, "SELECT cin FROM company"))
	require.Equal(t, 9_900_000_000, i.number(t, "SELECT paid_up_capital FROM company WHERE cin = 'U45209KA2013PTC990510'"))
}

// imported is a registry database and the sample's files beside it.
type imported struct {
	folder string
	db     *sql.DB // nil before the first import
}

func newImport(t *testing.T) *imported {
	t.Helper()
	i := &imported{folder: t.TempDir()}
	require.NoError(t, os.CopyFS(i.folder, testdata.Registry()))
	return i
}

// sample imports the whole sample at a time, in Unix seconds, one run for each date.
func (i *imported) sample(t *testing.T, at int64) importer.FileReport {
	t.Helper()
	files := map[string][]string{}
	for _, source := range sample.Sources() {
		files[source.AsOf] = append(files[source.AsOf], source.Name)
	}
	var all importer.Report
	for _, asOf := range slices.Sorted(maps.Keys(files)) {
		report := i.run(t, at, asOf, []string{sample.Pincodes}, files[asOf])
		all.Files = append(all.Files, report.Files...)
	}
	return all.Total()
}

// firstImport, 1748736000, is after all dates in the files; at counts seconds from it.
var firstImport = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)

func (i *imported) run(t *testing.T, at int64, asOf string, pincodes, files []string) importer.Report {
	t.Helper()
	in := func(names []string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(i.folder, name))
		}
		return paths
	}
	registry := filepath.Join(i.folder, "registry.db")
	report, err := importer.Run(context.Background(), importer.Config{
		Registry: registry, Files: in(files), Pincodes: in(pincodes), AsOf: asOf,
		Now: func() time.Time { return firstImport.Add(time.Duration(at) * time.Second) },
	})
	require.NoError(t, err)
	if i.db == nil {
		i.db, err = schema.OpenReadOnly(registry)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, i.db.Close()) })
	}
	return report
}

func (i *imported) number(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, i.db.QueryRow(query, args...).Scan(&n), query)
	return n
}

// texts is the first column of a query, sorted.
func (i *imported) texts(t *testing.T, query string) (list []string) {
	t.Helper()
	rows, err := i.db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		list = append(list, cells(t, rows)[0])
	}
	require.NoError(t, rows.Err())
	slices.Sort(list)
	return list
}

// cells is the current row as text.
func cells(t *testing.T, rows *sql.Rows) []string {
	t.Helper()
	columns, err := rows.Columns()
	require.NoError(t, err)
	texts, places := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range texts {
		places[i] = &texts[i]
	}
	require.NoError(t, rows.Scan(places...))
	row := make([]string, len(columns))
	for i, text := range texts {
		row[i] = text.String
	}
	return row
}
