package content_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/content"
	"regedge/schema/generate"
	"regedge/schema/importer"
)

// registry makes a registry file, and returns a function that imports one more file into it.
func registry(t *testing.T) (path string, more func(name, text, asOf string)) {
	t.Helper()
	dir := t.TempDir()
	made, err := generate.Run(t.Context(), generate.Config{Companies: 300, Seed: 5, Out: dir})
	require.NoError(t, err)
	config := importer.Config{Registry: filepath.Join(dir, "registry.db"), AsOf: "2025-05-05"}
	for _, file := range made.Files {
		config.Files = append(config.Files, filepath.Join(dir, filepath.Base(file.Name)))
	}
	_, err = importer.Run(context.Background(), config)
	require.NoError(t, err)
	return config.Registry, func(name, text, asOf string) {
		t.Helper()
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := importer.Run(t.Context(), importer.Config{Registry: config.Registry, Files: []string{file}, AsOf: asOf})
		require.NoError(t, err)
	}
}

func open(t *testing.T, path string) *sqlite3.Conn {
	t.Helper()
	c, err := sqlite3.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(), "a statement is left open") })
	require.NoError(t, schema.Prepare(c, false))
	return c
}

// rows reads a query's rows, each as one text.
func rows(t *testing.T, c *sqlite3.Conn, query string) (list []string) {
	t.Helper()
	s, _, err := c.Prepare(query)
	require.NoError(t, err)
	defer s.Close()
	for s.Step() {
		list = append(list, s.ColumnText(0))
	}
	require.NoError(t, s.Err())
	return list
}

// hashes are the hashes of all records and their sums, each row as one text.
func hashes(t *testing.T, c *sqlite3.Conn) []string {
	t.Helper()
	return append(rows(t, c, `SELECT bucket || ' ' || kind || ' ' || key || ' ' || hash FROM (
		SELECT bucket, kind, key, hash FROM content WHERE (bucket, kind, key) NOT IN (SELECT bucket, kind, key FROM content_newer)
		UNION ALL SELECT bucket, kind, key, hash FROM content_newer WHERE hash IS NOT NULL) ORDER BY bucket, kind, key`),
		rows(t, c, `SELECT part || ' ' || records || ' ' || low || ' ' || high FROM content_part WHERE records > 0 ORDER BY part`)...)
}

// requireAsFilled requires that the hashes are those that Fill would make.
func requireAsFilled(t *testing.T, c *sqlite3.Conn) {
	t.Helper()
	state, err := content.Look(c)
	require.NoError(t, err)
	require.Equal(t, content.State{Whole: true}, state)
	kept := hashes(t, c)
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	require.Equal(t, hashes(t, c), kept)
}

// state reads how far the hashes are complete.
func state(t *testing.T, c *sqlite3.Conn) content.State {
	t.Helper()
	s, err := content.Look(c)
	require.NoError(t, err)
	return s
}

func TestAnImportKeepsTheHashes(t *testing.T) {
	path, more := registry(t)
	c := open(t, path)
	require.False(t, state(t, c).Complete(), "the first import of a file makes none")
	var done, total int64
	require.NoError(t, content.Fill(c, t.TempDir(), func(d, n int64) { done, total = d, n }))
	require.Zero(t, done, "the progress begins at once")
	require.Positive(t, total)
	require.Len(t, rows(t, c, `SELECT key FROM content`), int(total))
	before := hashes(t, c)

	company := rows(t, c, `SELECT cin FROM company WHERE directors IS NOT NULL LIMIT 1`)[0]
	director := rows(t, c, `SELECT din FROM appointment WHERE cin = '`+company+`' LIMIT 1`)[0]
	more("directors.csv", "din,name,disqualified,designation,appointment_date\n"+director+",ANOTHER NAME,true,,\n", "2025-06-01")
	require.Equal(t, []string{"ANOTHER NAME"}, rows(t, c, `SELECT name FROM director WHERE din = '`+director+`'`))
	require.NotEqual(t, before, hashes(t, c))
	requireAsFilled(t, c)
}

