package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
	"regedge/schema"
	"regedge/schema/content"
)

// changed runs SQL on a copy of the sample registry, and returns the copy.
func changed(t *testing.T, script string) string {
	t.Helper()
	path := sampletest.Registry(t)
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	_, err = db.Exec(script)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return path
}

func TestAWholeRegistryHasNoProblem(t *testing.T) {
	path := changed(t, "")
	for _, depth := range []Depth{Quick, Thorough} {
		var steps []int64
		total := int64(0)
		report, err := File(t.Context(), path, depth, func(done, of int64) { steps, total = append(steps, done), of })
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.True(t, report.Whole())
		require.Len(t, steps, int(total), "each is told before it begins")
		require.EqualValues(t, total-1, steps[total-1])
		require.NotEmpty(t, report.Release)
		require.Positive(t, report.Elapsed)
		require.Equal(t, "company", report.Tables[0].Name)
		require.Positive(t, report.Tables[0].Records)
		if depth == Thorough {
			require.Len(t, report.Tables[0].Digest, 64)
		}
	}
}

func TestAVerifiedFileIsClosed(t *testing.T) {
	path := changed(t, "")
	_, err := File(t.Context(), path, Quick, nil)
	require.NoError(t, err)
	require.Empty(t, testkit.OpenFiles(t, path))
}

// TestWhatIsNotWholeIsNamed breaks one thing after another.
func TestWhatIsNotWholeIsNamed(t *testing.T) {
	const one = `(SELECT cin FROM company ORDER BY cin LIMIT 1 OFFSET 7)`
	for script, want := range map[string]string{
		`DELETE FROM release`:                     "there is no release",
		`INSERT INTO unreleased VALUES (1, 0)`:    "changes after the release",
		`INSERT INTO search_pending VALUES ('x')`: "changes after the release",
		`DELETE FROM director WHERE din IN (SELECT din FROM director WHERE din NOT IN (SELECT din FROM appointment WHERE cessation IS NULL) LIMIT 1)`: "table director has",
		`DELETE FROM search_name WHERE value = ` + one:                                                                                              "companies and LLPs that the search does not have: 1",
		`DELETE FROM search_name WHERE value = (SELECT min(llpin) FROM llp)`:                                                                        "companies and LLPs that the search does not have: 1",
		`UPDATE search_name SET value = 'Z' WHERE value = ` + one:                                                                                   "entries of the search without a company or LLP: 1, the first is Z",
		`UPDATE company SET directors = 'x' WHERE cin = ` + one:                                                                                     "directors list differs",
		`UPDATE company SET district = 'x' WHERE cin = (SELECT cin FROM company JOIN pincode USING (pincode) WHERE pincode.district <> '' LIMIT 1)`: "district differs",
		`INSERT INTO search_index (search_index) VALUES ('delete-all')`:                                                                             "",
	} {
		path := changed(t, script)
		for _, depth := range []Depth{Quick, Thorough} {
			report, err := File(t.Context(), path, depth, nil)
			require.NoError(t, err)
			require.False(t, report.Whole(), "%v %s", depth, script)
			require.Contains(t, strings.Join(report.Problems, "\n"), want, script)
		}
	}
}

