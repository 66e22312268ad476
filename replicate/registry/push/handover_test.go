package push

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// ofSnapshot is a push of a snapshot to a primary that is a file, which another push filled.
func ofSnapshot(t *testing.T) *pusher {
	t.Helper()
	p, _ := onFile(t, pushed)
	p.config.Snapshots = t.TempDir()
	release, err := Snapshot(t.Context(), registryFile(t), p.config.Snapshots, nil)
	require.NoError(t, err)
	p.config.Release = release
	p.local, err = openSnapshot(t.Context(), p.config.Snapshots, release)
	require.NoError(t, err)
	t.Cleanup(func() { p.local.Close() })
	p.here = &side{db: p.local}
	return p
}

// TestAnEarlierHandOverLeavesNothingInTheNextFile: SQLite would take the pages of a log beside a file that
// was cut off into the file of another release.
func TestAnEarlierHandOverLeavesNothingInTheNextFile(t *testing.T) {
	p := ofSnapshot(t)
	path := filepath.Join(t.TempDir(), "seed.part")
	require.NoError(t, p.makeSeed(t.Context(), path))
	left, err := schema.OpenFile(path, false)
	require.NoError(t, err)
	_, err = left.Exec(`UPDATE company SET city = 'LEFT OVER'`)
	require.NoError(t, err)
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	require.NoError(t, left.Close())
	require.NoError(t, os.WriteFile(path+"-wal", log, 0o600))

	require.NoError(t, p.makeSeed(t.Context(), path))
	made, err := schema.OpenFile(path, true)
	require.NoError(t, err)
	defer made.Close()
	require.Equal(t, []string{"[{0 true}]"}, dump(t, made, `SELECT count(*) FROM company WHERE city = 'LEFT OVER'`))
}

// TestAPrimaryWithOtherContentIsNotCompleted, although it has as many records of each kind; nor is one that
// can't be read.
func TestAPrimaryWithOtherContentIsNotCompleted(t *testing.T) {
	p := ofSnapshot(t).toCopy(t, `UPDATE content SET hash = hash + 1 WHERE kind = 1 AND key = (SELECT min(key) FROM content WHERE kind = 1)`)
	require.ErrorIs(t, p.finish(t.Context()), ErrDiffers)
	require.NoError(t, p.there.db.Close())
	err := p.finish(t.Context())
	require.ErrorContains(t, err, "count the records of the primary")
	require.NotErrorIs(t, err, ErrDiffers)
}

// TestAFileThatIsHandedOverCountsAsSent.
func TestAFileThatIsHandedOverCountsAsSent(t *testing.T) {
	p := ofSnapshot(t)
	path := filepath.Join(t.TempDir(), "copy")
	p.there.sent = 10
	require.NoError(t, p.copySnapshot(t.Context(), path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, 10+info.Size(), p.there.sent)
}

// TestEdgesSeeAPushBeforeItsFirstRecord: they hold the release before from then on, and look each second.
// A first push, and a file, change nothing that they serve.
func TestEdgesSeeAPushBeforeItsFirstRecord(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, schema.Migrate(t.Context(), f.client, schema.Registry))
	for _, c := range []struct {
		before state
		whole  bool
		pauses []time.Duration
	}{
		{state{current: "r-1"}, false, []time.Duration{holdPause}}, {state{}, false, nil}, {state{current: "r-1"}, true, nil},
	} {
		var pauses []time.Duration
		p := &pusher{config: f.config("r-2"), there: &side{db: f.client}, token: "own"}
		p.report.Whole = c.whole
		p.config.Pause = func(_ context.Context, d time.Duration) {
			pauses = append(pauses, d)
			require.Equal(t, []string{"[{r-2 true}]"}, dump(t, f.primary(), `SELECT release FROM pushing WHERE token = 'own'`), "it is claimed")
		}
		require.NoError(t, p.begin(t.Context(), c.before))
		require.Equal(t, c.pauses, pauses, "%+v", c)
	}
	require.Greater(t, holdPause, 2*time.Second, "two looks of an edge")
}

// toCopy has a push go to a copy of the registry, with changes made there.
func (p *pusher) toCopy(t *testing.T, changes string) *pusher {
	t.Helper()
	registry := registryFile(t)
	_, err := Prepare(t.Context(), registry, nil)
	require.NoError(t, err)
	primary, err := schema.OpenFile(registry, false)
	require.NoError(t, err)
	t.Cleanup(func() { primary.Close() })
	_, err = primary.Exec(changes)
	require.NoError(t, err)
	p.there.db, p.config.Primary = primary, primary
	return p
}

// TestWhatWasReadToCompareIsCounted, each time anew.
func TestWhatWasReadToCompareIsCounted(t *testing.T) {
	p := ofSnapshot(t).toCopy(t, `UPDATE content SET hash = 1 WHERE key = (SELECT min(key) FROM content)`)
	for range 2 {
		_, err := p.compare(t.Context(), math.MaxInt)
		require.NoError(t, err)
		require.Equal(t, p.there.received, p.report.Compared)
	}
	require.Positive(t, p.report.Compared)
}

