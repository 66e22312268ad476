package push

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
	"regedge/schema/content"
	"regedge/schema/generate"
	"regedge/schema/importer"
)

// list reads one column of the registry file.
func (f *fixture) list(query string) (values []string) {
	f.t.Helper()
	db, err := schema.OpenReadOnly(f.registry)
	require.NoError(f.t, err)
	defer db.Close()
	for _, line := range dump(f.t, db, query) {
		values = append(values, strings.TrimSuffix(strings.TrimPrefix(line, "[{"), " true}]"))
	}
	return values
}

// editSome changes a few records of each kind in every way.
func (f *fixture) editSome() {
	f.t.Helper()
	cins := f.list("SELECT cin FROM company ORDER BY cin LIMIT 12")
	in := func(keys []string) string { return "('" + strings.Join(keys, "','") + "')" }
	f.edit(cins,
		"UPDATE company SET company_name = 'RENAMED ' || company_name WHERE cin IN "+in(cins[:4]),
		"UPDATE company SET status = 'STRUCK_OFF' WHERE cin IN "+in(cins[4:6]),
		"DELETE FROM company WHERE cin IN "+in(cins[6:8]),
		"UPDATE director SET name = name || ' X' WHERE din IN (SELECT din FROM appointment WHERE cin IN "+in(cins[:3])+")",
		"UPDATE appointment SET cessation = 'RESIGNED' WHERE cin IN "+in(cins[8:9]),
		"DELETE FROM appointment WHERE cin IN "+in(cins[9:10]),
		"INSERT INTO director (din, name, as_of, last_updated) VALUES ('99999999', 'NEW', '2025-01-01', 5)",
		"INSERT INTO appointment (cin, din, as_of) SELECT cin, '99999999', '2025-01-01' FROM company WHERE cin IN "+in(cins[10:]),
		"DELETE FROM director WHERE din = (SELECT max(din) FROM director WHERE din < '99999999')",
		"UPDATE partner SET left_on = '2024-01-01' WHERE llpin = (SELECT min(llpin) FROM partner)",
		"UPDATE llp SET contribution = 7 WHERE llpin = (SELECT max(llpin) FROM llp)",
		"UPDATE pincode SET district = 'ELSEWHERE' WHERE pincode = (SELECT min(pincode) FROM pincode)",
		"INSERT INTO company (cin, company_name, status, as_of, last_updated) VALUES ('U99999KA2025PTC999999', 'AAA \"QUOTED\" é LTD', 'ACTIVE', '2025-01-01', 5)",
		"INSERT INTO search_pending VALUES ('U99999KA2025PTC999999')",
	)
}

func TestAPushBringsEverything(t *testing.T) {
	f := newFixture(t)
	dry := f.config(f.snapshot())
	dry.DryRun = true
	foreseen, err := Run(t.Context(), dry)
	require.NoError(t, err)
	require.Empty(t, dump(t, f.primary(), "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'libsql%'"), "a dry run creates no table")
	none, err := Releases(t.Context(), f.client)
	require.NoError(t, err, "an empty primary has no releases")
	require.Empty(t, none)
	_, err = Previous(t.Context(), f.client)
	require.ErrorIs(t, err, ErrNoEarlier)
	begun := time.Now()
	report := f.push()
	require.Equal(t, foreseen.Counts, report.Counts)
	require.Positive(t, report.Transactions)
	require.GreaterOrEqual(t, report.Counts[0].Added, int64(companies()))
	releases, err := Releases(t.Context(), f.client)
	require.NoError(t, err)
	require.Len(t, releases, 1)
	require.NotEmpty(t, releases[0].Digest)
	n := func(column string) int64 {
		return f.count("SELECT " + column + " FROM release ORDER BY seq DESC LIMIT 1")
	}
	want := Release{ID: report.Release, Digest: releases[0].Digest, Released: time.Unix(n("released_at"), 0).UTC(), Pushed: releases[0].Pushed,
		Companies: n("companies"), LLPs: n("llps"), Directors: n("directors"), Appointments: n("appointments"), Partners: n("partners")}
	require.Equal(t, want, releases[0])
	_, common, err := (&pusher{here: &side{db: openRegistry(t, snapshotPath(f.snapshots, report.Release))}}).commonTerms(t.Context())
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(want.Digest, common), want.Digest)
	require.NotEqual(t, want.LLPs, want.Directors)
	require.WithinRange(t, want.Pushed, begun.Truncate(time.Second), time.Now())
	require.Equal(t, []string{"[{ true} {0 true}]"}, dump(t, f.primary(), "SELECT release, dirty FROM pushing"), "it is complete")
	require.Greater(t, report.Sent, 10*report.Received, "an empty primary has nothing to read")

	f.commits.Store(0)
	again := f.push()
	require.Zero(t, again.Records())
	require.Zero(t, f.commits.Load(), "edges would wait for it")
	require.Less(t, again.Sent, int64(5000))
}