// TestTheFirstOfSeveralIsNamed, in the order in which they are read.
func TestTheFirstOfSeveralIsNamed(t *testing.T) {
	const two = `(SELECT cin FROM company ORDER BY cin LIMIT 2 OFFSET 7)`
	const placed = `(SELECT cin FROM company JOIN pincode USING (pincode) WHERE pincode.district <> '' ORDER BY cin LIMIT 2 OFFSET 7)`
	for _, test := range []struct{ script, first, want string }{
		{`DELETE FROM search_name WHERE value IN ` + two, `SELECT min(cin) FROM ` + two,
			"companies and LLPs that the search does not have: 2, the first is "},
		{`UPDATE search_name SET value = '0' || value WHERE value IN ` + two, `SELECT min(value) FROM search_name`,
			"entries of the search without a company or LLP: 2, the first is "},
		{`UPDATE search_name SET value = '~' || value WHERE value IN ` + two, `SELECT min(value) FROM search_name WHERE value > '~'`,
			"entries of the search without a company or LLP: 2, the first is "},
		{`UPDATE company SET directors = 'x' WHERE cin IN ` + two, `SELECT cin FROM company WHERE directors = 'x' LIMIT 1`,
			"companies whose directors list differs from their appointments: 2, the first is "},
		{`UPDATE company SET district = 'x' WHERE cin IN ` + placed, `SELECT cin FROM company WHERE district = 'x' LIMIT 1`,
			"companies whose district differs from that of their pincode: 2, the first is "},
	} {
		path := changed(t, test.script)
		var first string
		db, err := schema.OpenReadOnly(path)
		require.NoError(t, err)
		require.NoError(t, errors.Join(db.QueryRow(test.first).Scan(&first), db.Close()))
		report, err := File(t.Context(), path, Thorough, nil)
		require.NoError(t, err)
		require.Contains(t, strings.Join(report.Problems, "\n")+"\n", test.want+first+"\n")
	}
	report, err := File(t.Context(), changed(t, `UPDATE release SET llps = 7`), Quick, nil)
	require.NoError(t, err)
	require.Equal(t, []string{fmt.Sprintf("table llp has 46 records, release %s has 7", report.Release)}, report.Problems)
	report, err = File(t.Context(), changed(t, `INSERT INTO search_index (search_index) VALUES ('delete-all')`), Quick, nil)
	require.NoError(t, err)
	require.Regexp(t, `^of (\d+) names of a sample, those that the index does not find: (\d+), the first is [A-Z0-9-]{8,}$`, report.Problems[0])
}

// TestASampleIsSpreadOverTheRegistry: one of fewer names than it has looks at all of them.
func TestASampleIsSpreadOverTheRegistry(t *testing.T) {
	for _, offset := range []string{"150", "450"} {
		for script, want := range map[string]string{
			`UPDATE company SET directors = 'x' WHERE cin = (SELECT cin FROM company ORDER BY cin LIMIT 1 OFFSET ` + offset + `)`:                  "directors list differs",
			`UPDATE search_name SET name = name || 'q' WHERE place = (SELECT place FROM search_name ORDER BY place LIMIT 1 OFFSET ` + offset + `)`: "that the index does not find: 1",
			`UPDATE search_name SET name = '' WHERE value = (SELECT value FROM search_name ORDER BY value LIMIT 1 OFFSET ` + offset + `)`:          "that the index does not find: 1",
		} {
			report, err := File(t.Context(), changed(t, script), Quick, nil)
			require.NoError(t, err)
			require.Contains(t, strings.Join(report.Problems, "\n"), want, script)
		}
	}
	large := verifier{report: Report{Tables: []Table{{Records: 3_000_000}, {Records: 900_000}}}}
	require.Equal(t, 3900, large.sampleEvery())
}

func TestThoroughFindsWhatASampleMayNot(t *testing.T) {
	for script, want := range map[string]string{
		`UPDATE search_name SET name = name || 'q' WHERE place = (SELECT min(place) FROM search_name)`: "search: ",
		`INSERT INTO content VALUES (1, 1, 'x', 1); INSERT INTO content_whole VALUES (1)`:              "hashes of the records and their sums differ in 1 of 4096 parts",
		`INSERT INTO content_part VALUES (1, 1, 1, 1); INSERT INTO content_whole VALUES (1)`:           "hashes of the records and their sums differ in 1 of 4096 parts",
		`INSERT INTO content_newer VALUES (1, 1, 'x', 1, NULL); INSERT INTO content_whole VALUES (1)`:  "hashes of the records and their sums differ in 1 of 4096 parts",
	} {
		report, err := File(t.Context(), changed(t, script), Thorough, nil)
		require.NoError(t, err)
		require.Len(t, report.Problems, 1, script)
		require.Contains(t, report.Problems[0], want)
	}
	report, err := File(t.Context(), changed(t, `PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'partner') WHERE name = 'pincode'`), Thorough, nil)
	if err == nil {
		require.False(t, report.Whole(), "a damaged file")
	}
}

