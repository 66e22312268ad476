package push

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"golang.org/x/sys/unix"

	"regedge/replicate/registry/libsql"
	"regedge/schema"
	"regedge/schema/content"
)

const (
	// snapshotSuffix follows the release's id in the name of a snapshot.
	snapshotSuffix = ".db"
	// unfinishedSuffix follows the name of a snapshot that is being made.
	unfinishedSuffix = ".part"
)

// releaseID matches ids of releases, which become names of files.
var releaseID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// ErrUnfinished means that the last import into a registry did not complete.
var ErrUnfinished = errors.New("the registry has changes without a release: complete its import first")

// ErrNoSnapshot means that a release can't be pushed, since its snapshot is not kept.
var ErrNoSnapshot = errors.New("no snapshot")

// Prepare returns the newest release of the registry file at path, and hashes the records in it that
// lack a hash: all of them before the first push of a file, and none after an import that has kept the
// hashes. Only the hashing writes to the file, and the migration of one with an older schema, as of before an upgrade.
func Prepare(ctx context.Context, path string, progress func(Progress)) (release string, err error) {
	if err := migrateOlder(ctx, path); err != nil {
		return "", err
	}
	release, complete, err := look(ctx, path)
	if err != nil || complete {
		return release, err
	}
	db, err := schema.OpenFile(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = withConn(ctx, db, func(c *sqlite3.Conn) error { return hashRecords(c, filepath.Dir(path), progress) })
	if err != nil {
		return "", fmt.Errorf("hash the records of %s: %w", path, err)
	}
	return release, nil
}

// migrateOlder migrates a registry file with an older schema.
func migrateOlder(ctx context.Context, path string) error {
	db, err := schema.OpenReadOnly(path)
	if err != nil {
		return err
	}
	version, err := schema.Version(ctx, db, schema.Registry)
	current := err == nil && schema.Check(ctx, db, schema.Registry) == nil
	if err = errors.Join(err, db.Close()); err != nil || version == 0 || current {
		return err
	}
	if db, err = schema.OpenFile(path); err != nil {
		return err
	}
	return errors.Join(schema.Migrate(ctx, db, schema.Registry), db.Close())
}

// look reads the newest release of a registry file, and whether all of its records have hashes.
func look(ctx context.Context, path string) (release string, complete bool, err error) {
	db, err := schema.OpenReadOnly(path)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := schema.Check(ctx, db, schema.Registry); err != nil {
		return "", false, err
	}
	if release, err = newestRelease(ctx, db); err != nil {
		return "", false, err
	}
	err = withConn(ctx, db, func(c *sqlite3.Conn) error {
		state, err := content.Look(c)
		complete = state.Complete()
		return err
	})
	return release, complete, err
}

// Kept reports whether dir has a snapshot of the newest release of the registry file at path.
func Kept(ctx context.Context, path, dir string) (bool, error) {
	release, _, err := look(ctx, path)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(snapshotPath(dir, release))
	return err == nil, nil
}

// withConn calls do with a connection below database/sql.
func withConn(ctx context.Context, db *sql.DB, do func(*sqlite3.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error {
		raw := c.(driver.Conn).Raw()
		defer raw.SetInterrupt(raw.SetInterrupt(ctx))
		return do(raw)
	})
}

// hashRecords hashes the records without a hash, in one transaction.
func hashRecords(c *sqlite3.Conn, folder string, progress func(Progress)) (err error) {
	tx, err := c.BeginImmediate()
	if err != nil {
		return err
	}
	defer tx.End(&err)
	if err := content.Refresh(c); err != nil {
		return err
	}
	state, err := content.Look(c)
	if err != nil || state.Complete() {
		return err
	}
	return content.Fill(c, folder, func(done, total int64) { report(progress, Hashing, done, total) })
}

// Snapshot prepares the registry file at path, copies it to a snapshot of its newest release in the folder dir, unless
// there is one, and returns the release's id. If an import completes meanwhile, it begins again with that release.
// progress may be nil.
func Snapshot(ctx context.Context, path, dir string, progress func(Progress)) (release string, err error) {
	for {
		if release, err = Prepare(ctx, path, progress); err != nil {
			return "", err
		}
		target := snapshotPath(dir, release)
		if _, err := os.Stat(target); err == nil {
			return release, nil
		}
		switch err := copyFile(ctx, path, target, release, progress); {
		case err == nil:
			return release, nil
		case !errors.Is(err, errImported):
			return "", fmt.Errorf("make snapshot in %s: %w", dir, err)
		}
	}
}

// errImported means that the registry has another release than the one to be copied.
var errImported = errors.New("an import was completed meanwhile")

// copyFile copies a consistent state of the registry file at path, whose newest release must be this one, into a new
// file without a write-ahead log. It fails with errImported if there is a newer release by now.
func copyFile(ctx context.Context, path, target, release string, progress func(Progress)) (err error) {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	folder, err := lockFolder(ctx, filepath.Dir(target), progress)
	if err != nil {
		return err
	}
	defer folder.Close()
	if _, err := os.Stat(target); err == nil {
		return nil // another push has made it
	}
	unfinished := target + unfinishedSuffix
	if err := removeDatabase(unfinished); err != nil {
		return err
	}
	defer func() {
		if err != nil { // the disk may be full: the next try needs the room
			err = errors.Join(err, removeDatabase(unfinished))
		}
	}()
	db, err := schema.OpenReadOnly(path)
	if err != nil {
		return err
	}
	err = withConn(ctx, db, func(c *sqlite3.Conn) error { return backUp(ctx, c, unfinished, progress) })
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := settle(ctx, unfinished, release); err != nil {
		return err
	}
	return errors.Join(os.Rename(unfinished, target), folder.Sync())
}

const (
	// lockPause is the time between two checks whether another push still makes a snapshot.
	lockPause = 20 * time.Millisecond
	// lockSilence is how long a push waits for another one without saying so.
	lockSilence = 2 * time.Second
)

// lockFolder waits until no other push makes a snapshot in the folder, and keeps others from it until the file is
// closed: pushes to several primaries may share the folder. Some file systems can't lock directories; there it waits
// for nobody.
func lockFolder(ctx context.Context, dir string, progress func(Progress)) (*os.File, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	late := time.After(lockSilence)
	for errors.Is(unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		select {
		case <-late:
			report(progress, Waiting, 0, 0)
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), folder.Close())
		case <-time.After(lockPause):
		}
	}
	return folder, nil
}