// TestARegistryRestoredFromASnapshotIsPushed: a snapshot marks no changes, so that its hashes may be those of
// records that an import has changed since.
func TestARegistryRestoredFromASnapshotIsPushed(t *testing.T) {
	f := newFixture(t)
	text, err := os.ReadFile(snapshotPath(f.snapshots, f.push().Release))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.registry, text, 0o600))
	f.edit(nil, "UPDATE company SET city = 'ELSEWHERE' WHERE cin = (SELECT min(cin) FROM company)")
	require.Equal(t, int64(1), f.push().Records())
	require.Equal(t, int64(1), f.count("SELECT count(*) FROM company WHERE city = 'ELSEWHERE'"))
}

// TestCompaniesArePushedIntoTheirRows: a new company gets the rowid of its CIN, and one that has
// another rowid keeps it.
func TestCompaniesArePushedIntoTheirRows(t *testing.T) {
	f, _ := newPushed(t)
	there := func(query string) string {
		db, err := schema.OpenReadOnly(sqld.File(f.server.Dir))
		require.NoError(t, err)
		defer db.Close()
		return strings.Join(dump(t, db, query), "")
	}
	require.Equal(t, "[{0 true}]", there("SELECT count(*) FROM company WHERE rowid <> cin_number(cin)"))

	_, err := f.primary().Exec(`UPDATE company SET rowid = rowid - (1 << 60)`)
	require.NoError(t, err)
	f.exec("UPDATE company SET directors = directors || char(10) || '99999999' || char(9) || 'NEW' || char(9) || char(9) WHERE directors <> '' AND rowid % 2 = 0")
	f.editSome()
	f.push()
	require.Equal(t, "[{1 true}]", there("SELECT count(*) FROM company WHERE rowid = cin_number(cin)"), "the new one")
	f.same(f.snapshot())
}

// TestATakenRowIsNotOverwritten pushes a company whose rowid another company has at the primary.
func TestATakenRowIsNotOverwritten(t *testing.T) {
	f, _ := newPushed(t)
	cins := f.list("SELECT cin FROM company WHERE cin IN ((SELECT min(cin) FROM company), (SELECT max(cin) FROM company)) ORDER BY cin")
	require.Len(t, cins, 2)
	_, err := f.primary().Exec(fmt.Sprintf(`DELETE FROM company WHERE cin = '%[1]s'; UPDATE company SET rowid = %[3]d WHERE cin = '%[2]s'`,
		cins[0], cins[1], ident.CINNumber(cins[0])))
	require.NoError(t, err)
	f.edit(nil, "UPDATE company SET paid_up_capital = 77 WHERE cin = '"+cins[0]+"'")
	f.push()
}

func TestAChangeCostsWhatItChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("a small registry shows no ratios")
	}
	f := newFixture(t)
	full := f.push()
	f.edit(nil, "UPDATE company SET paid_up_capital = 5 WHERE cin IN (SELECT cin FROM (SELECT cin, row_number() OVER () n FROM company) WHERE n % 100 = 0)",
		"UPDATE director SET designation = 'CHANGED' WHERE CAST(din AS INTEGER) % 100 = 0")
	part := f.push()
	require.InDelta(t, float64(full.Counts[0].Added+full.Counts[2].Added)/100, float64(part.Records()), 5)
	require.Less(t, part.Sent, full.Sent/50, "%+v", part)
	require.Less(t, part.Sent+part.Received, full.Sent/20)
	t.Logf("full push: %d bytes sent, %d received; 1%%: %d sent, %d received, of these %d to compare",
		full.Sent, full.Received, part.Sent, part.Received, part.Compared)
}

