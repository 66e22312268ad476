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
func (w *world) makeRegistries() {
	dir := w.t.TempDir()
	w.before, w.after = filepath.Join(dir, "before.db"), filepath.Join(dir, "after.db")
	_, err := sample.Import(w.t.Context(), w.before, nil)
	require.NoError(w.t, err)
	w.addGenerated(dir)
	content, err := os.ReadFile(w.before)
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(w.after, content, 0o600))
	appointments, directors, contacts := w.changes()
	for name, rows := range map[string][][]string{"appointments": appointments, "directors": directors, "contacts": contacts} {
		path := filepath.Join(dir, name+".csv")
		file, err := os.Create(path)
		require.NoError(w.t, err)
		require.NoError(w.t, csv.NewWriter(file).WriteAll(rows))
		require.NoError(w.t, file.Close())
		w.importFile(w.after, "2026-01-01", path)
	}
	w.makeWhole()
}

// addGenerated makes the register large enough for a push of several transactions.
func (w *world) addGenerated(dir string) {
	w.t.Helper()
	out := filepath.Join(dir, "generated")
	made, err := generate.Run(w.t.Context(), generate.Config{Companies: generated, Seed: 11, Out: out})
	require.NoError(w.t, err)
	config := importer.Config{Registry: w.before, AsOf: "2025-05-05"}
	for _, f := range made.Files {
		config.Files = append(config.Files, filepath.Join(out, filepath.Base(f.Name)))
	}
	_, err = importer.Run(w.t.Context(), config)
	require.NoError(w.t, err)
}

// makeWhole changes nearly every record of a copy of the first state, in what no answer about
// a company shows.
func (w *world) makeWhole() {
	w.t.Helper()
	content, err := os.ReadFile(w.before)
	require.NoError(w.t, err)
	w.whole = w.before + ".whole"
	require.NoError(w.t, os.WriteFile(w.whole, content, 0o600))
	db, err := schema.OpenFile(w.whole, false)
	require.NoError(w.t, err)
	defer db.Close()
	for _, change := range []string{
		"UPDATE company SET principal_business = 'WHOLE' WHERE coalesce(main_division, business_activity) IS NOT NULL",
		"UPDATE llp SET business_activity = 'WHOLE' WHERE main_division IS NOT NULL",
		"UPDATE director SET appointment_date = '2001-02-03'", // the boards of companies have their own
	} {
		_, err := db.Exec(change)
		require.NoError(w.t, err)
	}
	_, err = db.Exec(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
		SELECT 'whole', released_at, companies, llps, directors, appointments, partners FROM release ORDER BY seq DESC LIMIT 1`)
	require.NoError(w.t, err)
}

func (w *world) importFile(registry, asOf, file string) {
	w.t.Helper()
	config := importer.Config{Registry: registry, AsOf: asOf, Files: []string{file}}
	_, err := importer.Run(w.t.Context(), config)
	require.NoError(w.t, err)
}

// changes are sources that change some companies in all their parts: contact, board, and
// the names of its directors.
func (w *world) changes() (appointments, directors, contacts [][]string) {
	db, err := schema.OpenFile(w.before, true)
	require.NoError(w.t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT a.cin, a.din, d.name FROM appointment a JOIN director d USING (din) JOIN company USING (cin)
		WHERE a.cessation IS NULL AND a.cin IN (SELECT DISTINCT cin FROM appointment ORDER BY cin LIMIT 40)`)
	require.NoError(w.t, err)
	defer rows.Close()
	appointments = [][]string{{"cin", "din", "designation", "appointment_date", "cessation_date", "cessation_reason"}}
	directors = [][]string{{"din", "name", "disqualified", "designation", "appointment_date"}}
	contacts = [][]string{{"cin", "email", "phone", "website"}}
	for rows.Next() {
		var cin, din, name string
		require.NoError(w.t, rows.Scan(&cin, &din, &name))
		appointments = append(appointments, []string{cin, din, "Changed", "2020-02-02", "", ""})
		directors = append(directors, []string{din, name + " CHANGED", "", "", ""})
		contacts = append(contacts, []string{cin, "changed@example.org", "+919999999999", "https://changed.example.org"})
	}
	require.Greater(w.t, len(contacts), 20)
	return appointments, directors, contacts
}

// watched are the companies whose answers the tests look at: the ones that change, and
// some that don't.
func (w *world) watched() (cins []string) {
	db, err := schema.OpenFile(w.before, true)
	require.NoError(w.t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT cin FROM company WHERE cin IN (SELECT DISTINCT cin FROM appointment ORDER BY cin LIMIT 40)
		UNION SELECT * FROM (SELECT cin FROM company ORDER BY cin LIMIT 20)`)
	require.NoError(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var cin string
		require.NoError(w.t, rows.Scan(&cin))
		cins = append(cins, cin)
	}
	return cins
}