// backUpPages is how many pages are copied between two calls of progress: 40 MB.
const backUpPages = 10_000

// backUp copies the pages of a database, all as they are when it begins.
func backUp(ctx context.Context, c *sqlite3.Conn, path string, progress func(Progress)) (err error) {
	if err := c.Exec(`BEGIN; SELECT 1 FROM release`); err != nil {
		return err
	}
	defer func() {
		if end := c.Exec(`COMMIT`); err == nil {
			err = end
		}
	}()
	name, err := schema.FileURI(path, false)
	if err != nil {
		return err
	}
	copying, err := c.BackupInit("main", name)
	if err != nil {
		return err
	}
	defer func() {
		if end := copying.Close(); err == nil { // if copying has failed, Close repeats its error
			err = end
		}
	}()
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err = copying.Step(backUpPages); err != nil {
			return err
		}
		pages := int64(copying.PageCount())
		report(progress, Copying, pages-int64(copying.Remaining()), pages)
	}
	return nil
}

// settle makes the copy of a release a single file that nobody changes any more.
func settle(ctx context.Context, path, release string) (err error) {
	db, err := schema.OpenFile(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if newest, err := newestRelease(ctx, db); err != nil || newest != release {
		return cmp.Or(err, errImported)
	}
	return withConn(ctx, db, func(c *sqlite3.Conn) error {
		if err := content.Untrack(c); err != nil {
			return err
		}
		return c.Exec(`PRAGMA journal_mode = delete`)
	})
}

func newestRelease(ctx context.Context, db *sql.DB) (string, error) {
	var unfinished bool
	const pending = `SELECT EXISTS (SELECT 1 FROM unreleased) OR EXISTS (SELECT 1 FROM search_pending)`
	if err := db.QueryRowContext(ctx, pending).Scan(&unfinished); err != nil {
		return "", fmt.Errorf("look for an unfinished import: %w", err)
	}
	if unfinished {
		return "", ErrUnfinished
	}
	var release string
	err := db.QueryRowContext(ctx, `SELECT id FROM release ORDER BY seq DESC LIMIT 1`).Scan(&release)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", errors.New("the registry has no release: import something first")
	case err != nil:
		return "", fmt.Errorf("read the release: %w", err)
	case !releaseID.MatchString(release):
		return "", fmt.Errorf("the id of the release, %q, can't name a file", release)
	}
	return release, nil
}

