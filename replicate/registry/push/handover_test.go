package push

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
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
	left, err := schema.OpenFile(path)
	require.NoError(t, err)
	_, err = left.Exec(`UPDATE company SET city = 'LEFT OVER'`)
	require.NoError(t, err)
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	require.NoError(t, left.Close())
	require.NoError(t, os.WriteFile(path+"-wal", log, 0o600))

	require.NoError(t, p.makeSeed(t.Context(), path))
	made, err := schema.OpenReadOnly(path)
	require.NoError(t, err)
	defer made.Close()
	require.Equal(t, []string{"[{0 true}]"}, dump(t, made, `SELECT count(*) FROM company WHERE city = 'LEFT OVER'`))

	// The rows of the primary take the place of the file's own, or it is not completed.
	writable, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer writable.Close()
	_, err = writable.Exec(`INSERT INTO heartbeat (id, beat) VALUES (1, 7);
		CREATE TRIGGER stays BEFORE DELETE ON heartbeat BEGIN SELECT RAISE(ABORT, 'it stays'); END`)
	require.NoError(t, err)
	require.ErrorContains(t, p.complete(t.Context(), writable), "keep the rows of heartbeat: ")
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
		before          state
		whole, rollback bool
		pauses          []time.Duration
	}{
		{state{current: "r-1"}, false, false, []time.Duration{holdPause}}, {state{current: "r-1"}, false, true, []time.Duration{holdPause}},
		{state{}, false, false, nil}, {state{current: "r-1"}, true, false, nil},
	} {
		var pauses []time.Duration
		p := &pusher{config: f.config("r-2"), there: &side{db: f.client}, token: "own"}
		p.report.Whole, p.config.Rollback = c.whole, c.rollback
		p.config.Pause = func(_ context.Context, d time.Duration) {
			pauses = append(pauses, d)
			require.Equal(t, []string{"[{r-2 true}]"}, dump(t, f.primary(), `SELECT release FROM pushing WHERE token = 'own'`), "it is claimed")
		}
		require.NoError(t, p.begin(t.Context(), c.before))
		require.Equal(t, c.pauses, pauses, "%+v", c)
	}
	require.Greater(t, holdPause, 2*time.Second, "two looks of an edge")
}

// TestAClaimBeginsAnewAndKeepsTheSearch: transactions are numbered from 1 again, and the search has the
// places that it had, or those of the next generation, of which there are eight.
func TestAClaimBeginsAnewAndKeepsTheSearch(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, schema.Migrate(t.Context(), f.client, schema.Registry))
	sqldtest.Exec(t, f.server, `INSERT INTO pushing (id, release, back, token, claimed, batch) VALUES (1, '', 0, 't', 't', 1)`)
	sqldtest.Exec(t, f.server, `INSERT INTO search_push (id, generation, terms) VALUES (1, 7, 77)`)
	p := &pusher{config: f.config("r-2"), there: &side{db: f.client}, token: "own"}
	before := state{current: "r-1", token: "t", pushed: true, generation: 7, terms: 77}
	require.NoError(t, p.begin(t.Context(), before))
	require.Equal(t, []string{"[{7 true} {77 true}]"}, dump(t, f.primary(), `SELECT generation, terms FROM search_push`))
	p.sequence++
	done, err := p.committed(t.Context())
	require.NoError(t, err)
	require.False(t, done, "the first transaction of the push before is not its own")

	p.sequence, p.report.NewGeneration = 0, true
	require.NoError(t, p.begin(t.Context(), before))
	require.Zero(t, p.generation)
	var terms int64
	require.NoError(t, f.primary().QueryRow(`SELECT terms FROM search_push WHERE generation = 0`).Scan(&terms))
	require.Equal(t, termsMark(), terms)
	require.Len(t, dump(t, f.primary(), `SELECT 1 FROM pushing WHERE dirty = 1`), 1, "its first record is written")

	ctx, cancel := context.WithCancel(t.Context())
	p.config.Pause = func(context.Context, time.Duration) { cancel() }
	p.sequence, p.report.NewGeneration = 0, false
	require.ErrorIs(t, p.begin(ctx, before), context.Canceled)
}

