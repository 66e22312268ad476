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

	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// snapshotSuffix follows the release's id in the name of a snapshot.
const snapshotSuffix = ".db"

// releaseID matches ids of releases, which become names of files.
var releaseID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// ErrUnfinished means that the last import into a registry did not complete.
var ErrUnfinished = errors.New("the registry has changes without a release: complete its import first")

// ErrNoSnapshot means that a release can't be pushed, since its snapshot is not kept.
var ErrNoSnapshot = errors.New("no snapshot")

// Snapshot copies the registry file at path to a snapshot of its newest release in the folder dir,
// unless there is one, and returns the release's id.
func Snapshot(ctx context.Context, path, dir string) (release string, err error) {
	db, err := schema.OpenFile(path, true)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := schema.Check(ctx, db, schema.Registry); err != nil {
		return "", err
	}
	if release, err = newestRelease(ctx, db); err != nil {
		return "", err
	}
	target := snapshotPath(dir, release)
	if _, err := os.Stat(target); err == nil {
		return release, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make snapshot: %w", err)
	}
	unfinished := target + ".part"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("make snapshot: %w", err)
	}
	if err := copyTo(ctx, db, unfinished); err != nil {
		return "", fmt.Errorf("make snapshot: %w", err)
	}
	if err := prepare(ctx, unfinished); err != nil {
		return "", fmt.Errorf("make snapshot: %w", err)
	}
	if err := os.Rename(unfinished, target); err != nil {
		return "", fmt.Errorf("make snapshot: %w", err)
	}
	return release, nil
}

// copyTo copies a consistent state of a database into a new file. query_only, which is set on
// connections to the source, would forbid writing the new file as well.
func copyTo(ctx context.Context, db *sql.DB, path string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `PRAGMA query_only = off`); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `VACUUM INTO ?1`, path)
	if err == nil {
		_, err = conn.ExecContext(ctx, `PRAGMA query_only = on`)
	}
	return err
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

// prepare computes the hashes of a snapshot's records. The snapshot is one file afterwards,
// without a write-ahead log.
func prepare(ctx context.Context, path string) error {
	db, err := schema.OpenFile(path, false)
	if err != nil {
		return err
	}
	err = fillContent(ctx, db)
	if err == nil {
		_, err = db.ExecContext(ctx, `PRAGMA journal_mode = delete`)
	}
	return errors.Join(err, db.Close())
}

// openSnapshot opens the snapshot of a release for reading. One with an older schema is migrated
// first; its modification time stays, since snapshots are ordered by it.
func openSnapshot(ctx context.Context, dir, release string) (*sql.DB, error) {
	path := snapshotPath(dir, release)
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		kept, _ := Snapshots(dir) // the folder is named in any case
		return nil, fmt.Errorf("%w: that of release %s is not in %s; kept are: %s", ErrNoSnapshot, release, dir, strings.Join(kept, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	db, err := schema.OpenFile(path, true)
	if err != nil || schema.Check(ctx, db, schema.Registry) == nil {
		return db, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	if db, err = schema.OpenFile(path, false); err != nil {
		return nil, err
	}
	if err = schema.Migrate(ctx, db, schema.Registry); err == nil {
		_, err = db.ExecContext(ctx, `PRAGMA journal_mode = delete`)
	}
	if err = errors.Join(err, db.Close(), os.Chtimes(path, time.Time{}, info.ModTime())); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return schema.OpenFile(path, true)
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

// Prune removes the snapshots in dir but keep: those of the releases that rollbacks of the primary
// go back to first. As many of the newest ones stay too, which may be for another primary.
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
		if err := os.Remove(snapshotPath(dir, release)); err != nil {
			return fmt.Errorf("remove an old snapshot: %w", err)
		}
	}
	return nil
}
