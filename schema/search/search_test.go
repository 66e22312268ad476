package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/searchtest"
	"regedge/schema/search"
)

func refresh(t testing.TB, c *sqlite3.Conn) search.Change {
	t.Helper()
	change, err := search.Refresh(c)
	require.NoError(t, err)
	require.NoError(t, search.Check(c))
	return change
}

func changes(t testing.TB, c *sqlite3.Conn) (n int) {
	t.Helper()
	s := searchtest.Prepare(t, c, "SELECT total_changes()")
	require.True(t, s.Step())
	return s.ColumnInt(0)
}

// order lists the values of the index by place.
func order(t testing.TB, c *sqlite3.Conn) (list []string) {
	t.Helper()
	s := searchtest.Prepare(t, c, "SELECT value FROM search_name ORDER BY place")
	for s.Step() {
		list = append(list, s.ColumnText(0))
	}
	require.NoError(t, s.Err())
	return list
}

// TestADroppedIndexIsNotPrepared: an import that was interrupted would wait for the terms of millions of names.
func TestADroppedIndexIsNotPrepared(t *testing.T) {
	b := search.NewBuilder(t.TempDir())
	defer b.Close()
	require.NoError(t, b.Add("U55101GA2006PTC900001", "MADE-UP RESORTS PRIVATE LIMITED", "ACTIVE"))
	b.Drop()
	require.ErrorIs(t, b.Prepare(), search.ErrDropped)
	require.ErrorIs(t, b.Add("U55101GA2006PTC900002", "MADE-UP HOTELS PRIVATE LIMITED", "ACTIVE"), search.ErrDropped)
}

func TestRefreshOfABulkLoad(t *testing.T) {
	c, records := searchtest.Open(t), searchtest.Sample(t)
	searchtest.Put(t, c, records...)
	change := refresh(t, c)
	require.True(t, change.Rebuilt)
	require.EqualValues(t, len(records), change.Written)

	before := changes(t, c)
	require.Equal(t, search.Change{}, refresh(t, c), "nothing is marked")
	require.Equal(t, before, changes(t, c), "no rows were written")

	require.NoError(t, c.Exec(`INSERT INTO search_pending VALUES ('*')`))
	change = refresh(t, c)
	require.True(t, change.Rebuilt)
	require.EqualValues(t, len(records), change.Removed)
}

func TestRefreshOfFewChanges(t *testing.T) {
	c, records := searchtest.Open(t), searchtest.Sample(t)
	searchtest.Put(t, c, records...)
	refresh(t, c)

	r := records[7]
	searchtest.Put(t, c, r)
	require.Equal(t, search.Change{}, refresh(t, c), "the record is as it was")

	r.Name += " AND SONS"
	searchtest.Put(t, c, r, r, r)
	require.Equal(t, search.Change{Removed: 1, Written: 1}, refresh(t, c), "another name")

	r.Name = strings.ToLower(r.Name)
	searchtest.Put(t, c, r)
	require.Equal(t, search.Change{Removed: 1, Written: 1}, refresh(t, c), "the same name, spelt otherwise")

	r.Name = strings.ToUpper(r.Name[:1]) + r.Name[1:]
	searchtest.Put(t, c, r)
	require.Equal(t, search.Change{Removed: 1, Written: 1}, refresh(t, c), "and otherwise, as long as before")

	r.Status = "DISSOLVED"
	searchtest.Put(t, c, r)
	require.Equal(t, search.Change{Removed: 1, Written: 1}, refresh(t, c), "another status")
	r.Status = "STRUCK_OFF"
	searchtest.Put(t, c, r)
	require.Equal(t, search.Change{}, refresh(t, c), "as inactive as before")

	searchtest.Put(t, c, searchtest.Record{Value: r.Value, Name: "(?)", Status: "ACTIVE"})
	require.Equal(t, search.Change{Removed: 1}, refresh(t, c), "a name without a letter")

	require.NoError(t, c.Exec("DELETE FROM llp"))
	require.NoError(t, c.Exec("INSERT INTO search_pending VALUES ('AAZ-9001'), ('ZZZ-0000')"))
	require.NoError(t, c.Exec("INSERT INTO search_pending SELECT value FROM search_name WHERE length(value) = 8"))
	change := refresh(t, c)
	require.False(t, change.Rebuilt)
	require.Positive(t, change.Removed, "records that are gone")
	require.Zero(t, change.Written)
}

