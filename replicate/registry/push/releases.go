package push

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"regedge/replicate/registry/libsql"
)

// Release is a release that was pushed.
type Release struct {
	ID           string    `json:"id"`
	Released     time.Time `json:"released_at"`
	Pushed       time.Time `json:"pushed_at"`
	Companies    int64     `json:"companies"`
	LLPs         int64     `json:"llps"`
	Directors    int64     `json:"directors"`
	Appointments int64     `json:"appointments"`
	Partners     int64     `json:"partners"`
	Digest       string    `json:"digest"`
}

// Releases lists the releases of a primary or a replica, the current one first. A database to
// which nothing was ever pushed has none.
func Releases(ctx context.Context, db *sql.DB) ([]Release, error) {
	list, err := releases(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("list releases: %w", libsql.Explain(err))
	}
	return list, nil
}

func releases(ctx context.Context, db *sql.DB) (list []Release, err error) {
	var any bool
	err = db.QueryRowContext(ctx, `SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = 'release'`).Scan(&any)
	if err != nil || !any {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT id, released_at, coalesce(pushed_at, 0), companies, llps, directors,
		appointments, partners, coalesce(digest, '') FROM release ORDER BY seq DESC`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r Release
		var released, pushed int64
		if err := rows.Scan(&r.ID, &released, &pushed, &r.Companies, &r.LLPs, &r.Directors, &r.Appointments, &r.Partners, &r.Digest); err != nil {
			return nil, err
		}
		r.Released, r.Pushed = time.Unix(released, 0).UTC(), time.Unix(pushed, 0).UTC()
		list = append(list, r)
	}
	return list, rows.Err()
}

// ErrNoEarlier means that there is no release to go back to: a primary lists the releases that were
// pushed to it since it was created.
var ErrNoEarlier = errors.New("no other release was current at the primary before")

// selectPrevious reads the release that a rollback goes back to: the interrupted rollback's, if there
// is one; the current one after an interrupted push; else the one before the current one.
const selectPrevious = `SELECT coalesce(
  (SELECT iif(back, release, (SELECT release FROM release_stack ORDER BY depth DESC LIMIT 1)) FROM pushing WHERE release <> ''),
  (SELECT release FROM release_stack ORDER BY depth DESC LIMIT 1 OFFSET 1), '')`

// Previous is the release to roll back to: the one that was current before the current one was pushed.
// A release that was rolled back is not chosen, and a push that did not complete is undone first.
func Previous(ctx context.Context, db *sql.DB) (release string, err error) {
	list, err := Releases(ctx, db)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", ErrNoEarlier
	}
	if err := db.QueryRowContext(ctx, selectPrevious).Scan(&release); err != nil {
		return "", fmt.Errorf("find the release before: %w", libsql.Explain(err))
	}
	if release == "" {
		return "", ErrNoEarlier
	}
	return release, nil
}

// stacked lists at most n releases: the current one, then those that rollbacks would go back to, one
// after another.
func stacked(ctx context.Context, db *sql.DB, n int) (list []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT release FROM release_stack GROUP BY release ORDER BY max(depth) DESC LIMIT ?`, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var release string
		if err := rows.Scan(&release); err != nil {
			return nil, err
		}
		list = append(list, release)
	}
	return list, rows.Err()
}

// stack returns the statements that put this push's release on top of release_stack.
func (p *pusher) stack() (list []libsql.Statement) {
	if p.config.Rollback {
		list = append(list, libsql.Statement{SQL: `DELETE FROM release_stack
			WHERE depth > (SELECT max(depth) FROM release_stack WHERE release = ?1)`, Args: []any{p.config.Release}})
	}
	return append(list, libsql.Statement{SQL: `INSERT INTO release_stack (release)
		SELECT ?1 WHERE ?1 IS NOT (SELECT release FROM release_stack ORDER BY depth DESC LIMIT 1)`, Args: []any{p.config.Release}})
}