// TestEntriesOfAGenerationHaveTheirOwnPlaces: those of the one before have theirs until they are deleted.
func TestEntriesOfAGenerationHaveTheirOwnPlaces(t *testing.T) {
	p := ofSnapshot(t)
	var value string
	var place int64
	require.NoError(t, p.local.QueryRow(`SELECT value, place FROM search_name ORDER BY place DESC LIMIT 1`).Scan(&value, &place))
	for generation := range int64(generations) {
		list, err := p.readEntries(t.Context(), p.local, []string{value}, generation)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, place+generation*(1<<28), list[0].place)
	}
}

// TestEntriesThatTakeEachOthersPlacesAreLinked: written apart, the first would find its place taken.
func TestEntriesThatTakeEachOthersPlacesAreLinked(t *testing.T) {
	p := ofSnapshot(t).toCopy(t, "")
	primary := p.there.db
	var values []string
	var first, second int64
	for _, line := range dump(t, primary, `SELECT value FROM search_name ORDER BY place LIMIT 2`) {
		values = append(values, line[2:len(line)-len(" true}]")])
	}
	require.NoError(t, primary.QueryRow(`SELECT min(place), (SELECT place FROM search_name ORDER BY place LIMIT 1 OFFSET 1) FROM search_name`).Scan(&first, &second))
	for _, move := range [][2]any{{-1, values[0]}, {first, values[1]}, {second, values[0]}} {
		_, err := primary.Exec(`UPDATE search_name SET place = ? WHERE value = ?`, move[0], move[1])
		require.NoError(t, err)
	}
	links, err := p.findHolders(t.Context(), values)
	require.NoError(t, err)
	a, b := record{Kind: entry, Key: values[0]}, record{Kind: entry, Key: values[1]}
	require.ElementsMatch(t, []link{{a, b}, {b, a}}, links)
}

// TestAReleaseOfTheSameSecondIsNotOlder than the current one.
func TestAReleaseOfTheSameSecondIsNotOlder(t *testing.T) {
	p, _ := onFile(t, oneMade+twoMade)
	p.local = p.config.Primary
	for made, doubts := range map[int64]int{-1: 0, 0: 0, 1: 1} {
		list, err := p.origin(t.Context(), "r-1", made)
		require.NoError(t, err)
		require.Len(t, list, doubts, "%v", list)
	}
}

// TestASnapshotOfANewerProgramIsNotPushed: this one does not know all of its tables.
func TestASnapshotOfANewerProgramIsNotPushed(t *testing.T) {
	p := ofSnapshot(t)
	db, err := schema.OpenFile(snapshotPath(p.config.Snapshots, p.config.Release), false)
	require.NoError(t, err)
	_, err = db.Exec(`INSERT INTO schema_version SELECT 99, 0, max(database) FROM schema_version`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = openSnapshot(t.Context(), p.config.Snapshots, p.config.Release)
	var newer *schema.NewerError
	require.ErrorAs(t, err, &newer)
}

// TestADirectorIsWrittenWithItsCompanies: an answer would else show the new name beside an old row.
func TestADirectorIsWrittenWithItsCompanies(t *testing.T) {
	p := ofSnapshot(t).toCopy(t, "")
	var din, cin string
	require.NoError(t, p.local.QueryRow(`SELECT din, cin FROM appointment LIMIT 1`).Scan(&din, &cin))
	changed := change{record: record{Kind: director, Key: din}, here: true, there: true}
	links, err := p.findLinks(t.Context(), []change{changed})
	require.NoError(t, err)
	require.Contains(t, links, link{changed.record, record{Kind: company, Key: cin}})
}

// TestADryRunTellsWhatItTook, and refuses a primary of a newer program.
func TestADryRunTellsWhatItTook(t *testing.T) {
	registry := registryFile(t)
	release, err := Prepare(t.Context(), registry, nil)
	require.NoError(t, err)
	now := time.Unix(1000, 0)
	p, _ := onFile(t, "")
	config := Config{DryRun: true, File: registry, Release: release, Primary: p.there.db}
	config.Now = func() time.Time { now = now.Add(time.Second); return now }
	report, err := Run(t.Context(), config)
	require.NoError(t, err)
	require.Equal(t, time.Second, report.Elapsed)
	require.Positive(t, report.Records())
	_, err = p.there.db.Exec(`INSERT INTO schema_version SELECT 99, 0, max(database) FROM schema_version`)
	require.NoError(t, err)
	_, err = Run(t.Context(), config)
	var newer *schema.NewerError
	require.ErrorAs(t, err, &newer)
}

// TestProgressGoesUpToItsTotal.
func TestProgressGoesUpToItsTotal(t *testing.T) {
	last := map[Stage]Progress{}
	_, err := Snapshot(t.Context(), registryFile(t), t.TempDir(), func(now Progress) {
		require.LessOrEqual(t, now.Done, now.Total)
		require.GreaterOrEqual(t, now.Done, last[now.Stage].Done)
		last[now.Stage] = now
	})
	require.NoError(t, err)
	require.Positive(t, last[Hashing].Total)
	require.Positive(t, last[Copying].Total)
	require.Equal(t, last[Copying].Total, last[Copying].Done)
}