// TestALaterDateAloneIsNotPushed: an import writes its date into every record that it confirms.
func TestALaterDateAloneIsNotPushed(t *testing.T) {
	f, _ := newPushed(t)
	f.edit(nil, "UPDATE company SET as_of = '2025-06-01'", "UPDATE appointment SET as_of = '2025-06-01'",
		"UPDATE llp SET as_of = '2025-06-01', older = '{\"city\":\"2025-05-05\"}'", "UPDATE partner SET as_of = '2025-06-01'",
		"UPDATE director SET as_of = '2025-06-01', name = name || ' X' WHERE din = (SELECT min(din) FROM director)")
	report := f.push()
	require.EqualValues(t, 1, report.Records(), "the director with another name: %+v", report.Counts)
	require.Equal(t, dump(t, f.primary(), "SELECT min(as_of), max(as_of) FROM director"),
		dump(t, f.primary(), "SELECT '2025-05-05', '2025-06-01'"), "a changed record is pushed with its date")
}

func TestEveryKindOfChangeArrivesAndRollsBack(t *testing.T) {
	f, _ := newPushed(t)
	first := f.snapshot()
	f.editSome()
	dry := f.config(f.snapshot())
	dry.DryRun = true
	foreseen, err := Run(t.Context(), dry)
	require.NoError(t, err)
	f.same(first) // a dry run writes nothing
	report := f.push()
	require.Equal(t, foreseen.Counts, report.Counts)
	require.False(t, report.NewGeneration)
	for i, c := range report.Counts {
		require.Positive(t, c.Changed, "%s", kinds[i])
	}

	f.later = time.Hour
	back := f.rollback(first)
	require.Equal(t, report.Records(), back.Records())
	releases, err := Releases(t.Context(), f.client)
	require.NoError(t, err)
	require.Equal(t, first, releases[0].ID)
	require.Len(t, releases, 2)
	require.True(t, releases[0].Pushed.After(releases[1].Pushed), "it was pushed again")
	_, err = Previous(t.Context(), f.client)
	require.ErrorIs(t, err, ErrNoEarlier, "a second rollback does not bring back what the first took away")
	_, err = Run(t.Context(), f.config("nonsense"))
	require.ErrorContains(t, err, "kept are: "+first+", edit-1")
}

func TestARebuiltSearchIsWrittenAsAWhole(t *testing.T) {
	f, _ := newPushed(t)
	for round := range 3 {
		// A name that comes first moves all others when the index is rebuilt.
		f.edit([]string{"*"}, fmt.Sprintf(`INSERT INTO company (cin, company_name, status, as_of, last_updated)
			VALUES ('U99999KA2025PTC99999%d', 'A%d', 'ACTIVE', '2025-01-01', 5)`, round, round))
		dry := f.config(f.snapshot())
		dry.DryRun = true
		foreseen, err := Run(t.Context(), dry)
		require.NoError(t, err)
		report := f.push()
		require.True(t, report.NewGeneration)
		require.Equal(t, report.Counts, foreseen.Counts)
		require.EqualValues(t, 1, report.Counts[0].Added)
		require.Zero(t, report.Counts[2].Changed)
	}
}

// TestASearchOfOtherTermsGoesOnFromAnInterruptedOne: regedge was upgraded again, or went back, before the push that writes the
// search anew was complete.
func TestASearchOfOtherTermsGoesOnFromAnInterruptedOne(t *testing.T) {
	f, _ := newPushed(t)
	f.edit(nil, "UPDATE company SET paid_up_capital = 6 WHERE cin = (SELECT min(cin) FROM company)")
	release := f.snapshot()
	for range 2 {
		sqldtest.Exec(t, f.server, "UPDATE search_push SET terms = terms + 1")
		ctx, cancel := context.WithCancel(t.Context())
		config, compared := f.config(release), 0
		config.Progress = func(p Progress) {
			if p.Stage == Comparing && p.Done == p.Total {
				if compared++; compared == 2 { // and nothing is written yet
					cancel()
				}
			}
		}
		_, err := Run(ctx, config)
		require.ErrorIs(t, err, context.Canceled)
	}
	report, err := Run(t.Context(), f.config(release))
	require.NoError(t, err)
	require.False(t, report.NewGeneration, "the push before has begun it")
	f.same(release)
}