// patience is a context that is done after it was asked some times.
type patience struct {
	context.Context
	left int
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestAnInterruptedVerificationFindsNothing, wherever it is interrupted, and at each of its last steps: there the next one
// does not hide that it goes on.
func TestAnInterruptedVerificationFindsNothing(t *testing.T) {
	path := changed(t, "")
	for _, depth := range []Depth{Quick, Thorough} {
		verify := func(patient *patience) error {
			db, err := schema.OpenReadOnly(path)
			require.NoError(t, err)
			held, err := db.Conn(t.Context())
			require.NoError(t, err)
			asked := patient.left
			report, err := onConnection(patient, held, depth, nil)
			require.Empty(t, report.Problems, "asked %d times", asked)
			require.NoError(t, errors.Join(held.Close(), db.Close()))
			return err
		}
		whole := &patience{t.Context(), math.MaxInt}
		require.NoError(t, verify(whole))
		asks := math.MaxInt - whole.left
		require.Greater(t, asks, 10)
		for asked := 0; asked < asks; asked += asked/6 + 1 {
			require.ErrorIs(t, verify(&patience{t.Context(), asked}), sqlite3.INTERRUPT)
		}
		for asked := asks - 10; asked < asks; asked++ {
			require.ErrorIs(t, verify(&patience{t.Context(), asked}), sqlite3.INTERRUPT)
		}
	}
}

// TestNamesThatCanNotBeReadAreNotTakenForWhole: their table is damaged, and the index by number is not.
func TestNamesThatCanNotBeReadAreNotTakenForWhole(t *testing.T) {
	path := changed(t, "")
	db, err := schema.OpenReadOnly(path)
	require.NoError(t, err)
	var page, bytes int64
	require.NoError(t, db.QueryRow(`SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'search_name'`).Scan(&page, &bytes))
	require.NoError(t, db.Close())
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteAt(make([]byte, bytes), (page-1)*bytes)
	require.NoError(t, errors.Join(err, file.Close()))
	_, err = File(t.Context(), path, Quick, nil)
	require.ErrorIs(t, err, sqlite3.CORRUPT)
}

// TestHashesOfAPushAreWhole, and one of them that differs is found.
func TestHashesOfAPushAreWhole(t *testing.T) {
	path := changed(t, "")
	run := func(do func(c *sqlite3.Conn) error) {
		name, err := schema.FileURI(path, false)
		require.NoError(t, err)
		c, err := sqlite3.Open(name)
		require.NoError(t, err)
		require.NoError(t, schema.Prepare(c, false))
		require.NoError(t, errors.Join(do(c), c.Close()))
	}
	run(func(c *sqlite3.Conn) error { return content.Fill(c, t.TempDir(), nil) })
	report, err := File(t.Context(), path, Thorough, nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	for _, column := range []string{"low", "high", "records"} {
		run(func(c *sqlite3.Conn) error {
			return c.Exec(`UPDATE content_part SET ` + column + ` = ` + column + ` + 1 WHERE part = (SELECT min(part) FROM content_part WHERE records > 0)`)
		})
		report, err := File(t.Context(), path, Thorough, nil)
		require.NoError(t, err)
		require.Contains(t, report.Problems[0], "in 1 of 4096 parts", column)
	}
}

// TestAnIndexWithoutSomeRowsIsFound: a lookup through it would find no record.
func TestAnIndexWithoutSomeRowsIsFound(t *testing.T) {
	report, err := File(t.Context(), changed(t, `CREATE INDEX some ON llp (city) WHERE city IS NULL; PRAGMA writable_schema = on;
		UPDATE sqlite_schema SET sql = 'CREATE INDEX some ON llp (city)' WHERE name = 'some'; PRAGMA writable_schema = off`), Thorough, nil)
	require.NoError(t, err)
	require.Contains(t, strings.Join(report.Problems, "\n"), "missing from index some")
}

// TestAPartWhoseRecordsAreGoneIsWhole: its sums are zero.
func TestAPartWhoseRecordsAreGoneIsWhole(t *testing.T) {
	for _, script := range []string{
		`INSERT INTO content_part VALUES (5, 0, 0, 0); INSERT INTO content_whole VALUES (1)`,
		`INSERT INTO content_whole VALUES (1); INSERT INTO content VALUES (1, 1, 'x', 1); INSERT INTO content_newer VALUES (1, 1, 'x', NULL, 1)`,
		`INSERT INTO content_whole VALUES (1); INSERT INTO content VALUES (1, 1, 'x', 1); INSERT INTO content_newer VALUES (1, 1, 'x', 1 << 40, 1)`,
		`INSERT INTO content_whole VALUES (1); INSERT INTO content VALUES (1, 1, 'x', 1); DROP TABLE content_newer; DELETE FROM schema_version WHERE version = 2`,
		`INSERT INTO content VALUES (1, 1, 'x', 1)`, // the hashes are not whole yet
	} {
		report, err := File(t.Context(), changed(t, script), Thorough, nil)
		require.NoError(t, err)
		require.Empty(t, report.Problems)
	}
}

func TestRecordsThatNameAMissingOneAreCounted(t *testing.T) {
	unlinked := func(script string) map[string]int64 {
		report, err := File(t.Context(), changed(t, script), Thorough, nil)
		require.NoError(t, err)
		return report.Unlinked
	}
	const added = `INSERT INTO appointment (cin, din, as_of) SELECT 'Z' || value, (SELECT min(din) FROM director), '2025-01-01' FROM json_each('[1, 2]');
		INSERT INTO appointment (cin, din, as_of) VALUES ('Z2', '99999999', '2025-01-01');
		INSERT INTO partner (llpin, who, din, name, as_of) SELECT 'AAZ-9998', din, din, name, '2025-01-01' FROM director LIMIT 2`
	before, after := unlinked(""), unlinked(added)
	require.Equal(t, map[string]int64{"appointments without their company": 1}, unlinked(`DELETE FROM appointment WHERE din NOT IN (SELECT din FROM director)
		OR cin NOT IN (SELECT cin FROM company); DELETE FROM partner WHERE llpin NOT IN (SELECT llpin FROM llp); UPDATE appointment SET cin = 'Z1' WHERE (cin, din) = (SELECT min(cin), din FROM appointment)`))
	require.EqualValues(t, 3, after["appointments without their company"]-before["appointments without their company"])
	require.EqualValues(t, 1, after["appointments without their director"]-before["appointments without their director"])
	require.EqualValues(t, 2, after["partners without their LLP"]-before["partners without their LLP"])
}

func TestDigestsTellFilesApart(t *testing.T) {
	digests := func(path string) (list []string) {
		report, err := File(t.Context(), path, Thorough, nil)
		require.NoError(t, err)
		for _, table := range report.Tables {
			list = append(list, table.Digest)
		}
		return list
	}
	plain, other := digests(changed(t, "")), digests(changed(t, `UPDATE llp SET city = city || 'x' WHERE llpin = (SELECT min(llpin) FROM llp WHERE city IS NOT NULL)`))
	require.Equal(t, plain, digests(changed(t, "VACUUM")))
	require.Equal(t, plain[0], other[0])
	require.NotEqual(t, plain[1], other[1])
	require.NotEqual(t, plain[1], digests(changed(t, `UPDATE llp SET older = '' WHERE older IS NULL`))[1], "an empty text is not NULL")
	const columns = `UPDATE llp SET main_division = %s, business_activity = %s WHERE llpin = (SELECT min(llpin) FROM llp)`
	require.NotEqual(t, digests(changed(t, fmt.Sprintf(columns, "'ab'", "'c'")))[1], digests(changed(t, fmt.Sprintf(columns, "'a'", "'bc'")))[1], "a value ends where it ends")
}

func TestWhatIsNoRegistryIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	_, err := File(t.Context(), path, Quick, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, make([]byte, 5000), 0o600))
	_, err = File(t.Context(), path, Quick, nil)
	require.Error(t, err)
}