// toCopy has a push go to a copy of the registry, with changes made there.
func (p *pusher) toCopy(t *testing.T, changes string) *pusher {
	t.Helper()
	registry := registryFile(t)
	_, err := Prepare(t.Context(), registry, nil)
	require.NoError(t, err)
	primary, err := schema.OpenFile(registry)
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

// TestEntriesOfAGenerationHaveTheirOwnPlaces: entries of the previous generation keep theirs until they are deleted.
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

	p.generation = 3
	_, err = primary.Exec(`UPDATE search_name SET place = place + (3 << 28) WHERE value IN (?, ?)`, values[0], values[1])
	require.NoError(t, err)
	links, err = p.findHolders(t.Context(), values)
	require.NoError(t, err)
	require.ElementsMatch(t, []link{{a, b}, {b, a}}, links, "in the generation of the primary")

	require.NoError(t, primary.Close())
	_, err = p.findLinks(t.Context(), []change{{record: a, here: true, there: true}})
	require.Error(t, err)
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
	db, err := schema.OpenFile(snapshotPath(p.config.Snapshots, p.config.Release))
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
	_, err := p.there.db.Exec(`INSERT INTO appointment (cin, din, as_of) VALUES ('left', ?, '2025-01-01')`, din)
	require.NoError(t, err)
	links, err := p.findLinks(t.Context(), []change{changed})
	require.NoError(t, err)
	require.Contains(t, links, link{changed.record, record{Kind: company, Key: cin}})
	require.Contains(t, links, link{changed.record, record{Kind: company, Key: "left"}}, "also those that it leaves")
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

// TestAPushOfManyDifferencesIsOfAWholeFile: of more than a twentieth of the primary's records.
func TestAPushOfManyDifferencesIsOfAWholeFile(t *testing.T) {
	p := ofSnapshot(t).toCopy(t, `UPDATE content SET hash = hash + 1 WHERE kind = 1 AND key IN (SELECT key FROM content WHERE kind = 1 LIMIT 5)`)
	p.config.PrimaryDir = "a directory"
	var records int
	require.NoError(t, p.there.db.QueryRow(`SELECT count(*) FROM content`).Scan(&records))
	limit, err := p.listLimit(t.Context())
	require.NoError(t, err)
	require.Equal(t, records/20, limit)
	for limit, whole := range map[int]bool{4: true, 5: false} {
		p.report.Whole = false
		changes, err := p.compare(t.Context(), limit)
		require.NoError(t, err)
		require.Equal(t, whole, p.report.Whole, "5 differ, of %d", limit)
		require.Equal(t, whole, len(changes) == 0)
		require.EqualValues(t, 5, p.report.Records())
	}
}

// TestCommonTermsAreWrittenWhenTheyDiffer from those that the last push left, by the end of its digest.
func TestCommonTermsAreWrittenWhenTheyDiffer(t *testing.T) {
	p := ofSnapshot(t)
	_, hash, err := p.commonTerms(t.Context())
	require.NoError(t, err)
	for digest, statements := range map[string]int{"": 2, "1-2-3": 2, "1-2-3-other": 2, "1-2-3" + hash: 0} {
		p.lastDigest = digest
		list, _, err := p.commonTerms(t.Context())
		require.NoError(t, err)
		require.Len(t, list, statements, digest)
	}
}

// TestAFileThatIsHandedOverSaysThatItsPushIsComplete.
func TestAFileThatIsHandedOverSaysThatItsPushIsComplete(t *testing.T) {
	p := ofSnapshot(t).toCopy(t, pushed+`UPDATE pushing SET release = 'r-9', dirty = 1; INSERT INTO heartbeat (id, beat) VALUES (1, 7);
		INSERT INTO release_stack (release) VALUES ('a'), ('b')`)
	path := filepath.Join(t.TempDir(), "seed")
	require.NoError(t, p.makeSeed(t.Context(), path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "it is for its owner")
	made := openRegistry(t, path)
	require.Equal(t, []string{"[{ true} {0 true}]"}, dump(t, made, `SELECT release, dirty FROM pushing`))
	require.Equal(t, []string{"[{7 true}]"}, dump(t, made, `SELECT beat FROM heartbeat`), "else edges have no age of it")
	previous, err := Previous(t.Context(), made)
	require.NoError(t, err)
	require.Equal(t, "b", previous, "what a rollback goes back to")
	var terms int64
	require.NoError(t, made.QueryRow(`SELECT terms FROM search_push WHERE generation = 0`).Scan(&terms))
	require.Equal(t, termsMark(), terms)
	_, hash, err := p.commonTerms(t.Context())
	require.NoError(t, err)
	var digest string
	require.NoError(t, made.QueryRow(`SELECT digest FROM release WHERE id = ?`, p.config.Release).Scan(&digest))
	require.True(t, strings.HasSuffix(digest, hash), digest)
}

// TestEveryKindOfRecordIsGuarded: when many of it would go, the push is confirmed. What another
// push left undone excuses nothing.
func TestEveryKindOfRecordIsGuarded(t *testing.T) {
	p := ofSnapshot(t).toCopy(t, "")
	p.report.Counts = noCounts()
	asked := 0
	p.config.Ask = func(Report) error { asked++; return errNo }
	require.ErrorIs(t, p.confirm(t.Context(), state{pushing: "another"}), errNo, "also without a doubt, if it is asked each time")
	require.NoError(t, p.confirm(t.Context(), state{pushing: p.config.Release}))
	require.Equal(t, 1, asked)
	for _, k := range kinds {
		var had int64
		require.NoError(t, p.there.db.QueryRow(`SELECT count(*) FROM content WHERE kind = ?`, k).Scan(&had))
		for removed, list := range map[int64][]string{
			had / removedShare: nil, had/removedShare + 1: {fmt.Sprintf("%d of %d %v would go", had/removedShare+1, had, k)},
		} {
			p.report.Counts = noCounts()
			p.report.Counts[k-1].Removed = removed
			got, err := p.doubts(t.Context())
			require.NoError(t, err)
			require.Equal(t, list, got, "a share of the records of this kind")
		}
	}
}

// TestPartsAreCountedWhereTheyCanMatter: too few records change for a fiftieth of their parts to go, or so many go themselves
// that these are named.
func TestPartsAreCountedWhereTheyCanMatter(t *testing.T) {
	p := ofSnapshot(t).toCopy(t, `INSERT OR IGNORE INTO appointment (cin, din, as_of) SELECT c.cin, d.din, '2026-01-01' FROM company c, director d LIMIT 1000`)
	for _, c := range []struct{ changed, removed, had, named int64 }{
		{1, 0, manyParts * removedShare, 0}, {1, 0, manyParts*removedShare - 1, 1}, {0, 1, 1000, 1}, {0, 1, removedShare - 1, 0},
	} {
		p.report.Counts = noCounts()
		p.report.Counts[company-1].Changed, p.report.Counts[company-1].Removed = c.changed, c.removed
		list, err := p.partsLost(t.Context(), map[kind]int64{company: c.had})
		require.NoError(t, err)
		require.Len(t, list, int(c.named), "%+v", c)
	}
}

// TestTheSnapshotsOfTheNextRollbacksStay, and as many of the newest.
func TestTheSnapshotsOfTheNextRollbacksStay(t *testing.T) {
	p, _ := onFile(t, `INSERT INTO release_stack (release) VALUES ('a'), ('b'), ('c')`)
	dir := t.TempDir()
	for age, release := range []string{"e", "d", "c", "b", "a"} {
		require.NoError(t, os.WriteFile(snapshotPath(dir, release), nil, 0o600))
		require.NoError(t, os.Chtimes(snapshotPath(dir, release), time.Time{}, time.Now().Add(-time.Duration(age)*time.Hour)))
	}
	require.NoError(t, Prune(t.Context(), dir, p.there.db, 2))
	left, err := Snapshots(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "c", "d", "e"}, left)
}

// TestAReleaseIsOnTheStackOnce, however often its push is run.
func TestAReleaseIsOnTheStackOnce(t *testing.T) {
	p, _ := onFile(t, `INSERT INTO release_stack (release) VALUES ('r-1')`)
	for range 2 {
		for _, s := range p.stack() {
			_, err := p.there.db.Exec(s.SQL, s.Args...)
			require.NoError(t, err)
		}
	}
	require.Equal(t, []string{"[{r-1 true}]", "[{r-2 true}]"}, dump(t, p.there.db, `SELECT release FROM release_stack ORDER BY depth`))

	p, _ = onFile(t, `INSERT INTO release_stack (release) VALUES ('c'), ('a'), ('b'), ('a')`)
	kept, err := stacked(t.Context(), p.there.db, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, kept, "one that was current twice is kept once")

	p, _ = onFile(t, `INSERT INTO release_stack (release) VALUES ('a'), ('b'), ('a'), ('c')`)
	p.config.Rollback, p.config.Release = true, "a"
	for _, s := range p.stack() {
		_, err := p.there.db.Exec(s.SQL, s.Args...)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"[{a true}]", "[{b true}]", "[{a true}]"}, dump(t, p.there.db, `SELECT release FROM release_stack ORDER BY depth`), "back to where it was last")
}