func TestRefreshInStepsGivesTheOrderOfARebuild(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	c, records := searchtest.Open(t), searchtest.Sample(t)
	random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	half := len(records) / 2
	searchtest.Put(t, c, records[:half]...)
	refresh(t, c)
	rebuilt := 0
	for rest := records[half:]; len(rest) > 0; {
		n := min(len(rest), 1+random.IntN(half/20))
		searchtest.Put(t, c, rest[:n]...)
		if refresh(t, c).Rebuilt {
			rebuilt++
		}
		rest = rest[n:]
	}
	stepwise := order(t, c)
	_, err := search.Rebuild(c)
	require.NoError(t, err)
	require.Equal(t, order(t, c), stepwise)
	require.Less(t, rebuilt, 5, "there is mostly room between neighbours")
}

func TestRefreshMakesRoomBetweenCrowdedNeighbours(t *testing.T) {
	c := searchtest.Open(t)
	name := func(i int) searchtest.Record {
		return searchtest.Record{
			Value: fmt.Sprintf("U10000GJ2000PTC%06d", i), Name: fmt.Sprintf("CROWD %06d", i), Status: "ACTIVE",
		}
	}
	for i := range 100 {
		searchtest.Put(t, c, name(i*10_000))
	}
	refresh(t, c)
	for i := range 300 {
		searchtest.Put(t, c, name(500_001+i))
		change := refresh(t, c)
		require.False(t, change.Rebuilt)
		require.Equal(t, change.Written, change.Removed+1)
	}
	stepwise := order(t, c)
	require.Len(t, stepwise, 400)
	require.NoError(t, search.Check(c))
	_, err := search.Rebuild(c)
	require.NoError(t, err)
	require.Equal(t, order(t, c), stepwise)
}

// TestACrowdMovesItsNeighboursAlone: a push brings every name that has another place.
func TestACrowdMovesItsNeighboursAlone(t *testing.T) {
	for _, status := range []string{"ACTIVE", "STRUCK_OFF"} {
		c := searchtest.Open(t)
		for i := range 5000 {
			searchtest.Put(t, c, searchtest.Record{Value: fmt.Sprintf("U10000GJ2000PTC%06d", i), Name: fmt.Sprintf("NAME %06d", i), Status: status})
		}
		refresh(t, c)
		before := order(t, c)
		for _, at := range []int{0, 2500, 4999} {
			for i := range 40 {
				searchtest.Put(t, c, searchtest.Record{Value: fmt.Sprintf("U2%04dGJ2000PTC%06d", at, i), Name: fmt.Sprintf("NAME %06d", at), Status: status})
			}
			change := refresh(t, c)
			require.False(t, change.Rebuilt)
			require.Less(t, change.Removed, int64(1000), "%s at %d", status, at)
			require.NoError(t, search.Check(c))
		}
		require.Len(t, order(t, c), len(before)+3*40)
	}
}

