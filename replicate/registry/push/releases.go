package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"regedge/replicate/registry/libsql"
)

// Release is a release at the primary, or as a replica has it.
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

// Releases lists the releases of a database, the current one first: none of one to which
// nothing was ever pushed.
func Releases(ctx context.Context, client *libsql.Client) ([]Release, error) {
	there, err := client.Query(ctx, `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'release'`)
	switch {
	case err != nil:
		return nil, fmt.Errorf("list releases: %w", err)
	case len(there.Rows) == 0:
		return nil, nil
	}
	result, err := client.Query(ctx, `SELECT id, released_at, coalesce(pushed_at, 0), companies, llps, directors,
		appointments, partners, coalesce(digest, '') FROM release ORDER BY seq DESC`)
	if err != nil {
		return nil, fmt.Errorf("list releases: %w", err)
	}
	list := make([]Release, len(result.Rows))
	for i := range list {
		list[i] = Release{
			ID: result.Text(i, 0), Released: time.Unix(result.Int(i, 1), 0).UTC(), Pushed: time.Unix(result.Int(i, 2), 0).UTC(),
			Companies: result.Int(i, 3), LLPs: result.Int(i, 4), Directors: result.Int(i, 5),
			Appointments: result.Int(i, 6), Partners: result.Int(i, 7), Digest: result.Text(i, 8),
		}
	}
	return list, nil
}

// ErrNoEarlier is returned when there is no release to go back to. A primary that was made
// anew knows of none before the first that it got.
var ErrNoEarlier = errors.New("the primary had no earlier release whose snapshot is kept")

// Previous is the release that was current last of those that are no newer than the current
// one and whose snapshot is in dir: one that was rolled back does not come again.
func Previous(ctx context.Context, client *libsql.Client, dir string) (string, error) {
	releases, err := Releases(ctx, client)
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
