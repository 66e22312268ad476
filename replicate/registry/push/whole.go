package push

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

const (
	// wholeShare: when more than one in so many records differ, the whole file is handed over, if
	// Config.PrimaryDir says where. Written one by one, 8 million records took hours and made the primary
	// write 30 times their size.
	wholeShare = 20
	// takenLimit is how long a primary may take to notice a seed. It then compresses the seed before it takes it.
	takenLimit = 30 * time.Second
	// servedLimit is how long the primary may then take until it answers with the new database.
	servedLimit = 10 * time.Minute
	seedPause   = 200 * time.Millisecond
	// copyBytes is how much of the file is copied between two calls of Progress.
	copyBytes = 32 << 20
	// handedOver is the name, among the snapshots, of a file being made for a hand-over.
	handedOver = "handover-*.part"
)

// ErrNotTaken means that no primary has taken the file that was handed over.
var ErrNotTaken = errors.New("no primary takes the file")

// kept are the tables with rows of the primary that a handed-over file lacks.
var kept = []struct{ name, columns string }{
	{"release", "seq, id, released_at, companies, llps, directors, appointments, partners, digest, pushed_at"},
	{"release_stack", "depth, release"},
	{"heartbeat", "id, beat"},
	{"pushing", "id, release, back, token, claimed, batch"},
}

// handOver brings the release to the primary as a file: a copy of the snapshot, with the primary's rows
// about earlier releases, replaces its database. So readers have the previous release or this one, never
// both. The file has the release's row already, and nothing is written afterwards. It is made among the
// snapshots: another user may control the primary's directory.
func (p *pusher) handOver(ctx context.Context) error {
	if err := p.checkClaimThere(ctx); err != nil {
		return err
	}
	made, err := os.CreateTemp(p.config.Snapshots, handedOver) // pushes to other primaries may share the folder
	if err != nil {
		return fmt.Errorf("hand the file over: %w", err)
	}
	file := made.Name()
	err = errors.Join(made.Close(), p.makeSeed(ctx, file))
	if err == nil {
		// The push that has taken over meanwhile must win.
		_, err = p.committed(ctx)
	}
	if err == nil {
		err = p.config.PrimaryDir.Put(file, func(to io.Writer, from *os.File) error {
			_, err := p.copyFile(ctx, to, from)
			return err
		})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("hand the file over: %w", err), removeDatabase(file))
	}
	return p.awaitSeed(ctx)
}

// checkClaimThere refuses a directory whose database is not the one in which this push has just made its claim: a
// primary there, such as that of access, would replace its own database by the registry. What can't be read is left to
// the primary.
func (p *pusher) checkClaimThere(ctx context.Context) error {
	dir := string(p.config.PrimaryDir)
	if !regularIn(dir, sqld.File(dir)) {
		return nil
	}
	db, err := schema.OpenReadOnly(sqld.File(dir))
	if err != nil {
		return nil
	}
	defer db.Close()
	var token string
	err = db.QueryRowContext(ctx, `SELECT token FROM pushing`).Scan(&token)
	switch {
	case err == nil && token == p.token:
		return nil
	case err != nil && !errors.Is(err, sql.ErrNoRows) && !errors.Is(err, sqlite3.ERROR): // ERROR: the database has no such table
		return nil
	}
	if _, err := p.committed(ctx); err != nil { // another push may have claimed it since
		return err
	}
	return fmt.Errorf("%w from %s: %w", ErrNotTaken, dir, errAnotherDatabase)
}

// errAnotherDatabase is the reason why a directory gets no file.
var errAnotherDatabase = errors.New("it has another database than the primary that was asked")

// regularIn reports whether a path below a directory is a regular file and no link on the way leads out of the
// directory.
func regularIn(dir, path string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	below, err := filepath.Rel(dir, path)
	if err != nil {
		return false
	}
	info, err := root.Stat(below)
	return err == nil && info.Mode().IsRegular()
}

// makeSeed makes the file.
func (p *pusher) makeSeed(ctx context.Context, path string) error {
	if err := removeDatabase(path); err != nil {
		return err
	}
	if err := p.copySnapshot(ctx, path); err != nil {
		return err
	}
	db, err := schema.OpenFile(path)
	if err != nil {
		return err
	}
	if err := errors.Join(p.complete(ctx, db), db.Close()); err != nil {
		return err
	}
	return syncFile(path)
}

