package push

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// whole is the configuration of a push that may hand the file over.
func (f *fixture) whole(release string) Config {
	config := f.config(release)
	config.PrimaryDir, config.Pause = sqld.Seed(f.server.Dir), pause
	return config
}

// run pushes by a configuration, and requires that the primary is the same then.
func (f *fixture) run(config Config) Report {
	f.t.Helper()
	report, err := Run(f.t.Context(), config)
	require.NoError(f.t, err)
	f.same(config.Release)
	return report
}

// renameHalf changes half of the companies.
func (f *fixture) renameHalf() (release string) {
	f.t.Helper()
	f.edit(nil, "UPDATE company SET city = 'ELSEWHERE', address_line = 'MOVED' WHERE rowid % 2 = 0")
	return f.snapshot()
}

func TestAFullReleaseIsHandedOverAsAFile(t *testing.T) {
	f := newFixture(t)
	replica := sqldtest.Replica(t, f.server)
	first := f.run(f.whole(f.snapshot()))
	require.True(t, first.Whole)
	require.Zero(t, first.Transactions)
	require.Equal(t, f.count("SELECT count(*) FROM content"), first.Records())

	f.editSome()
	second := f.run(f.whole(f.snapshot()))
	require.False(t, second.Whole, "few changes are written one by one, into what was handed over")
	require.Positive(t, second.Transactions)

	sqldtest.Exec(t, f.server, "INSERT INTO heartbeat (id, beat) VALUES (1, 77)")
	sqldtest.Exec(t, f.server, "UPDATE search_push SET generation = 3", "UPDATE pushing SET dirty = 1") // a search that was rewritten, a push that did not end
	third := f.run(f.whole(f.renameHalf()))
	require.Equal(t, []string{"[{0 true} {0 true}]"}, dump(t, f.primary(), "SELECT generation, (SELECT dirty FROM pushing) FROM search_push"), "the file's places, and nothing half written")
	require.True(t, third.Whole)
	require.Zero(t, third.Removed())
	require.Equal(t, []string{"[{77 true}]"}, dump(t, f.primary(), "SELECT beat FROM heartbeat"), "the copy is as new as the one before")
	list, err := Releases(t.Context(), f.primary())
	require.NoError(t, err)
	require.Equal(t, []string{third.Release, second.Release, first.Release}, []string{list[0].ID, list[1].ID, list[2].ID})
	require.Empty(t, dump(t, f.primary(), "SELECT name FROM sqlite_schema WHERE name LIKE 'mark_%'"), "the primary marks nothing")

	back, err := Previous(t.Context(), f.primary())
	require.NoError(t, err)
	require.Equal(t, second.Release, back)
	config := f.whole(back)
	config.Rollback = true
	require.True(t, f.run(config).Whole)
	back, err = Previous(t.Context(), f.primary())
	require.NoError(t, err)
	require.Equal(t, first.Release, back)

	follows := sqldtest.Open(t, replica)
	require.Eventually(t, func() bool {
		asked, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a replica that is replaced may never answer
		defer cancel()
		list, err := Releases(asked, follows)
		return err == nil && len(list) == 3 && list[0].ID == second.Release
	}, time.Minute, 100*time.Millisecond, "the replica follows from file to file")
}

// count reads one number from the registry file.
func (f *fixture) count(query string) (n int64) {
	f.t.Helper()
	_, err := fmt.Sscan(f.list(query)[0], &n)
	require.NoError(f.t, err)
	return n
}

func TestAnInterruptedHandOverLeavesTheReleaseBefore(t *testing.T) {
	f := newFixture(t)
	first := f.run(f.whole(f.snapshot()))
	release := f.renameHalf()
	ctx, cancel := context.WithCancel(t.Context())
	config := f.whole(release)
	config.Progress = func(p Progress) {
		if p.Stage == HandingOver {
			cancel()
		}
	}
	_, err := Run(ctx, config)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, config.PrimaryDir.Waits())
	left, err := filepath.Glob(filepath.Join(config.Snapshots, handedOver+"*"))
	require.NoError(t, err)
	require.Empty(t, left)
	list, err := Releases(t.Context(), f.primary())
	require.NoError(t, err)
	require.Equal(t, first.Release, list[0].ID)
	require.Equal(t, first.Records(), int64(len(dump(t, f.primary(), "SELECT key FROM content"))))
	require.True(t, f.run(f.whole(release)).Whole, "the same push again completes it")
}