// TestASearchOfOtherTermsGoesOnFromOneOfAnEarlierVersion, which made the hashes differ in the table that a hand-over
// fills, and was interrupted.
func TestASearchOfOtherTermsGoesOnFromOneOfAnEarlierVersion(t *testing.T) {
	f, _ := newPushed(t)
	for _, statement := range []string{
		"DELETE FROM content_whole",
		"INSERT INTO content (bucket, kind, key, hash) SELECT bucket, kind, key, hash FROM content_newer WHERE hash IS NOT NULL",
		"DELETE FROM content_newer",
		"INSERT INTO content_whole (id) VALUES (1)",
		fmt.Sprintf("UPDATE content SET hash = ~hash WHERE kind = %d", entry),
		"UPDATE search_push SET generation = generation + 1, terms = terms + 1",
		"DELETE FROM search_name",
		"INSERT INTO search_index (search_index) VALUES ('delete-all')",
	} {
		sqldtest.Exec(t, f.server, statement)
	}
	f.edit(nil, "UPDATE company SET paid_up_capital = 6 WHERE cin = (SELECT min(cin) FROM company)")
	release := f.snapshot()
	f.run(f.config(release))
	f.same(release)
}

func TestEntriesThatExchangePlacesAreWrittenTogether(t *testing.T) {
	f, _ := newPushed(t)
	// Two names change places, and a third takes the place of one that goes.
	f.edit(nil, `CREATE TEMP TABLE pair AS SELECT place, value, name FROM search_name ORDER BY place LIMIT 4`,
		`DELETE FROM company WHERE cin = (SELECT value FROM pair ORDER BY place LIMIT 1 OFFSET 2)`,
		`DELETE FROM llp WHERE llpin = (SELECT value FROM pair ORDER BY place LIMIT 1 OFFSET 2)`,
		`UPDATE company SET company_name = 'A' WHERE cin = (SELECT value FROM pair ORDER BY place LIMIT 1 OFFSET 1)`,
		`INSERT INTO search_pending VALUES ('*')`)
	require.NotZero(t, f.push().Records())
}

// TestAStrangersRegistryTakesThePlacesOfNames that go, whatever the transactions into which its records are cut.
func TestAStrangersRegistryTakesThePlacesOfNames(t *testing.T) {
	defer func(before int) { togetherRecords = before }(togetherRecords)
	togetherRecords = 100
	f := newFixture(t)
	first := f.push()
	dir := t.TempDir()
	made, err := generate.Run(t.Context(), generate.Config{Companies: companies(), Seed: 4, Out: dir})
	require.NoError(t, err)
	f.registry = filepath.Join(dir, "registry.db")
	config := importer.Config{Registry: f.registry, AsOf: "2025-06-05"}
	for _, file := range made.Files {
		config.Files = append(config.Files, filepath.Join(dir, filepath.Base(file.Name)))
	}
	_, err = importer.Run(t.Context(), config)
	require.NoError(t, err)
	report := f.push()
	require.False(t, report.NewGeneration, "names take the places of others")
	require.Greater(t, report.Transactions, first.Transactions)
}

func TestAnInterruptedPushGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a small registry is pushed in one transaction")
	}
	f := newFixture(t)
	release := f.snapshot()
	total := int64(0)
	for range 3 {
		config := f.config(release)
		ctx, cancel := context.WithCancel(t.Context())
		config.Progress = func(p Progress) {
			if p.Stage == Writing {
				total = max(total, p.Total)
				cancel()
			}
		}
		_, err := Run(ctx, config)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, dump(t, f.primary(), "SELECT id FROM release"), "the release comes last")
	}
	report, err := Run(t.Context(), f.config(release))
	require.NoError(t, err)
	f.same(release)
	require.Less(t, report.Records(), total, "what was written is not written again")
}