// TestThePlacesOfActiveNamesEndBeforeTheOthers, also where no room is left there.
func TestThePlacesOfActiveNamesEndBeforeTheOthers(t *testing.T) {
	c := searchtest.Open(t)
	record := func(n int, name, status string) searchtest.Record {
		return searchtest.Record{Value: fmt.Sprintf("U10000GJ2000PTC%06d", n), Name: name, Status: status}
	}
	searchtest.Put(t, c, record(1, "ONE", "ACTIVE"))
	for n := range 100 { // beside which one is few
		searchtest.Put(t, c, record(3+n, "THREE", "STRUCK_OFF"))
	}
	refresh(t, c)
	const last = 1<<32 - 1
	searchtest.Run(t, searchtest.Prepare(t, c, `INSERT INTO search_index (search_index, rowid, terms)
		SELECT 'delete', place, ?1 FROM search_name WHERE name = 'one'`), search.Terms("one"))
	require.NoError(t, c.Exec(fmt.Sprintf(`UPDATE search_name SET place = %d WHERE name = 'one'`, last)))
	searchtest.Run(t, searchtest.Prepare(t, c, fmt.Sprintf(`INSERT INTO search_index (rowid, terms) VALUES (%d, ?1)`, last)), search.Terms("one"))
	searchtest.Put(t, c, record(2, "TWO TWO", "ACTIVE"))
	require.False(t, refresh(t, c).Rebuilt)
	s := searchtest.Prepare(t, c, `SELECT max(place) FROM search_name WHERE name <> 'three'`)
	require.True(t, s.Step())
	require.LessOrEqual(t, s.ColumnInt64(0), int64(last))
	require.Equal(t, []string{record(1, "", "").Value, record(2, "", "").Value}, order(t, c)[:2])
}

// TestRefreshFailsWhole: a failed update or rebuild leaves the index as it was, and the marks.
func TestRefreshFailsWhole(t *testing.T) {
	refuse := func(event, table, when string) string {
		return `CREATE TRIGGER refuse BEFORE ` + event + ` ON ` + table + ` WHEN ` + when + ` BEGIN SELECT raise(ABORT, 'refused'); END`
	}
	rename := func(table, to string) string { return `ALTER TABLE ` + table + ` RENAME TO ` + to }
	const obey = `DROP TRIGGER refuse`
	for _, test := range []struct{ fault, undo, mark string }{
		{refuse("INSERT", "search_name", "new.name LIKE 'refused%'"), obey, ""},
		{refuse("INSERT", "search_name", "new.name LIKE 'refused%'"), obey, "*"},
		{refuse("DELETE", "search_name", "old.place > 48"), obey, ""},
		{refuse("DELETE", "search_name", "old.place > 48"), obey, "*"},
		{refuse("INSERT", "search_common", "new.names < 100"), obey, "*"},
		{refuse("DELETE", "search_pending", "true"), obey, ""},
		{refuse("DELETE", "search_pending", "true"), obey, "*"},
		{rename("search_common", "other"), rename("other", "search_common"), "*"},
		{rename("search_name", "other"), rename("other", "search_name"), "*"},
		{rename("llp", "other"), rename("other", "llp"), ""},
		{rename("llp", "other"), rename("other", "llp"), "*"},
		{rename("search_index", "other"), rename("other", "search_index"), ""},
		{refuse("DELETE", "search_name", "true"), obey, "crowd"},
		{refuse("INSERT", "search_name", "new.value < 'Z'"), obey, "crowd"},
	} {
		c, records := searchtest.Open(t), searchtest.Sample(t)[:200]
		searchtest.Put(t, c, records...)
		refresh(t, c)
		before := order(t, c)
		switch test.mark {
		case "crowd": // names at one place, whose neighbours must move
			for i := range 15 {
				searchtest.Put(t, c, searchtest.Record{Value: fmt.Sprintf("Z10000GJ2000PTC%06d", i), Name: records[50].Name, Status: records[50].Status})
			}
		case "*":
			require.NoError(t, c.Exec(`INSERT INTO search_pending VALUES ('*')`))
			fallthrough
		default:
			records[3].Name = "REFUSED " + records[3].Name
			searchtest.Put(t, c, records[2:5]...)
		}
		require.NoError(t, c.Exec(test.fault))
		_, err := search.Refresh(c)
		require.Error(t, err, test.fault)
		require.NoError(t, c.Exec(test.undo))
		require.Equal(t, before, order(t, c), test.fault)
		require.Positive(t, refresh(t, c).Written, "the marks were kept")
	}
}

// TestCheckFindsWhatIsWrong breaks one thing after another.
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