// TestARegistryWithoutAReleaseIsUnfinished, not damaged: an import mends it. So is one with changes after its release.
func TestARegistryWithoutAReleaseIsUnfinished(t *testing.T) {
	for script, want := range map[string]bool{
		`DELETE FROM release`: true, `INSERT INTO unreleased VALUES (1, 0)`: true, `INSERT INTO search_pending VALUES ('x')`: true,
		``: false, `DELETE FROM director`: false,
	} {
		report, err := File(t.Context(), changed(t, script), Quick, nil)
		require.NoError(t, err)
		require.Equal(t, want, report.Unfinished, script)
		if report.Release == "" {
			require.Len(t, report.Problems, 1, "its records are compared with nothing")
		}
	}
}

// TestEveryTableIsCounted, those without a count in the release too.
func TestEveryTableIsCounted(t *testing.T) {
	path := changed(t, "")
	db, err := schema.OpenReadOnly(path)
	require.NoError(t, err)
	defer db.Close()
	report, err := File(t.Context(), path, Thorough, nil)
	require.NoError(t, err)
	counted := map[string]int64{}
	for _, table := range report.Tables {
		counted[table.Name] = table.Records
	}
	require.Len(t, counted, 7)
	for name, records := range counted {
		var n int64
		require.NoError(t, db.QueryRow("SELECT count(*) FROM "+name).Scan(&n))
		require.Equal(t, n, records, name)
		require.Positive(t, n, name)
	}
}