func TestWhatIsChangedByHandIsMarked(t *testing.T) {
	path, _ := registry(t)
	c := open(t, path)
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	for _, statement := range []string{
		`UPDATE company SET city = 'ELSEWHERE' WHERE rowid = (SELECT min(rowid) FROM company)`,
		`UPDATE company SET city = NULL WHERE rowid = (SELECT min(rowid) FROM company)`,
		`UPDATE company SET city = 'THERE' WHERE rowid = (SELECT min(rowid) FROM company)`,
		`DELETE FROM appointment WHERE din = (SELECT max(din) FROM appointment)`,
		`INSERT INTO director (din, name, as_of, last_updated) VALUES ('99999999', 'NEW', '2025-01-01', 1)`,
		`UPDATE llp SET llpin = 'ZZZ-9999' WHERE llpin = (SELECT max(llpin) FROM llp)`,
		`DELETE FROM pincode WHERE pincode = (SELECT max(pincode) FROM pincode)`,
		`UPDATE search_name SET label = 'Other' WHERE place = (SELECT min(place) FROM search_name)`,
	} {
		require.NoError(t, c.Exec(statement))
		require.Positive(t, state(t, c).Pending, statement)
		require.NoError(t, content.Refresh(c))
		require.True(t, state(t, c).Complete(), statement)
	}
	requireAsFilled(t, c)
	require.NoError(t, c.Exec(`UPDATE company SET as_of = '2030-01-01', older = NULL`))
	require.True(t, state(t, c).Complete(), "the dates of sources are no content")
}

// TestAFailureChangesNothing: hashes that a push has compared stay those of the primary.
func TestAFailureChangesNothing(t *testing.T) {
	path, _ := registry(t)
	c := open(t, path)
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	require.NoError(t, c.Exec(`UPDATE company SET city = 'ELSEWHERE' WHERE rowid = (SELECT min(rowid) FROM company);
		DELETE FROM director WHERE din = (SELECT max(din) FROM director)`))
	before := hashes(t, c)
	fill := func() error { return content.Fill(c, t.TempDir(), nil) }
	refresh := func() error { return content.Refresh(c) }
	for _, test := range []struct {
		name, refused string
		do            func() error
	}{
		{"Fill inserts hashes", "INSERT ON content", fill},
		{"Fill inserts sums", "INSERT ON content_part", fill},
		{"Fill inserts its end", "INSERT ON content_whole", fill},
		{"Fill deletes hashes", "DELETE ON content", fill},
		{"Fill deletes marks", "DELETE ON content_pending", fill},
		{"Fill reads partners", "partner", fill},
		{"Refresh stores hashes", "INSERT ON content_newer", refresh},
		{"Refresh deletes marks", "DELETE ON content_pending", refresh},
		{"Refresh reads appointments", "appointment", refresh},
		{"Refresh reads what the hashes were", "content", refresh},
	} {
		fault, undo := `CREATE TRIGGER refuse BEFORE `+test.refused+` BEGIN SELECT raise(ABORT, 'refused'); END`, `DROP TRIGGER refuse`
		if !strings.Contains(test.refused, " ") {
			fault, undo = `ALTER TABLE `+test.refused+` RENAME TO other`, `ALTER TABLE other RENAME TO `+test.refused
		}
		require.NoError(t, c.Exec(fault), test.name)
		require.Error(t, test.do(), test.name)
		require.NoError(t, c.Exec(undo), test.name)
		require.Equal(t, before, hashes(t, c), test.name)
		require.Equal(t, content.State{Whole: true, Pending: 2}, state(t, c), test.name)
	}
	require.NoError(t, content.Refresh(c))
	requireAsFilled(t, c)

	require.NoError(t, c.Exec(`DELETE FROM pincode WHERE pincode = (SELECT max(pincode) FROM pincode); ALTER TABLE content_part RENAME TO other`))
	require.Error(t, content.Refresh(c), "it counts the records")
	require.Equal(t, content.State{Whole: true, Pending: 1}, state(t, c))
}

// oneFailure is a context that has ended when it is asked for the last time of left, and only then.
type oneFailure struct {
	context.Context
	left int
}

func (f *oneFailure) Err() error {
	if f.left--; f.left == 0 {
		return context.Canceled
	}
	return nil
}