// TestAPushReadsItsSnapshotAlone. A dry run reads the file itself, and closes it; a primary that
// it can't read is no empty one.
func TestAPushReadsItsSnapshotAlone(t *testing.T) {
	registry := registryFile(t)
	release, err := Prepare(t.Context(), registry, nil)
	require.NoError(t, err)
	p, _ := onFile(t, "")
	config := Config{File: registry, Snapshots: t.TempDir(), Release: release, Primary: p.there.db, Now: time.Now}
	_, err = Run(t.Context(), config)
	require.ErrorIs(t, err, ErrNoSnapshot)
	config.DryRun = true
	_, err = Run(t.Context(), config)
	require.NoError(t, err)
	require.Empty(t, testkit.OpenFiles(t, registry))
	require.NoError(t, p.there.db.Close())
	_, err = Run(t.Context(), config)
	require.Error(t, err)
}

// TestOnlyThePrimaryThatWasClaimedGetsAFile: one of another cluster that was pushed to as well would lose its registry.
func TestOnlyThePrimaryThatWasClaimedGetsAFile(t *testing.T) {
	p, _ := onFile(t, pushed)
	there := sqld.File(string(p.config.PrimaryDir))
	require.NoError(t, os.MkdirAll(filepath.Dir(there), 0o700))
	db, err := schema.OpenFile(there)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	for token, want := range map[string]error{"own": nil, "another": ErrNotTaken} {
		_, err = db.Exec(`INSERT OR REPLACE INTO pushing (id, release, back, token, claimed, batch) VALUES (1, '', 0, ?1, ?1, 3)`, token)
		require.NoError(t, err)
		require.ErrorIs(t, p.checkClaimThere(t.Context()), want, token)
	}
}