// TestADirectorChangesTogetherWithItsCompanies in a push of many transactions.
func TestADirectorChangesTogetherWithItsCompanies(t *testing.T) {
	if testing.Short() {
		t.Skip("a small registry is pushed in one transaction")
	}
	f, _ := newPushed(t)
	f.edit(nil, "UPDATE director SET name = name || ' X'", "UPDATE company SET city = 'X'")
	config := f.config(f.snapshot())
	transactions, last := 0, Progress{}
	config.Progress = func(p Progress) {
		if last = p; p.Stage == Writing {
			transactions++
			require.Equal(t, []string{"[{0 true}]"}, dump(t, f.primary(), `SELECT count(*) FROM appointment JOIN director USING (din) JOIN company USING (cin)
				WHERE (director.name LIKE '% X') <> (company.city = 'X')`))
		}
	}
	_, err := Run(t.Context(), config)
	require.NoError(t, err)
	require.Greater(t, transactions, 1)
	require.Equal(t, Progress{Writing, last.Total, last.Total}, last)
}

func TestALostAnswerIsNoSecondWrite(t *testing.T) {
	f, before := newPushed(t)
	f.editSome()
	release := f.snapshot()
	for lost := int64(1); ; lost++ {
		f.lose.Store(lost)
		_, err := Run(t.Context(), f.config(release))
		if err != nil {
			// A read is not tried again: the next run continues.
			require.NotErrorIs(t, err, ErrDiffers)
			f.lose.Store(0)
			_, err = Run(t.Context(), f.config(release))
			require.NoError(t, err)
		}
		f.same(release)
		if f.lose.Load() > 0 || testing.Short() && lost > 8 {
			return // the push has fewer answers than that
		}
		f.lose.Store(0)
		f.rollback(before)
	}
}

func TestASecondPushTakesOver(t *testing.T) {
	f := newFixture(t)
	release := f.snapshot()
	config := f.config(release)
	other := false
	config.Progress = whileWriting(func() {
		if !other {
			other = true
			_, err := Run(t.Context(), f.config(release))
			require.NoError(t, err)
		}
	})
	_, err := Run(t.Context(), config)
	require.ErrorIs(t, err, ErrTakenOver)
	f.same(release)
}

func TestPushRefuses(t *testing.T) {
	f := newFixture(t)
	t.Run("an unfinished import", func(t *testing.T) {
		f.exec("INSERT INTO unreleased VALUES (1, 0)")
		_, err := Snapshot(t.Context(), f.registry, f.snapshots, nil)
		require.ErrorIs(t, err, ErrUnfinished)
		f.exec("DELETE FROM unreleased")
		f.exec("INSERT INTO search_pending VALUES ('*')")
		_, err = Snapshot(t.Context(), f.registry, f.snapshots, nil)
		require.ErrorIs(t, err, ErrUnfinished, "its search is not up to date")
		f.exec("DELETE FROM search_pending")
	})
	release := f.snapshot()
	t.Run("a primary with a newer schema", func(t *testing.T) {
		db := f.primary()
		require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
		_, err := db.Exec("INSERT INTO schema_version SELECT 99, 0, max(database) FROM schema_version")
		require.NoError(t, err)
		_, err = Run(t.Context(), f.config(release))
		var newer *schema.NewerError
		require.True(t, errors.As(err, &newer), "%v", err)
		_, err = db.Exec("DELETE FROM schema_version WHERE version = 99")
		require.NoError(t, err)
	})
	t.Run("a primary that was not filled by a push", func(t *testing.T) {
		db := f.primary()
		_, err := db.Exec("INSERT INTO search_name VALUES (1, 'x', 'x', '')")
		require.NoError(t, err)
		_, err = Run(t.Context(), f.config(release))
		require.ErrorIs(t, err, ErrNotPushed)
		_, err = db.Exec("DELETE FROM search_name")
		require.NoError(t, err)
	})
	t.Run("a primary that is changed during the push", func(t *testing.T) {
		config := f.config(release)
		config.Progress = whileWriting(func() {
			_, err := config.Primary.Exec("DELETE FROM director")
			require.NoError(t, err)
		})
		_, err := Run(t.Context(), config)
		require.ErrorIs(t, err, ErrDiffers)
	})
}

func (f *fixture) exec(statement string) {
	f.t.Helper()
	db, err := schema.OpenFile(f.registry)
	require.NoError(f.t, err)
	defer db.Close()
	_, err = db.Exec(statement)
	require.NoError(f.t, err)
}