// TestARowThatCanNotBeReadIsNotTheLast: an index of what was read before it would lack the others.
func TestARowThatCanNotBeReadIsNotTheLast(t *testing.T) {
	c, records := searchtest.Open(t), searchtest.Sample(t)[:30]
	searchtest.Put(t, c, records...)
	refresh(t, c)
	before := order(t, c)
	marked := 0
	for _, changed := range [][]searchtest.Record{records[:2], records[2:12]} { // an update, and a rebuild
		for i := range changed {
			changed[i].Name += " AND SONS"
		}
		searchtest.Put(t, c, changed...)
		marked += len(changed)
		for asked := 1; ; asked++ {
			require.NoError(t, c.Exec("BEGIN"))
			once := &oneFailure{t.Context(), asked}
			usual := c.SetInterrupt(once)
			_, err := search.Refresh(c)
			c.SetInterrupt(usual)
			if err == nil {
				require.NoError(t, search.Check(c), "asked %d times", asked)
			} else {
				require.ErrorIs(t, err, sqlite3.INTERRUPT)
			}
			if !c.GetAutocommit() { // an interrupted change has rolled back by itself
				require.NoError(t, c.Exec("ROLLBACK"))
			}
			require.Equal(t, before, order(t, c))
			if once.left > 0 {
				require.NoError(t, err)
				require.Greater(t, asked, marked)
				break
			}
		}
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	insert := func(place, of string) string {
		return `INSERT INTO search_index (rowid, terms) SELECT ` + place + `, forms(name) FROM search_name WHERE place = ` + of
	}
	remove := func(place, of string) string {
		return `INSERT INTO search_index (search_index, rowid, terms) SELECT 'delete', ` + place + `, forms(name) FROM search_name WHERE place = ` + of
	}
	for script, want := range map[string]string{
		`DELETE FROM search_name WHERE place = 160`:                                  "no row for ",
		`DELETE FROM search_name WHERE place = (SELECT max(place) FROM search_name)`: "no row for ",
		`INSERT INTO search_name VALUES (161, 'A', 'a', '')`:                         "row of A without a record",
		`INSERT INTO search_name VALUES (161, 'Z', 'z', '')`:                         "row of Z without a record",
		`UPDATE search_name SET name = name || 'q' WHERE place = 160`:                "at place 160 is",
		`UPDATE search_name SET label = 'Q' WHERE place = 160`:                       "at place 160 is",
		`UPDATE search_name SET place = 170 WHERE place = 16`:                        "at place 170 is out of order",
		remove("160", "160"): "names at places whose sum is",
		insert("161", "160"): "names at places whose sum is",
		remove("160", "160") + ";" + insert("160", "320") + ";" + remove("320", "320") + ";" + insert("320", "160"): "names at places whose sum is",
		`INSERT INTO search_index (rowid, terms) VALUES (160, 'unheardof')`:                                         `term "unheardof" has 1 names, want none`,
	} {
		c := searchtest.Open(t)
		searchtest.Put(t, c, searchtest.Sample(t)[:100]...)
		refresh(t, c)
		require.NoError(t, c.CreateFunction("forms", 1, 0, func(ctx sqlite3.Context, arg ...sqlite3.Value) {
			ctx.ResultText(search.Terms(arg[0].Text()))
		}))
		require.NoError(t, c.Exec(script), script)
		err := search.Check(c)
		require.ErrorContains(t, err, want, script)
		require.Empty(t, texts(t, c, `SELECT name FROM temp.sqlite_schema`), "the table of the check is gone")
	}
}

// TestCheckNamesTheTermThatDiffers, and what it lacks.
func TestCheckNamesTheTermThatDiffers(t *testing.T) {
	c := searchtest.Open(t)
	searchtest.Put(t, c, searchtest.Sample(t)[:100]...)
	refresh(t, c)
	terms := search.Terms(texts(t, c, `SELECT name FROM search_name WHERE place = 160`)[0])
	s := searchtest.Prepare(t, c, `INSERT INTO search_index (search_index, rowid, terms) VALUES ('delete', 160, ?1)`)
	searchtest.Run(t, s, terms)
	var term string
	var count, sum, wantCount, wantSum int
	_, err := fmt.Sscanf(search.Check(c).Error(), "term %q has %d names at places whose sum is %d, want %d and %d", &term, &count, &sum, &wantCount, &wantSum)
	require.NoError(t, err)
	require.Contains(t, strings.Fields(terms), term)
	require.Equal(t, []int{1, 160}, []int{wantCount - count, wantSum - sum})
}

func BenchmarkRebuild(b *testing.B) {
	records := searchtest.Real(b)
	if len(records) == 0 {
		b.Skip("../shared/data is not there")
	}
	c := searchtest.Open(b)
	searchtest.Put(b, c, records...)
	for b.Loop() {
		_, err := search.Rebuild(c)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(records)), "ns/name")
}

