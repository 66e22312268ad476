package cluster_test

import (
	"encoding/csv"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/generate"
	"regedge/schema/importer"
	"regedge/schema/sample"
)

// makeRegistries imports the sample, and a copy of it with a day's changes.
func (f *fixture) makeRegistries() {
	dir := f.t.TempDir()
	f.before, f.after = filepath.Join(dir, "before.db"), filepath.Join(dir, "after.db")
	_, err := sample.Import(f.t.Context(), f.before, nil)
	require.NoError(f.t, err)
	f.addGenerated(dir)
	content, err := os.ReadFile(f.before)
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(f.after, content, 0o600))
	appointments, directors, contacts := f.changes()
	for name, rows := range map[string][][]string{"appointments": appointments, "directors": directors, "contacts": contacts} {
		path := filepath.Join(dir, name+".csv")
		file, err := os.Create(path)
		require.NoError(f.t, err)
		require.NoError(f.t, csv.NewWriter(file).WriteAll(rows))
		require.NoError(f.t, file.Close())
		f.importFile(f.after, "2026-01-01", path)
	}
	f.makeWhole()
}

// addGenerated makes the registry large enough for a push of several transactions.
func (f *fixture) addGenerated(dir string) {
	f.t.Helper()
	out := filepath.Join(dir, "generated")
	made, err := generate.Run(f.t.Context(), generate.Config{Companies: generated, Seed: 11, Out: out})
	require.NoError(f.t, err)
	config := importer.Config{Registry: f.before, AsOf: "2025-05-05"}
	for _, file := range made.Files {
		config.Files = append(config.Files, filepath.Join(out, filepath.Base(file.Name)))
	}
	_, err = importer.Run(f.t.Context(), config)
	require.NoError(f.t, err)
}

// makeWhole changes nearly every record in a copy of before, in fields that no answer about a company
// shows.
func (f *fixture) makeWhole() {
	f.t.Helper()
	content, err := os.ReadFile(f.before)
	require.NoError(f.t, err)
	f.whole = f.before + ".whole"
	require.NoError(f.t, os.WriteFile(f.whole, content, 0o600))
	db, err := schema.OpenFile(f.whole)
	require.NoError(f.t, err)
	defer db.Close()
	for _, change := range []string{
		"UPDATE company SET principal_business = 'WHOLE' WHERE coalesce(main_division, business_activity) IS NOT NULL",
		"UPDATE llp SET business_activity = 'WHOLE' WHERE main_division IS NOT NULL",
		"UPDATE director SET last_updated = last_updated + 1",
	} {
		_, err := db.Exec(change)
		require.NoError(f.t, err)
	}
	_, err = db.Exec(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
		SELECT 'whole', released_at, companies, llps, directors, appointments, partners FROM release ORDER BY seq DESC LIMIT 1`)
	require.NoError(f.t, err)
}

func (f *fixture) importFile(registry, asOf, file string) {
	f.t.Helper()
	config := importer.Config{Registry: registry, AsOf: asOf, Files: []string{file}}
	_, err := importer.Run(f.t.Context(), config)
	require.NoError(f.t, err)
}

// changes are sources that change some companies in all their parts: contact, board, and
// the names of its directors.
func (f *fixture) changes() (appointments, directors, contacts [][]string) {
	db, err := schema.OpenReadOnly(f.before)
	require.NoError(f.t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT a.cin, a.din, d.name FROM appointment a JOIN director d USING (din) JOIN company USING (cin)
		WHERE a.cessation IS NULL AND a.cin IN (SELECT DISTINCT cin FROM appointment ORDER BY cin LIMIT 40)`)
	require.NoError(f.t, err)
	defer rows.Close()
	appointments = [][]string{{"cin", "din", "designation", "appointment_date", "cessation_date", "cessation_reason"}}
	directors = [][]string{{"din", "name", "disqualified", "designation", "appointment_date"}}
	contacts = [][]string{{"cin", "email", "phone", "website"}}
	for rows.Next() {
		var cin, din, name string
		require.NoError(f.t, rows.Scan(&cin, &din, &name))
		appointments = append(appointments, []string{cin, din, "Changed", "2020-02-02", "", ""})
		directors = append(directors, []string{din, name + " CHANGED", "", "", ""})
		contacts = append(contacts, []string{cin, "changed@example.org", "+919999999999", "https://changed.example.org"})
	}
	require.Greater(f.t, len(contacts), 20)
	return appointments, directors, contacts
}

// watched are the companies that tests look up: those that differ between before and after, and some
// others.
func (f *fixture) watched() (cins []string) {
	db, err := schema.OpenReadOnly(f.before)
	require.NoError(f.t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT cin FROM company WHERE cin IN (SELECT DISTINCT cin FROM appointment ORDER BY cin LIMIT 40)
		UNION SELECT * FROM (SELECT cin FROM company ORDER BY cin LIMIT 20)`)
	require.NoError(f.t, err)
	defer rows.Close()
	for rows.Next() {
		var cin string
		require.NoError(f.t, rows.Scan(&cin))
		cins = append(cins, cin)
	}
	return cins
}