// eachTable calls test with every table that is pushed, and a registry.
func eachTable(t *testing.T, test func(*sql.DB, table)) {
	t.Helper()
	db, err := schema.OpenReadOnly(newFixture(t).registry)
	require.NoError(t, err)
	defer db.Close()
	for _, list := range content.Tables {
		for _, one := range list {
			test(db, table(one))
		}
	}
}

func TestEveryColumnIsPushed(t *testing.T) {
	eachTable(t, func(db *sql.DB, table table) {
		require.ElementsMatch(t, columnsOf(t, db, table.Name), table.Columns, table.Name)
	})
}

func columnsOf(t *testing.T, db *sql.DB, table string) (names []string) {
	t.Helper()
	rows, err := db.Query("SELECT name FROM pragma_table_info(?)", table)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		names = append(names, name)
	}
	return names
}

// TestRecordsAreFoundByIndexes: a push of few changes reads few rows.
func TestRecordsAreFoundByIndexes(t *testing.T) {
	eachTable(t, func(db *sql.DB, table table) {
		for _, statement := range []string{table.rows(), table.primaryKeys(), table.drop()} {
			plan := strings.Join(dump(t, db, "EXPLAIN QUERY PLAN "+statement), "\n")
			require.Contains(t, plan, "SEARCH ")
			require.NotRegexp(t, "SCAN "+table.Name, plan)
		}
	})
}

// TestAPushThatWasConfirmedTooLateWritesNothing: another one has ended since it compared, while an operator was asked.
func TestAPushThatWasConfirmedTooLateWritesNothing(t *testing.T) {
	f, before := newPushed(t)
	f.edit(nil, "UPDATE company SET city = 'X' WHERE cin IN (SELECT cin FROM company ORDER BY cin LIMIT 10)")
	late := f.snapshot()
	f.edit(nil, "UPDATE company SET city = 'Y' WHERE cin IN (SELECT cin FROM company ORDER BY cin LIMIT 5, 10)")
	newest := f.snapshot()
	for i, meanwhile := range []struct {
		name string
		does func()
	}{
		{"another release", func() {
			_, err := Run(t.Context(), f.config(newest))
			require.NoError(t, err)
		}},
		{"the same release, and a rollback", func() {
			_, err := Run(t.Context(), f.config(late))
			require.NoError(t, err)
			f.rollback(before)
		}},
	} {
		if i > 0 {
			f.rollback(before)
		}
		held := ""
		config := f.config(late)
		config.Ask = func(Report) error {
			meanwhile.does()
			held = dump(t, f.primary(), "SELECT id FROM release ORDER BY seq DESC LIMIT 1")[0]
			return nil
		}
		_, err := Run(t.Context(), config)
		require.ErrorIs(t, err, ErrTakenOver, meanwhile.name)
		require.Equal(t, held, dump(t, f.primary(), "SELECT id FROM release ORDER BY seq DESC LIMIT 1")[0])
		require.Equal(t, []string{"[{0 true}]"}, dump(t, f.primary(), "SELECT count(*) FROM pushing WHERE release <> ''"), meanwhile.name)
	}
}

// TestLongNamesAreWrittenAndGo: the terms of a hundred of the longest are more than sqld takes in one argument ("string or blob
// too big"), and no push went on.
func TestLongNamesAreWrittenAndGo(t *testing.T) {
	f, _ := newPushed(t)
	const some = "SELECT cin FROM company ORDER BY cin LIMIT 100"
	const syllables = `CREATE TEMP TABLE syllable AS WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 443) SELECT i FROM n`
	const longest = `UPDATE company SET company_name = (SELECT group_concat(substr('BCDFGHJKLMNP', 1 + (i * 7 + company.rowid) % 12, 1) ||
		substr('AEIOU', 1 + (i * i + company.rowid) % 5, 1) || iif(i % 4, '', ' '), '') FROM syllable) WHERE cin IN (` + some + `)`
	const pending = `INSERT INTO search_pending ` + some
	f.edit(nil, syllables, longest, pending)
	require.NotZero(t, f.push().Records())
	f.edit(nil, `UPDATE company SET company_name = 'A ' || cin WHERE cin IN (`+some+`)`, pending)
	require.NotZero(t, f.push().Records())
}
