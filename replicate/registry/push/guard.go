package push

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"regedge/replicate/registry/libsql"
	"regedge/schema/content"
)

// removedShare: a push that removes more than one in so many records of a kind, which is 2%, is
// confirmed first. An ordinary release removes hardly any: companies that end stay, as struck off.
const removedShare = 50

// selectCurrent reads the primary's current release, and how many records of each kind it has at least:
// appointments at a company that is not held are a record too.
const selectCurrent = `SELECT id, released_at, companies, llps, directors, (SELECT count(*) FROM pincode)
FROM release ORDER BY seq DESC LIMIT 1`

// selectKinds counts the records of each kind. It reads the whole table.
const selectKinds = `SELECT kind, sum(records) FROM (
  SELECT kind, count(*) AS records FROM content GROUP BY kind UNION ALL SELECT kind, records FROM content_newer)
GROUP BY kind`

// selectOrigin tells when the snapshot's release ?1 was made, and whether its file ever held release ?2.
const selectOrigin = `SELECT released_at, EXISTS (SELECT 1 FROM release WHERE id = ?2) FROM release WHERE id = ?1`

// selectRolledBack tells whether release ?1 was pushed before, and rolled back.
const selectRolledBack = `SELECT EXISTS (SELECT 1 FROM release WHERE id = ?1 AND pushed_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM release_stack WHERE release = ?1)`

// confirm asks Config.Ask, or Config.Confirm if the push may be a mistake. A push that continues an
// interrupted one was confirmed when that began.
func (p *pusher) confirm(ctx context.Context, before state) (err error) {
	if p.blank || before.pushing == p.config.Release {
		return nil
	}
	if p.report.Doubts, err = p.doubts(ctx); err != nil {
		return fmt.Errorf("compare the releases: %w", libsql.Explain(err))
	}
	switch {
	case p.config.DryRun:
		return nil
	case p.config.Ask != nil:
		return p.config.Ask(p.report)
	case len(p.report.Doubts) == 0 || p.config.Confirm == nil:
		return nil
	}
	return p.config.Confirm(p.report)
}

// doubts are the reasons to confirm the push, as sentences. A rollback is meant to be older.
func (p *pusher) doubts(ctx context.Context) (list []string, err error) {
	var current string
	var currentMade, companies, llps, directors, pincodes int64
	err = p.config.Primary.QueryRowContext(ctx, selectCurrent).Scan(&current, &currentMade, &companies, &llps, &directors, &pincodes)
	first := errors.Is(err, sql.ErrNoRows)
	if err != nil && !first {
		return nil, err
	}
	least := map[kind]int64{company: companies, llp: llps, director: directors, pincode: pincodes, entry: companies + llps}
	if p.removesMany(least) {
		if list, err = p.removals(ctx); err != nil {
			return nil, err
		}
	}
	lost, err := p.partsLost(ctx, least)
	if err != nil {
		return nil, err
	}
	list = append(list, lost...)
	if first || p.config.Rollback {
		return list, nil
	}
	origin, err := p.origin(ctx, current, currentMade)
	return append(list, origin...), err
}

// removesMany reports whether the push removes more than its share of the records of any kind.
func (p *pusher) removesMany(had map[kind]int64) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return p.removesShare(k, had[k]) })
}

func (p *pusher) removesShare(k kind, had int64) bool { return p.removed(k)*removedShare > had }

func (p *pusher) removed(k kind) int64 { return p.report.Counts[k-1].Removed }

// removals lists the kinds that lose more than their share, by the exact numbers.
func (p *pusher) removals(ctx context.Context) (list []string, err error) {
	rows, err := p.config.Primary.QueryContext(ctx, selectKinds)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k kind
		var had int64
		if err := rows.Scan(&k, &had); err != nil {
			return nil, err
		}
		if p.removesShare(k, had) {
			list = append(list, fmt.Sprintf("%d of %d %v would go", p.removed(k), had, k))
		}
	}
	return list, rows.Err()
}

// manyParts is more than the parts of nearly any record. If so few records change that each would have to lose
// that many parts, the parts are not counted: counting takes a second in a registry of the country's size.
const manyParts = 100

// partsLost lists the parts of records, such as appointments, of which more than their share would go, and adds
// their number to the report. It leaves out kinds of which so many records go themselves. A record that loses its
// parts is changed, not removed. A part that replaces another does not count. had is at least how many records of
// each kind the primary has.
func (p *pusher) partsLost(ctx context.Context, had map[kind]int64) (list []string, err error) {
	p.report.PartsRemoved = 0
	for _, k := range []kind{company, llp} {
		touched := p.report.Counts[k-1].Changed + p.report.Counts[k-1].Removed
		if touched*manyParts*removedShare <= had[k] || p.removesShare(k, had[k]) {
			continue
		}
		for _, t := range content.Tables[k][1:] {
			count := "SELECT count(*) FROM " + t.Name
			var before, after int64
			if err := p.config.Primary.QueryRowContext(ctx, count).Scan(&before); err != nil {
				return nil, err
			}
			if err := p.local.QueryRowContext(ctx, count).Scan(&after); err != nil {
				return nil, err
			}
			if gone := before - after; gone*removedShare > before {
				p.report.PartsRemoved += gone
				list = append(list, fmt.Sprintf("%d of %d %ss would go", gone, before, t.Name))
			}
		}
	}
	return list, nil
}

// origin compares the snapshot's file with the primary's current release.
func (p *pusher) origin(ctx context.Context, current string, currentMade int64) (list []string, err error) {
	var made int64
	var continues bool
	if err := p.local.QueryRowContext(ctx, selectOrigin, p.config.Release, current).Scan(&made, &continues); err != nil {
		return nil, err
	}
	if made < currentMade {
		list = append(list, fmt.Sprintf("it was made on %s, before release %s, which is current, on %s", day(made), current, day(currentMade)))
	}
	if !continues {
		list = append(list, fmt.Sprintf("its file does not continue release %s, which is current", current))
	}
	var back bool
	if err := p.config.Primary.QueryRowContext(ctx, selectRolledBack, p.config.Release).Scan(&back); err != nil {
		return nil, err
	}
	if back {
		list = append(list, "it was rolled back: what was wrong with it would be back")
	}
	return list, nil
}

func day(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }
