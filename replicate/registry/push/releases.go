package push

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
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
var ErrNoEarlier = errors.New("the primary had no earlier release whose snapshot is kept")

// Previous is the release to roll back to: the latest current one among those that are no newer
// than the current release and have a snapshot in dir. So a release that was rolled back is not
// chosen.
func Previous(ctx context.Context, db *sql.DB, dir string) (string, error) {
	releases, err := Releases(ctx, db)
	if err != nil {
		return "", err
	}
	kept, err := Snapshots(dir)
	if err != nil {
		return "", err
	}
	for i, r := range releases {
		if i > 0 && !r.Released.After(releases[0].Released) && slices.Contains(kept, r.ID) {
			return r.ID, nil
		}
	}
	if len(kept) == 0 {
		return "", ErrNoEarlier
	}
	return "", fmt.Errorf("%w; kept are %s", ErrNoEarlier, strings.Join(kept, ", "))
}
