package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regedge/replicate/registry/libsql"
	"regedge/schema/content"
	"regedge/schema/search"
)

const (
	// generationBits is the size of a generation of places: 2^28 places are enough for 16 million
	// names with the gaps between them.
	generationBits = 28
	generations    = 8
	// holdPause is the time from a push's claim to its first record. An edge looks each second.
	holdPause = 3 * time.Second
	// movedShare: when more than one in so many entries has moved, the file's index was rebuilt,
	// and the whole search is written in a new generation.
	movedShare = 5
)

// state is the state of the primary after earlier pushes.
type state struct {
	current    string // newest release
	pushing    string // release whose push is not complete, or empty
	dirty      bool   // records of that release were written
	token      string // of the last push or rollback, empty before the first
	pushed     bool   // whether anything was pushed before
	generation int64
	terms      int64 // termsMark of the program that pushed
	names      int64 // number of search entries
}

func (p *pusher) readState(ctx context.Context) (s state, err error) {
	if p.blank {
		return state{}, nil
	}
	err = p.config.Primary.QueryRowContext(ctx, `SELECT
		coalesce((SELECT id FROM release ORDER BY seq DESC LIMIT 1), ''),
		coalesce((SELECT release FROM pushing), ''), coalesce((SELECT dirty FROM pushing), 0), coalesce((SELECT token FROM pushing), ''),
		coalesce((SELECT generation FROM search_push), 0), coalesce((SELECT terms FROM search_push), 0),
		(SELECT count(*) > 0 FROM search_push), (SELECT count(*) FROM search_name),
		coalesce((SELECT digest FROM release ORDER BY seq DESC LIMIT 1), '')`).
		Scan(&s.current, &s.pushing, &s.dirty, &s.token, &s.generation, &s.terms, &s.pushed, &s.names, &p.lastDigest)
	if err != nil {
		return s, fmt.Errorf("read the primary's state: %w", libsql.Explain(err))
	}
	p.generation = s.generation
	return s, nil
}

// needsNewGeneration reports whether the whole search has to be written again: too many entries
// have moved, or the program that pushed before made other terms of names.
func (s *state) needsNewGeneration(changes []change) bool {
	if s.pushed && s.terms != termsMark() {
		return true
	}
	if s.pushing != "" && s.dirty {
		return false // the push that is continued has decided it
	}
	moved := int64(0)
	for _, c := range changes {
		if c.Kind == entry && c.here && c.there {
			moved++
		}
	}
	return moved > s.names/movedShare
}

// begin claims the primary for this push, and gives the edges time to notice before the first record is written: they
// keep the previous release until the push is complete. It fails with ErrTakenOver, by a CHECK of the table, if
// another push has begun since the state before was read: the differences, and what was confirmed, would then refer
// to a release that is gone.
func (p *pusher) begin(ctx context.Context, before state) error {
	list := []libsql.Statement{
		{SQL: `INSERT INTO pushing (id, release, back, token, claimed, batch)
			VALUES (1, ?1, ?3, ?2, iif(coalesce((SELECT token FROM pushing), '') IN (?2, ?4), ?2, ''), 0)
			ON CONFLICT (id) DO UPDATE SET release = ?1, back = ?3, token = ?2, claimed = ?2, batch = 0 WHERE token <> ?2`,
			Args: []any{p.config.Release, p.token, p.config.Rollback, before.token}},
		{SQL: `INSERT OR IGNORE INTO search_push (id, generation, terms) VALUES (1, 0, ?1)`, Args: []any{termsMark()}},
		{SQL: `INSERT OR IGNORE INTO content_whole (id) VALUES (1)`},
	}
	tried := false
	err := p.call(ctx, func(ctx context.Context) error {
		if tried {
			if done, err := p.committed(ctx); done || err != nil && !errors.Is(err, ErrTakenOver) {
				return err
			}
		}
		tried = true
		return p.there.commit(ctx, list)
	})
	if errors.Is(err, libsql.ErrRefused) {
		if now, unread := p.readState(ctx); unread == nil && now.token != before.token {
			return fmt.Errorf("%w since this one compared the releases: nothing was written", ErrTakenOver)
		}
	}
	if err != nil {
		return fmt.Errorf("begin the push: %w", err)
	}
	if p.report.Whole || before.current == "" {
		return nil
	}
	if p.config.Pause(ctx, holdPause); ctx.Err() != nil {
		return ctx.Err()
	}
	if !p.report.NewGeneration {
		return nil
	}
	p.generation = (before.generation + 1) % generations
	return p.commit(ctx, p.moveSearch(before))
}

// moveSearch makes the hash of every search entry differ, so that all are written again; of those that still differ
// since an interrupted push, in content by an earlier version, it stays. If the entries have another program's terms, they can't be deleted one by one,
// and the index is emptied at once.
func (p *pusher) moveSearch(before state) []libsql.Statement {
	list := []libsql.Statement{
		{SQL: `UPDATE search_push SET generation = ?1, terms = ?2`, Args: []any{p.generation, termsMark()}},
		{SQL: `UPDATE content_newer SET hash = ~hash WHERE kind = ?1 AND hash >= 0`, Args: []any{int(entry)}},
		{SQL: `INSERT INTO content_newer (bucket, kind, key, hash, was) SELECT bucket, kind, key, iif(hash < 0, hash, ~hash), hash FROM content AS c WHERE kind = ?1
			AND NOT EXISTS (SELECT 1 FROM content_newer AS n WHERE n.bucket = c.bucket AND n.kind = c.kind AND n.key = c.key)`, Args: []any{int(entry)}},
	}
	if before.terms != termsMark() {
		list = append(list, libsql.Statement{SQL: `DELETE FROM search_name`},
			libsql.Statement{SQL: `INSERT INTO search_index (search_index) VALUES ('delete-all')`})
	}
	return list
}

// termsMark identifies the terms that this program makes of names. Entries can be deleted from the
// search index only with the terms that they were inserted with, so a primary with another mark
// gets a new index.
func termsMark() int64 {
	return content.Hash([]byte(search.Terms("abc & sons tea company private limited") + search.Terms("x") + search.Terms("नम llp")))
}