// TestTwoPrimariesAreHandedTheSameReleaseAtOnce, from one folder of snapshots.
func TestTwoPrimariesAreHandedTheSameReleaseAtOnce(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	release := f.snapshot()
	config, second := f.whole(release), other.whole(release)
	second.Snapshots = config.Snapshots
	begun := false
	second.Progress = func(p Progress) {
		if p.Stage == HandingOver && p.Done == p.Total && !begun { // it is copied, and not complete yet
			begun = true
			f.run(config)
		}
	}
	_, err := Run(t.Context(), second)
	require.NoError(t, err)
	require.True(t, begun)
	list, err := Releases(t.Context(), other.primary())
	require.NoError(t, err)
	require.Equal(t, release, list[0].ID)
}

// TestAFileThatAKilledPushLeftIsRemoved by a later push, a day after, since another one may be making its own. A
// snapshot that was cut off would stay for good once the registry has another release. The folder's name may have characters
// that mean something in patterns of names.
func TestAFileThatAKilledPushLeftIsRemoved(t *testing.T) {
	f := newFixture(t)
	f.snapshots = filepath.Join(t.TempDir(), "[of 2025")
	release := f.snapshot()
	f.run(f.whole(release))
	old, fresh := filepath.Join(f.snapshots, "handover-1.part"), filepath.Join(f.snapshots, "handover-2.part")
	cutOff, making := snapshotPath(f.snapshots, "cut-off")+".part", snapshotPath(f.snapshots, "making")+".part"
	for _, part := range []string{old, old + "-wal", fresh, cutOff, cutOff + "-journal", making} {
		require.NoError(t, os.WriteFile(part, nil, 0o600))
	}
	before := time.Now().Add(-25 * time.Hour)
	for _, part := range []string{old, cutOff} {
		require.NoError(t, os.Chtimes(part, before, before))
	}
	require.NoError(t, Prune(t.Context(), f.snapshots, f.client, 3))
	for _, part := range []string{old, old + "-wal", cutOff, cutOff + "-journal"} {
		require.NoFileExists(t, part)
	}
	require.FileExists(t, fresh)
	require.FileExists(t, making)
	kept, err := Snapshots(f.snapshots)
	require.NoError(t, err)
	require.Equal(t, []string{release}, kept)
}

// TestADryRunOfAFirstFileNeedsNoSchema: it tells what would be handed over, and leaves the primary empty.
func TestADryRunOfAFirstFileNeedsNoSchema(t *testing.T) {
	f := newFixture(t)
	config := f.whole(f.snapshot())
	config.DryRun = true
	report, err := Run(t.Context(), config)
	require.NoError(t, err)
	require.True(t, report.Whole)
	require.Positive(t, report.Records())
	require.Empty(t, dump(t, f.primary(), "SELECT name FROM sqlite_schema"))
}

// nobodyTakes makes a push wait for a primary that ran once and runs no more, until the wait is over at once.
func nobodyTakes(t *testing.T, config *Config) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(string(config.PrimaryDir), "regedge.lock"), nil, 0o600))
	late := false
	config.Now = func() time.Time {
		if late {
			return time.Now().Add(takenLimit)
		}
		return time.Now()
	}
	config.Pause = func(context.Context, time.Duration) { late = true }
}

func TestAFileThatNobodyTakesIsAnError(t *testing.T) {
	f := newFixture(t)
	config := f.whole(f.snapshot())
	config.PrimaryDir = sqld.Seed(t.TempDir())
	_, err := Run(t.Context(), config)
	require.ErrorIs(t, err, ErrNotTaken, "no primary has ever run there, which is said at once")
	require.ErrorIs(t, err, sqld.ErrNoPrimary)
	nobodyTakes(t, &config)
	_, err = Run(t.Context(), config)
	require.ErrorIs(t, err, ErrNotTaken)
	require.NotErrorIs(t, err, sqld.ErrNoPrimary)
	require.False(t, config.PrimaryDir.Waits())
	require.Empty(t, dump(t, f.primary(), "SELECT id FROM release"))
}

// TestAnotherPrimaryGetsNoFile: that of access lies beside the registry's, and would lose its keys; one of another registry would
// lose that.
func TestAnotherPrimaryGetsNoFile(t *testing.T) {
	f := newFixture(t)
	release := f.snapshot()
	for _, database := range []schema.Database{schema.Access, schema.Registry} {
		other := sqldtest.Primary(t)
		client := sqldtest.Open(t, other)
		require.NoError(t, schema.Migrate(t.Context(), client, database))
		config := f.whole(release)
		config.PrimaryDir = sqld.Seed(other.Dir)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it would wait for what the other primary has taken
		_, err := Run(ctx, config)
		cancel()
		require.ErrorIs(t, err, ErrNotTaken)
		require.ErrorContains(t, err, other.Dir+": it has another database than the primary that was asked")
		require.False(t, config.PrimaryDir.Waits())
		found, err := schema.Version(t.Context(), client, database)
		require.NoError(t, err)
		require.Positive(t, found, "its database is the one before")
	}
	require.True(t, f.run(f.whole(release)).Whole)
}