// TestARowThatCanNotBeReadIsNotTheLast: without the hashes of the others a push would remove their records.
func TestARowThatCanNotBeReadIsNotTheLast(t *testing.T) {
	path, _ := registry(t)
	c := open(t, path)
	folder := t.TempDir()
	require.NoError(t, content.Fill(c, folder, nil))
	require.NoError(t, c.Exec(`UPDATE company SET city = 'ELSEWHERE' WHERE rowid <= (SELECT rowid FROM company ORDER BY rowid LIMIT 1 OFFSET 3);
		DELETE FROM director WHERE din = (SELECT max(din) FROM director)`))
	for name, do := range map[string]func() error{
		"fill": func() error { return content.Fill(c, folder, nil) }, "refresh": func() error { return content.Refresh(c) },
	} {
		require.NoError(t, c.Exec("BEGIN"))
		require.NoError(t, do())
		want := hashes(t, c)
		require.NoError(t, c.Exec("ROLLBACK"))
		for asked := 1; ; asked += asked/20 + 1 {
			require.NoError(t, c.Exec("BEGIN"))
			once := &oneFailure{t.Context(), asked}
			usual := c.SetInterrupt(once)
			err := do()
			c.SetInterrupt(usual)
			if err == nil {
				require.Equal(t, want, hashes(t, c), "%s, asked %d times", name, asked)
				require.True(t, state(t, c).Complete())
			} else {
				require.ErrorIs(t, err, sqlite3.INTERRUPT)
			}
			if !c.GetAutocommit() { // an interrupted change has rolled back by itself
				require.NoError(t, c.Exec("ROLLBACK"))
			}
			require.False(t, state(t, c).Complete(), "as before")
			if once.left > 0 {
				require.NoError(t, err)
				require.Greater(t, asked, 10, name)
				break
			}
		}
	}
}

// TestHashesStayTheSame in every version: primaries hold those of earlier ones.
func TestHashesStayTheSame(t *testing.T) {
	require.Equal(t, int64(0x63b0c44298fc1c14), content.Hash(nil), "the beginning of the SHA-256, without its sign")
	require.Equal(t, int64(0x7168ccdd91548c5a), content.Hash([]byte("company")))
	require.Equal(t, int64(0x8a9b51ef), content.Record{Kind: content.Company, Key: "U10000GJ2000PTC000001"}.Bucket())
}

func TestKindsHaveTheNamesOfRecords(t *testing.T) {
	var names []string
	for _, kind := range content.Kinds {
		names = append(names, kind.String())
		require.Contains(t, content.Tables, kind)
	}
	require.Equal(t, []string{"companies", "LLPs", "directors", "pincodes", "search entries"}, names)
}

// TestEachColumnIsHashedOrADate: a column that is forgotten here is never pushed.
func TestEachColumnIsHashedOrADate(t *testing.T) {
	path, _ := registry(t)
	c := open(t, path)
	for kind, tables := range content.Tables {
		for _, table := range tables {
			columns := rows(t, c, "SELECT name FROM pragma_table_info('"+table.Name+"') WHERE name <> 'rowid'")
			require.ElementsMatch(t, columns, table.Columns, "%v", kind)
			if primary := rows(t, c, "SELECT name FROM pragma_table_info('"+table.Name+"') WHERE pk > 0 ORDER BY pk"); kind != content.Entry {
				require.Equal(t, primary, table.Columns[:table.Primary])
			}
			require.Contains(t, table.Columns, table.Key)
		}
	}
}

func TestManyChangesAreLeftToTheNextFill(t *testing.T) {
	path, _ := registry(t)
	c := open(t, path)
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	require.NoError(t, c.Exec(`UPDATE company SET city = 'ELSEWHERE'; UPDATE director SET name = name || ' X'`))
	require.NoError(t, content.Refresh(c))
	require.Equal(t, content.State{}, state(t, c))
	require.Empty(t, hashes(t, c))
	require.NoError(t, c.Exec(`UPDATE company SET city = 'THERE'`))
	require.Equal(t, content.State{}, state(t, c), "nothing is marked without hashes")
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	requireAsFilled(t, c)
}

// TestHashesOfACopyAreMadeAnew: a primary's database, or a snapshot, can be imported into, and marks nothing.
func TestHashesOfACopyAreMadeAnew(t *testing.T) {
	path, _ := registry(t)
	c := open(t, path)
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	before := hashes(t, c)
	require.NoError(t, c.Exec(`DROP TRIGGER mark_partner_delete`))
	require.False(t, state(t, c).Complete(), "a change could be missed")
	require.NoError(t, content.Untrack(c))
	require.NoError(t, c.Exec(`INSERT INTO content_newer SELECT bucket, kind, key, 5, hash FROM content LIMIT 3;
		UPDATE company SET city = 'X' WHERE cin = (SELECT min(cin) FROM company)`))
	require.False(t, state(t, c).Complete())
	require.NoError(t, content.Refresh(c))
	require.False(t, state(t, c).Complete())
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	require.True(t, state(t, c).Complete())
	require.Empty(t, rows(t, c, `SELECT key FROM content_newer`))
	require.Len(t, hashes(t, c), len(before))
}

