package push

import (
	"context"
	"fmt"
	"math"

	"regedge/replicate/registry/libsql"
)

// compare finds the records that differ, and counts them. Beyond limit it keeps no list: the file is
// then handed over whole.
func (p *pusher) compare(ctx context.Context, limit int) (changes []change, err error) {
	before := p.there.received
	defer func() { p.report.Compared += p.there.received - before }()
	p.report.Counts = noCounts()
	if limit == 0 {
		p.report.Whole = true
		return nil, p.countAll(ctx)
	}
	err = compare(ctx, p.here, p.there, func(c change) {
		p.count(c)
		switch {
		case p.report.Whole:
		case len(changes) == limit:
			changes, p.report.Whole = nil, true
		default:
			changes = append(changes, c)
		}
	}, func(done, total int) { report(p.config.Progress, Comparing, int64(done), int64(total)) })
	return changes, err
}

// noCounts has every kind, without a difference.
func noCounts() []Count {
	counts := make([]Count, len(kinds))
	for i, k := range kinds {
		counts[i].Kind = k.String()
	}
	return counts
}

func (p *pusher) count(c change) {
	count := &p.report.Counts[c.Kind-1]
	switch {
	case !c.there:
		count.Added++
	case c.here:
		count.Changed++
	default:
		count.Removed++
	}
}

// foresee counts for a dry run what a push would write besides the differences: the whole search, if it is
// rewritten.
func (p *pusher) foresee(ctx context.Context) error {
	if !p.report.NewGeneration {
		return nil
	}
	var all int64
	if err := p.local.QueryRowContext(ctx, `SELECT count(*) FROM search_name`).Scan(&all); err != nil {
		return fmt.Errorf("count the search entries: %w", err)
	}
	entries := &p.report.Counts[entry-1]
	entries.Changed = all - entries.Added
	return nil
}

// countAll counts the records for a primary that has none.
func (p *pusher) countAll(ctx context.Context) error {
	rows, err := p.local.QueryContext(ctx, selectKinds)
	if err != nil {
		return fmt.Errorf("count the records: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k kind
		var n int64
		if err := rows.Scan(&k, &n); err != nil {
			return fmt.Errorf("count the records: %w", err)
		}
		p.report.Counts[k-1].Added = n
	}
	return rows.Err()
}

// listLimit is how many differing records are still written one by one; 0 for a primary without
// records.
func (p *pusher) listLimit(ctx context.Context) (int, error) {
	if p.config.PrimaryDir == "" {
		return math.MaxInt, nil
	}
	if p.blank {
		return 0, nil
	}
	var records int
	err := p.config.Primary.QueryRowContext(ctx, `SELECT coalesce(sum(records), 0) FROM content_part`).Scan(&records)
	if err != nil {
		return 0, fmt.Errorf("count the primary's records: %w", libsql.Explain(err))
	}
	return min(records, max(1, records/wholeShare)), nil
}