// openSnapshot opens the snapshot of a release for reading. It refuses a file that was put there under the name of another
// release than its own: all of it would be written before the release could not be.
func openSnapshot(ctx context.Context, dir, release string) (*sql.DB, error) {
	db, err := openMigrated(ctx, dir, release)
	if err != nil {
		return nil, err
	}
	held, err := newestRelease(ctx, db)
	if err == nil && held != release {
		err = fmt.Errorf("%w: %s is of release %s, not of %s", ErrNoSnapshot, snapshotPath(dir, release), held, release)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openMigrated opens a snapshot for reading. One with an older schema is migrated first; its modification time stays,
// since snapshots are ordered by it.
func openMigrated(ctx context.Context, dir, release string) (*sql.DB, error) {
	path := snapshotPath(dir, release)
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		kept, _ := Snapshots(dir) // the folder is named in any case
		return nil, fmt.Errorf("%w: that of release %s is not in %s; kept are: %s", ErrNoSnapshot, release, dir, cmp.Or(strings.Join(kept, ", "), "none"))
	}
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	db, err := schema.OpenReadOnly(path)
	if err != nil || schema.Check(ctx, db, schema.Registry) == nil {
		return db, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	if db, err = schema.OpenFile(path); err != nil {
		return nil, err
	}
	if err = schema.Migrate(ctx, db, schema.Registry); err == nil {
		_, err = db.ExecContext(ctx, `PRAGMA journal_mode = delete`)
	}
	if err = errors.Join(err, db.Close(), os.Chtimes(path, time.Time{}, info.ModTime())); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return schema.OpenReadOnly(path)
}

func snapshotPath(dir, release string) string { return filepath.Join(dir, release+snapshotSuffix) }

// Snapshots lists the releases whose snapshots are in dir, the oldest first.
func Snapshots(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	type aged struct {
		release string
		made    int64
	}
	var found []aged
	for _, f := range files {
		release, ok := strings.CutSuffix(f.Name(), snapshotSuffix)
		info, err := f.Info()
		if ok && err == nil && releaseID.MatchString(release) {
			found = append(found, aged{release, info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(found, func(a, b aged) int { return cmp.Or(cmp.Compare(a.made, b.made), cmp.Compare(a.release, b.release)) })
	list := make([]string, len(found))
	for i, f := range found {
		list[i] = f.release
	}
	return list, nil
}

// Prune removes the snapshots in dir but keep: those that rollbacks of the primary would use first. As
// many of the newest ones stay too, which may be for another primary.
func Prune(ctx context.Context, dir string, primary *sql.DB, keep int) error {
	list, err := Snapshots(dir)
	if err != nil {
		return err
	}
	needed, err := stacked(ctx, primary, keep)
	if err != nil {
		return fmt.Errorf("list the releases to keep: %w", libsql.Explain(err))
	}
	for _, release := range list[:max(0, len(list)-keep)] {
		if slices.Contains(needed, release) {
			continue
		}
		if err := os.Remove(snapshotPath(dir, release)); err != nil && !errors.Is(err, os.ErrNotExist) { // another push was faster
			return fmt.Errorf("remove an old snapshot: %w", err)
		}
	}
	return pruneLeft(dir)
}

// abandonedAfter is the age from which a file is a killed push's leftover.
const abandonedAfter = 24 * time.Hour

// pruneLeft removes the unfinished snapshots and hand-over files that killed pushes have left behind. Each is as large
// as the registry.
func pruneLeft(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list what pushes have left: %w", err)
	}
	for _, f := range files {
		ofHandOver, err := filepath.Match(handedOver, f.Name())
		if err != nil || !ofHandOver && !strings.HasSuffix(f.Name(), snapshotSuffix+unfinishedSuffix) {
			continue
		}
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			if err := removeDatabase(filepath.Join(dir, f.Name())); err != nil {
				return fmt.Errorf("remove what a push has left: %w", err)
			}
		}
	}
	return nil
}