// TestContentStaysAsItWasFilled: while the primary has the same, a push need not read it.
func TestContentStaysAsItWasFilled(t *testing.T) {
	path, _ := registry(t)
	c := open(t, path)
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	const filled = `SELECT key || hash FROM content ORDER BY bucket, kind, key`
	before := rows(t, c, filled)
	city := rows(t, c, `SELECT city FROM company ORDER BY cin LIMIT 1`)[0]
	newer := func(statement string) []string {
		t.Helper()
		require.NoError(t, c.Exec(statement))
		require.NoError(t, content.Refresh(c))
		require.Equal(t, before, rows(t, c, filled))
		requireSums(t, c)
		return rows(t, c, `SELECT kind || (hash IS NOT NULL) || (was IS NOT NULL) || (hash IS was) FROM content_newer ORDER BY kind`)
	}
	require.Equal(t, []string{"1110"}, newer(`UPDATE company SET city = 'ELSEWHERE' WHERE cin = (SELECT min(cin) FROM company)`))
	require.Equal(t, []string{"1110", "4010"}, newer(`DELETE FROM pincode WHERE pincode = (SELECT max(pincode) FROM pincode)`))
	require.Equal(t, []string{"1111", "3100", "4010"}, newer(`UPDATE company SET city = '`+city+`' WHERE cin = (SELECT min(cin) FROM company);
		INSERT INTO director (din, name, as_of, last_updated) VALUES ('99999999', 'NEW', '2025-01-01', 1)`))
	require.Equal(t, []string{"1111", "3001", "4010"}, newer(`DELETE FROM director WHERE din = '99999999';
		UPDATE llp SET contribution = contribution + 1; UPDATE llp SET contribution = contribution - 1`), "a record that is as it was has no row")
	requireAsFilled(t, c)
}

// TestRecordsThatShareABucketAreKeptApart: of India's 12 million some 30,000 do.
func TestRecordsThatShareABucketAreKeptApart(t *testing.T) {
	path, _ := registry(t)
	c := open(t, path)
	require.NoError(t, content.Fill(c, t.TempDir(), nil))
	cin := rows(t, c, `SELECT min(cin) FROM company`)[0]
	of := ` FROM content WHERE kind = 1 AND key = '` + cin + `'`
	was := rows(t, c, `SELECT hash`+of)[0]
	require.NoError(t, c.Exec(`CREATE TEMP TABLE beside AS SELECT bucket, 1 AS kind, '!' AS key, 5 AS hash`+of+` UNION ALL SELECT bucket, 1, '~', 6`+of+
		` UNION ALL SELECT bucket, 0, key, 7`+of+` UNION ALL SELECT bucket, 2, key, 8`+of+`;
		INSERT INTO content SELECT * FROM beside; INSERT INTO content_newer SELECT bucket, kind, key, 9, hash FROM beside;
		INSERT INTO content_newer SELECT bucket + 1, 1, key, 9, NULL`+of))
	newer := `SELECT kind || key || ' ' || hash || ' ' || coalesce(was, '') FROM content_newer WHERE (bucket, kind, key) IN (SELECT bucket, 1, key` + of + `)`
	mark := `UPDATE company SET city = city || 'X' WHERE cin = '` + cin + `';`
	require.NoError(t, c.Exec(mark+`UPDATE company SET city = substr(city, 1, length(city) - 1) WHERE cin = '`+cin+`'`))
	require.NoError(t, content.Refresh(c))
	require.Empty(t, rows(t, c, newer), "it is as it was")
	require.NoError(t, c.Exec(mark))
	require.NoError(t, content.Refresh(c))
	got := rows(t, c, newer)
	require.Len(t, got, 1)
	require.True(t, strings.HasSuffix(got[0], " "+was), got[0])
	require.Equal(t, []string{"5"}, rows(t, c, `SELECT count(*) FROM content_newer WHERE hash = 9`))
	requireSums(t, c)
}

// requireSums requires that the stored sums of each part are the sums of its hashes.
func requireSums(t *testing.T, c *sqlite3.Conn) {
	t.Helper()
	require.Equal(t, rows(t, c, `SELECT part || ' ' || sum(records) || ' ' || sum(low) || ' ' || sum(high) FROM (
		SELECT bucket >> 20 AS part, 1 AS records, hash & 4294967295 AS low, hash >> 32 AS high FROM content
		UNION ALL SELECT bucket >> 20, records, low, high FROM content_newer) GROUP BY part HAVING sum(records) > 0 ORDER BY part`),
		rows(t, c, `SELECT part || ' ' || records || ' ' || low || ' ' || high FROM content_part WHERE records > 0 ORDER BY part`))
}