// TestARollbackOfAnInterruptedPushIsNotDoneBeforeItsFileIsTaken: its release is the newest at the primary all the time, beside
// records of the push that was interrupted.
func TestARollbackOfAnInterruptedPushIsNotDoneBeforeItsFileIsTaken(t *testing.T) {
	f := newFixture(t)
	first := f.run(f.whole(f.snapshot()))
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := f.config(f.renameHalf())
	interrupted.Progress = whileWriting(cancel)
	_, err := Run(ctx, interrupted)
	require.ErrorIs(t, err, context.Canceled)

	config := f.whole(first.Release)
	config.Rollback, config.PrimaryDir = true, sqld.Seed(t.TempDir()) // where none runs any more
	nobodyTakes(t, &config)
	report, err := Run(t.Context(), config)
	require.True(t, report.Whole)
	require.ErrorIs(t, err, ErrNotTaken)
	require.False(t, config.PrimaryDir.Waits())
	f.run(f.whole(first.Release)) // also where it runs
}

func TestAPushThatWasTakenOverHandsNothingOver(t *testing.T) {
	f := newFixture(t)
	first := f.run(f.whole(f.snapshot()))
	config := f.whole(f.renameHalf())
	config.Progress = func(p Progress) {
		if p.Stage == HandingOver {
			sqldtest.Exec(t, f.server, "UPDATE pushing SET token = 'other', claimed = 'other'")
		}
	}
	_, err := Run(t.Context(), config)
	require.ErrorIs(t, err, ErrTakenOver)
	require.False(t, config.PrimaryDir.Waits())
	list, err := Releases(t.Context(), f.primary())
	require.NoError(t, err)
	require.Equal(t, first.Release, list[0].ID)
}

// TestAPushThatWasTakenOverPutsNoFileBeforeThePrimary, which might take it before it is withdrawn.
func TestAPushThatWasTakenOverPutsNoFileBeforeThePrimary(t *testing.T) {
	f := newFixture(t)
	config := f.whole(f.snapshot())
	dir := t.TempDir()
	config.PrimaryDir = sqld.Seed(dir)
	for _, name := range []string{"regedge.lock", "seed"} { // nothing can be put into a seed that is no folder
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	config.Progress = func(p Progress) {
		if p.Stage == HandingOver {
			sqldtest.Exec(t, f.server, "UPDATE pushing SET token = 'other', claimed = 'other'")
		}
	}
	_, err := Run(t.Context(), config)
	require.ErrorIs(t, err, ErrTakenOver)
	left, err := filepath.Glob(filepath.Join(f.snapshots, handedOver))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestASearchOfOtherTermsIsWrittenAnewBesideASeed, although few changes become many by that. A file that is
// handed over has the terms of its program.
func TestASearchOfOtherTermsIsWrittenAnewBesideASeed(t *testing.T) {
	f := newFixture(t)
	f.run(f.whole(f.snapshot()))
	for _, whole := range []bool{false, true} {
		sqldtest.Exec(t, f.server, "UPDATE search_push SET terms = terms + 1")
		if whole {
			f.renameHalf()
		} else {
			f.edit(nil, "UPDATE company SET paid_up_capital = 6 WHERE cin = (SELECT min(cin) FROM company)")
		}
		config := f.whole(f.snapshot())
		config.Pause = func(ctx context.Context, d time.Duration) { pause(ctx, min(d, seedPause)) }
		report := f.run(config)
		require.Equal(t, whole, report.Whole)
		require.Equal(t, !whole, report.NewGeneration)
	}
}

// TestASearchIsWrittenAnewAfterANameHasChangedBesideASeed: the hashes of its entry are in two tables by then.
func TestASearchIsWrittenAnewAfterANameHasChangedBesideASeed(t *testing.T) {
	f := newFixture(t)
	f.run(f.whole(f.snapshot()))
	for round := range 2 {
		f.edit(nil, fmt.Sprintf("UPDATE company SET company_name = 'RENAMED %d LIMITED' WHERE cin = (SELECT min(cin) FROM company)", round),
			"INSERT INTO search_pending SELECT min(cin) FROM company")
		report := f.push()
		require.Equal(t, round > 0, report.NewGeneration)
		sqldtest.Exec(t, f.server, "UPDATE search_push SET terms = terms + 1")
	}
}