func TestATermOf64NamesIsCommon(t *testing.T) {
	c := searchtest.Open(t)
	for i := range 64 {
		name := fmt.Sprintf("COMMON W%d", i)
		if i > 0 {
			name += " RARER"
		}
		searchtest.Put(t, c, searchtest.Record{Value: fmt.Sprintf("U10000GJ2000PTC%06d", i), Name: name, Status: "ACTIVE"})
	}
	refresh(t, c)
	require.Equal(t, []string{"64"}, texts(t, c, `SELECT names FROM search_common WHERE term = '"=common"'`))
	require.Empty(t, texts(t, c, `SELECT names FROM search_common WHERE term = '"=rarer"'`))
}

// TestTheLengthOfANameIsInCharacters: the shorter of two names comes first.
func TestTheLengthOfANameIsInCharacters(t *testing.T) {
	c := searchtest.Open(t)
	searchtest.Put(t, c,
		searchtest.Record{Value: "U10000GJ2000PTC000001", Name: "AAAAA", Status: "ACTIVE"},
		searchtest.Record{Value: "U10000GJ2000PTC000002", Name: "ZZ\u00c9\u00c9", Status: "ACTIVE"})
	refresh(t, c)
	require.Equal(t, []string{"U10000GJ2000PTC000002", "U10000GJ2000PTC000001"}, order(t, c))
}

// TestABuilderReplacesTheIndex and deletes the marks and its files.
func TestABuilderReplacesTheIndex(t *testing.T) {
	c, list, folder := searchtest.Open(t), longLists(20), t.TempDir()
	searchtest.Put(t, c, list...)
	refresh(t, c)
	list[3].Name = "RENAMED"
	searchtest.Put(t, c, list[3])
	b := search.NewBuilder(folder)
	for _, r := range list {
		require.NoError(t, b.Add(r.Value, r.Name, r.Status))
	}
	require.NoError(t, b.Add("U00000GA2020PTC999999", "(?)", "ACTIVE"), "a name without a letter")
	require.NoError(t, b.Prepare())
	change, err := b.Install(c)
	require.NoError(t, err)
	require.Equal(t, search.Change{Rebuilt: true, Removed: 20, Written: 20}, change)
	require.NoError(t, b.Close())
	require.Empty(t, testkit.OpenFiles(t, folder))
	require.Empty(t, texts(t, c, `SELECT value FROM search_pending`))
	require.NoError(t, search.Check(c))
}

// TestEqualNamesAreInTheOrderOfTheirNumbers, so that pages of results do not change.
func TestEqualNamesAreInTheOrderOfTheirNumbers(t *testing.T) {
	c, list := searchtest.Open(t), equalNames(5)
	searchtest.Put(t, c, list[4], list[1], list[3])
	refresh(t, c)
	searchtest.Put(t, c, list[2], list[0])
	refresh(t, c)
	for i, value := range order(t, c) {
		require.Equal(t, list[i].Value, value)
	}
}

// TestANameInCapitalsHasNoLabel: pages of the index's table hold more names without it.
func TestANameInCapitalsHasNoLabel(t *testing.T) {
	c := searchtest.Open(t)
	searchtest.Put(t, c,
		searchtest.Record{Value: "U10000GJ2000PTC000001", Name: "AAA PRIVATE LIMITED", Status: "ACTIVE"},
		searchtest.Record{Value: "U10000GJ2000PTC000002", Name: "B.B. Private Limited", Status: "ACTIVE"})
	refresh(t, c)
	require.Equal(t, []string{"", "B.B. Private Limited"}, texts(t, c, `SELECT label FROM search_name ORDER BY value`))
}
