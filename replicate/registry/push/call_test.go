package push

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// TestACallIsTriedAgainWhileThePrimaryIsAway for half a minute, each time with a deadline.
func TestACallIsTriedAgainWhileThePrimaryIsAway(t *testing.T) {
	away := errors.New("connection refused")
	var pauses []time.Duration
	p := &pusher{config: Config{Pause: func(_ context.Context, d time.Duration) { pauses = append(pauses, d) }}}
	tried := 0
	try := func(results ...error) func(context.Context) error {
		tried, pauses = 0, nil
		return func(ctx context.Context) error {
			until, limited := ctx.Deadline()
			require.True(t, limited)
			require.LessOrEqual(t, time.Until(until), time.Minute)
			tried++
			return results[min(tried, len(results))-1]
		}
	}
	require.ErrorIs(t, p.call(t.Context(), try(away)), away)
	require.Equal(t, attempts, tried)
	require.Len(t, pauses, attempts-1, "and none after the last")
	all := time.Duration(0)
	for n, pause := range pauses {
		require.Equal(t, firstPause<<n, pause)
		all += pause
	}
	require.Greater(t, all, 30*time.Second)

	require.NoError(t, p.call(t.Context(), try(away, away, nil)))
	require.Equal(t, 3, tried)
	for _, final := range []error{libsql.ErrRefused, libsql.ErrUnauthorized, ErrTakenOver} {
		require.ErrorIs(t, p.call(t.Context(), try(fmt.Errorf("write: %w", final))), final)
		require.Equal(t, 1, tried, "%v", final)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.call(ended, try(away)), away)
	require.Equal(t, 1, tried)
}

// registryFile is a copy of the registry that tests push.
func registryFile(t *testing.T) string {
	t.Helper()
	path, err := base()
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "registry.db")
	require.NoError(t, os.WriteFile(copied, content, 0o600))
	return copied
}