// removeDatabase removes a file of SQLite with what may lie beside it.
func removeDatabase(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		errs = append(errs, os.RemoveAll(path+suffix))
	}
	return errors.Join(errs...)
}

// copySnapshot copies the snapshot, which nobody writes.
func (p *pusher) copySnapshot(ctx context.Context, path string) (err error) {
	from, err := os.Open(snapshotPath(p.config.Snapshots, p.config.Release))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	size, err := p.copyFile(ctx, to, from)
	p.there.sent += size
	return err
}

func (p *pusher) copyFile(ctx context.Context, to io.Writer, from *os.File) (done int64, err error) {
	info, err := from.Stat()
	if err != nil {
		return 0, err
	}
	for done < info.Size() {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		n, err := io.CopyN(to, from, min(copyBytes, info.Size()-done))
		done += n
		if err != nil {
			return done, err
		}
		report(p.config.Progress, HandingOver, done, info.Size())
	}
	return done, nil
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// complete gives the copy the rows that the primary keeps, and makes its release the current one.
func (p *pusher) complete(ctx context.Context, db *sql.DB) error {
	release, err := p.here.text(ctx, selectRelease, p.config.Release)
	if err != nil {
		return fmt.Errorf("read the release: %w", err)
	}
	digest, err := p.here.text(ctx, selectDigest)
	if err != nil {
		return fmt.Errorf("read the digest: %w", err)
	}
	_, common, err := p.commonTerms(ctx)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, table := range kept {
		if err := p.keepRows(ctx, tx, table.name, table.columns); err != nil {
			return fmt.Errorf("keep the rows of %s: %w", table.name, err)
		}
	}
	for _, statement := range append(p.stack(),
		libsql.Statement{SQL: putRelease, Args: []any{release, digest + common, p.config.Now().Unix()}},
		libsql.Statement{SQL: `UPDATE pushing SET release = ''`},
		libsql.Statement{SQL: `INSERT INTO search_push (id, generation, terms) VALUES (1, 0, ?1)`, Args: []any{termsMark()}},
	) {
		if _, err := tx.ExecContext(ctx, statement.SQL, statement.Args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// keepRows replaces the rows of a table by those of the primary.
func (p *pusher) keepRows(ctx context.Context, tx *sql.Tx, name, columns string) error {
	list, err := p.there.text(ctx, fmt.Sprintf(`SELECT coalesce(json_group_array(json_array(%s)), '[]') FROM %s`, columns, name))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM `+name); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM json_each(?1)`,
		name, columns, elements(strings.Count(columns, ",")+1)), list)
	return err
}

// awaitSeed waits until the primary answers with the release. After an interrupted push it goes on waiting. A file that
// the primary has not taken is withdrawn if the push ends without it.
func (p *pusher) awaitSeed(ctx context.Context) error {
	began, primary := p.config.Now(), p.config.PrimaryDir
	for {
		done, err := p.served(ctx)
		switch {
		case done:
			return nil
		case errors.Is(err, ErrTakenOver), // the other push has written to the database that the file would replace
			errors.Is(err, libsql.ErrUnauthorized): // nobody would learn whether the primary takes the file later
			return errors.Join(err, withdraw(primary))
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), withdraw(primary))
		}
		waited := p.config.Now().Sub(began)
		if primary.Waits() && (waited > servedLimit || waited > takenLimit && !primary.Taking()) {
			if err := primary.Withdraw(); !errors.Is(err, fs.ErrNotExist) {
				return errors.Join(fmt.Errorf("%w from %s", ErrNotTaken, primary), err)
			}
		}
		if waited > servedLimit {
			return errors.Join(errors.New("the primary does not answer with the file that it has taken"), err)
		}
		p.config.Pause(ctx, seedPause)
	}
}

// withdraw removes a file that the primary has not taken, if there is one.
func withdraw(primary sqld.Seed) error {
	if err := primary.Withdraw(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// served reports whether the primary answers with the release that this push has handed over. Until it has the file,
// the push still counts as under way. The newest release may be this one already, if it is the rollback of an
// interrupted push.
func (p *pusher) served(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, err := p.committed(ctx); err != nil {
		return false, err
	}
	current, err := p.there.text(ctx, `SELECT id FROM release WHERE (SELECT release FROM pushing) = '' ORDER BY seq DESC LIMIT 1`)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return current == p.config.Release, err
}