// TestASnapshotThatWasCutOffIsMadeAgain: it is under another name until it is whole.
func TestASnapshotThatWasCutOffIsMadeAgain(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	release, err := Snapshot(t.Context(), registry, dir, nil)
	require.NoError(t, err)
	whole, err := os.ReadFile(snapshotPath(dir, release))
	require.NoError(t, err)

	require.NoError(t, os.Remove(snapshotPath(dir, release)))
	require.NoError(t, os.WriteFile(snapshotPath(dir, release)+".part", whole[:len(whole)/2], 0o600))
	list, err := Snapshots(dir)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = Snapshot(t.Context(), registry, dir, nil)
	require.NoError(t, err)
	list, err = Snapshots(dir)
	require.NoError(t, err)
	require.Equal(t, []string{release}, list)
	require.NoFileExists(t, snapshotPath(dir, release)+".part")
	db, err := openSnapshot(t.Context(), dir, release)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// TestACopyThatCannotBeFinishedIsNoSnapshot: it has its name only once nothing is left to do to it, and takes
// no room of the disk that may have been too small.
func TestACopyThatCannotBeFinishedIsNoSnapshot(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	release, err := Prepare(t.Context(), registry, nil)
	require.NoError(t, err)
	broken := false
	_, err = Snapshot(t.Context(), registry, dir, func(p Progress) {
		if p.Stage == Copying && p.Done == p.Total {
			broken = true
			require.NoError(t, os.WriteFile(snapshotPath(dir, release)+".part", []byte("no database"), 0o600))
		}
	})
	require.Error(t, err)
	require.True(t, broken)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestACountThatBreaksOffIsAnError: the report would show fewer records than are pushed.
func TestACountThatBreaksOffIsAnError(t *testing.T) {
	db, err := sql.Open("sqlite3", "file::memory:")
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE content_newer (kind, records)`)
	require.NoError(t, err)
	for _, content := range []string{`SELECT 1 AS kind UNION ALL SELECT 3`, `SELECT 1 AS kind UNION ALL SELECT abs(-9223372036854775808)`} {
		_, err = db.Exec(`DROP VIEW IF EXISTS content; CREATE VIEW content AS ` + content)
		require.NoError(t, err)
		p := &pusher{local: db}
		p.report.Counts = noCounts()
		if err = p.countAll(t.Context()); strings.Contains(content, "abs") {
			require.ErrorContains(t, err, "overflow")
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, 2, p.report.Records())
	}
}

// TestAPauseTakesItsTime, unless the push is given up: edges have to see that it has begun.
func TestAPauseTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		pause(t.Context(), holdPause)
		require.Equal(t, 3*time.Second, time.Since(began))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		pause(ended, time.Hour)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

// TestASnapshotOfAReleaseIsMadeOnce: it may be the one that a push has begun with.
func TestASnapshotOfAReleaseIsMadeOnce(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	release, err := Snapshot(t.Context(), registry, dir, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(snapshotPath(dir, release), []byte("kept"), 0o600))
	again, err := Snapshot(t.Context(), registry, dir, nil)
	require.NoError(t, err)
	require.Equal(t, release, again)
	content, err := os.ReadFile(snapshotPath(dir, release))
	require.NoError(t, err)
	require.Equal(t, "kept", string(content))
}

// TestAReleaseThatCannotNameAFileIsRefused: its id comes from a file of others.
func TestAReleaseThatCannotNameAFileIsRefused(t *testing.T) {
	registry, dir := registryFile(t), filepath.Join(t.TempDir(), "snapshots")
	for _, id := range []string{"../up", "a/b", "", "a.b", "a b", strings.Repeat("a", 65)} {
		db, err := schema.OpenFile(registry)
		require.NoError(t, err)
		_, err = db.Exec(`UPDATE release SET id = ? WHERE seq = (SELECT max(seq) FROM release)`, id)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		_, err = Snapshot(t.Context(), registry, dir, nil)
		require.ErrorContains(t, err, "can't name a file", id)
		require.NoDirExists(t, dir)
	}
}

// TestAnOlderSnapshotKeepsItsPlace when its schema is brought up to date: rollbacks go by the order.
func TestAnOlderSnapshotKeepsItsPlace(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	release, err := Snapshot(t.Context(), registry, dir, nil)
	require.NoError(t, err)
	path := snapshotPath(dir, release)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, at, at))
	db, err := openSnapshot(t.Context(), dir, release)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, at.Equal(info.ModTime()))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "one file, without a log beside it")

	require.NoError(t, os.WriteFile(path, nil, 0o600)) // of a version before the first
	require.NoError(t, os.Chtimes(path, at, at))
	_, err = openSnapshot(t.Context(), dir, release)
	require.ErrorContains(t, err, "the registry has no release")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Chtimes(path, at, at))
	db, err = openMigrated(t.Context(), dir, release)
	require.NoError(t, err)
	require.Equal(t, []string{"[{0 true}]"}, dump(t, db, `SELECT count(*) FROM company`), "it was brought up to date")
	require.NoError(t, db.Close())
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.True(t, at.Equal(info.ModTime()))
	files, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, []string{"[{delete true}]"}, dump(t, openRegistry(t, path), `PRAGMA journal_mode`))
}

// openRegistry opens a registry file for reading until the end of the test.
func openRegistry(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := schema.OpenReadOnly(path)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// TestACopyThatIsGivenUpIsNoSnapshot, also when its last page was copied.
func TestACopyThatIsGivenUpIsNoSnapshot(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	for _, last := range []Stage{Hashing, Copying} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Snapshot(ctx, registry, dir, func(p Progress) {
			require.LessOrEqual(t, p.Stage, last, "nothing is done after the end")
			if p.Stage == last {
				cancel()
			}
		})
		require.Error(t, err)
		list, err := Snapshots(dir)
		require.NoError(t, err)
		require.Empty(t, list)
	}
}

// TestASnapshotLeavesNoFileOpen, and is known only for its own release.
func TestASnapshotLeavesNoFileOpen(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	require.NoError(t, os.WriteFile(snapshotPath(dir, "another"), nil, 0o600))
	for _, kept := range []bool{false, true} {
		is, err := Kept(t.Context(), registry, dir)
		require.NoError(t, err)
		require.Equal(t, kept, is)
		_, err = Snapshot(t.Context(), registry, dir, nil)
		require.NoError(t, err)
		require.Empty(t, testkit.OpenFiles(t, registry))
		require.Empty(t, testkit.OpenFiles(t, dir))
	}
}

// TestSnapshotsAreInTheOrderOfTheirTime, whatever their releases are called; those that a rollback may need
// stay when that can't be asked.
func TestSnapshotsAreInTheOrderOfTheirTime(t *testing.T) {
	dir := t.TempDir()
	for hour, release := range []string{"c", "a", "b"} {
		require.NoError(t, os.WriteFile(snapshotPath(dir, release), nil, 0o600))
		made := time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC)
		require.NoError(t, os.Chtimes(snapshotPath(dir, release), made, made))
	}
	list, err := Snapshots(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"c", "a", "b"}, list)
	p, _ := onFile(t, "")
	require.NoError(t, p.config.Primary.Close())
	require.Error(t, Prune(t.Context(), dir, p.config.Primary, 1))
	list, err = Snapshots(dir)
	require.NoError(t, err)
	require.Len(t, list, 3)
}

// TestASnapshotThatAnotherPushHasRemovedIsNoFailure: pushes to several primaries may share the folder, and end at once.
func TestASnapshotThatAnotherPushHasRemovedIsNoFailure(t *testing.T) {
	dir := t.TempDir()
	for _, release := range []string{"a", "b", "c"} {
		require.NoError(t, os.WriteFile(snapshotPath(dir, release), nil, 0o600))
		require.NoError(t, os.Chtimes(snapshotPath(dir, release), time.Unix(1, 0), time.Unix(1, 0)))
	}
	p, _ := onFile(t, "")
	p.config.Primary.SetMaxOpenConns(1)
	busy, err := p.config.Primary.Conn(t.Context())
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- Prune(t.Context(), dir, p.config.Primary, 1) }()
	require.Eventually(t, func() bool { return p.config.Primary.Stats().WaitCount == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, os.Remove(snapshotPath(dir, "a")))
	require.NoError(t, busy.Close())
	require.NoError(t, <-done)
	list, err := Snapshots(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, list)
}

// TestARefusedTokenEndsAPushAtOnce, whatever is asked with it. The primary takes no file of a push that has failed.
func TestARefusedTokenEndsAPushAtOnce(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refuses.Close)
	p, pauses := onFile(t, pushed+oneMade)
	primary, err := libsql.Open(refuses.URL, "expired")
	require.NoError(t, err)
	t.Cleanup(func() { primary.Close() })
	p.config.Primary, p.there.db = primary, primary
	_, err = p.there.text(t.Context(), "SELECT 'x'")
	require.ErrorIs(t, err, libsql.ErrUnauthorized)
	require.ErrorIs(t, p.awaitSeed(t.Context()), libsql.ErrUnauthorized)
	seed := waits(t, p)
	require.ErrorIs(t, p.awaitSeed(t.Context()), libsql.ErrUnauthorized)
	require.NoFileExists(t, seed)
	require.Zero(t, *pauses)
}

// TestASnapshotHoldsTheReleaseThatItIsNamedAfter, whenever an import is completed meanwhile: a rollback would bring
// another one.
func TestASnapshotHoldsTheReleaseThatItIsNamedAfter(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	importing, err := schema.OpenFile(registry)
	require.NoError(t, err)
	defer importing.Close()
	imports := func(release string) {
		_, err := importing.Exec(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
			VALUES (?1, 1, 0, 0, 0, 0, 0)`, release)
		require.NoError(t, err)
	}
	holds := func(release string) {
		t.Helper()
		kept, err := openSnapshot(t.Context(), dir, release)
		require.NoError(t, err)
		defer kept.Close()
		newest, err := newestRelease(t.Context(), kept)
		require.NoError(t, err)
		require.Equal(t, newest, release)
	}
	// One that waits for the hashes is completed when the copy begins, or before.
	var waiting sync.WaitGroup
	once := sync.OnceFunc(func() { waiting.Go(func() { imports("waited-for-the-hashes") }) })
	release, err := Snapshot(t.Context(), registry, dir, func(Progress) { once() })
	waiting.Wait()
	require.NoError(t, err)
	holds(release)

	first, err := Prepare(t.Context(), registry, nil)
	require.NoError(t, err)
	imports("before-the-copy")
	before, err := os.ReadDir(dir)
	require.NoError(t, err)
	err = copyFile(t.Context(), registry, filepath.Join(dir, "copy.db"), first, nil)
	require.ErrorIs(t, err, errImported)
	after, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, after, len(before))

	// So many pages are copied in several steps.
	_, err = importing.Exec(`CREATE TABLE large (bytes BLOB)`)
	require.NoError(t, err)
	_, err = importing.Exec(`INSERT INTO large VALUES (zeroblob(?1))`, 4096*(backUpPages+1000))
	require.NoError(t, err)
	steps := 0
	release, err = Snapshot(t.Context(), registry, dir, func(p Progress) {
		if steps++; steps == 1 {
			imports("during-the-copy")
		}
	})
	require.NoError(t, err)
	require.Equal(t, 2, steps)
	require.Equal(t, "before-the-copy", release)
	holds(release)
}

// TestPushesOfAReleaseAtOnceMakeOneSnapshot: those to other primaries share the folder.
func TestPushesOfAReleaseAtOnceMakeOneSnapshot(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	want, err := Prepare(t.Context(), registry, nil)
	require.NoError(t, err)
	for range 3 {
		const pushes = 4
		failed := make(chan error, pushes)
		var copies atomic.Int64
		for range pushes {
			go func() {
				once := sync.OnceFunc(func() { copies.Add(1) })
				_, err := Snapshot(t.Context(), registry, dir, func(p Progress) {
					if p.Stage == Copying {
						once()
					}
				})
				failed <- err
			}()
		}
		for range pushes {
			require.NoError(t, <-failed)
		}
		require.EqualValues(t, 1, copies.Load())
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 1)
		kept, err := openSnapshot(t.Context(), dir, want)
		require.NoError(t, err)
		newest, err := newestRelease(t.Context(), kept)
		require.NoError(t, errors.Join(err, kept.Close()))
		require.Equal(t, want, newest)
		require.NoError(t, os.Remove(snapshotPath(dir, want)))
	}
}

// TestASnapshotThatIsMadeElsewhereIsNotWaitedForInVain once the push is given up.
func TestASnapshotThatIsMadeElsewhereIsNotWaitedForInVain(t *testing.T) {
	registry, dir := registryFile(t), t.TempDir()
	waited := false
	_, err := Snapshot(t.Context(), registry, dir, func(p Progress) {
		if p.Stage == Copying {
			err := error(sqlite3.INTERRUPT) // as on a busy machine, where the time may end before it waits
			for limit := 50 * time.Millisecond; errors.Is(err, sqlite3.INTERRUPT) && limit < time.Minute; limit *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				_, err = Snapshot(ctx, registry, dir, nil)
				cancel()
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			waited = true
		}
	})
	require.NoError(t, err)
	require.True(t, waited)
}

// TestAFileOfAnOlderSchemaIsPushed, as after an upgrade without an import since: a primary that was lost is filled from it.
func TestAFileOfAnOlderSchemaIsPushed(t *testing.T) {
	f := newFixture(t)
	db, err := schema.OpenFile(f.registry)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`DELETE FROM schema_version WHERE version > 1`)
	require.NoError(t, err)
	_, err = Prepare(t.Context(), f.registry, nil)
	require.ErrorContains(t, err, "already exists", "why it can't be migrated")
	_, err = db.Exec(`DROP TABLE content_newer`)
	require.NoError(t, err)
	require.ErrorContains(t, schema.Check(t.Context(), db, schema.Registry), "has schema version 1")
	require.NoError(t, db.Close())
	f.same(f.push().Release)
}

// TestAFileThatIsNoRegistryIsNotMadeOne: a mistyped path may be of an empty database.
func TestAFileThatIsNoRegistryIsNotMadeOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	_, err = Prepare(t.Context(), path, nil)
	require.Error(t, err)
	require.Equal(t, []string{"[{0 true}]"}, dump(t, db, "SELECT count(*) FROM sqlite_schema"))
}
