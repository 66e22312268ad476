package push

import (
	"context"
	"errors"
	"fmt"

	"regedge/replicate/registry/libsql"
)

const (
	// generationBits is the room that a generation of places has: 16 million names, with
	// their gaps.
	generationBits = 28
	generations    = 8
	// movedShare is the share of moved entries, one in so many, from which the whole search
	// goes into a new generation: the file's index was built anew.
	movedShare = 5
)

// state is what the primary says of earlier pushes.
type state struct {
	current    string // newest release
	pushing    string // release whose push is not complete
	pushed     bool   // something was pushed before
	generation int64
	terms      int64
	names      int64 // entries of the search
}

func (p *pusher) readState(ctx context.Context) (s state, err error) {
	if p.blank {
		return state{}, nil
	}
	err = p.config.Primary.QueryRowContext(ctx, `SELECT
		coalesce((SELECT id FROM release ORDER BY seq DESC LIMIT 1), ''),
		coalesce((SELECT release FROM pushing), ''),
		coalesce((SELECT generation FROM search_push), 0), coalesce((SELECT terms FROM search_push), 0),
		(SELECT count(*) > 0 FROM search_push), (SELECT count(*) FROM search_name),
		coalesce((SELECT digest FROM release ORDER BY seq DESC LIMIT 1), '')`).
		Scan(&s.current, &s.pushing, &s.generation, &s.terms, &s.pushed, &s.names, &p.lastDigest)
	if err != nil {
		return s, fmt.Errorf("read the primary's state: %w", libsql.Explain(err))
	}
	p.generation = s.generation
	return s, nil
}

// needsNewGeneration reports whether the entries of the search can't be moved one by one:
// too many have moved, or their terms are made in another way.
func (s *state) needsNewGeneration(changes []change) bool {
	if s.pushed && s.terms != termsMark() {
		return true
	}
	if s.pushing != "" {
		return false // it was decided when that push began
	}
	moved := int64(0)
	for _, c := range changes {
		if c.kind == entry && c.here && c.there {
			moved++
		}
	}
	return moved > s.names/movedShare
}

// begin takes the primary over for this push.
func (p *pusher) begin(ctx context.Context, before state) error {
	list := []libsql.Statement{
		{SQL: `INSERT INTO pushing (id, release, token, claimed, batch) VALUES (1, ?1, ?2, ?2, 0)
			ON CONFLICT (id) DO UPDATE SET release = ?1, token = ?2, claimed = ?2, batch = 0`, Args: []any{p.config.Release, p.token}},
		{SQL: `INSERT OR IGNORE INTO search_push (id, generation, terms) VALUES (1, 0, ?1)`, Args: []any{termsMark()}},
	}
	if p.report.NewGeneration {
		p.generation = (before.generation + 1) % generations
		list = append(list, p.moveSearch(before)...)
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
	if err != nil {
		return fmt.Errorf("begin the push: %w", err)
	}
	return nil
}

// moveSearch makes every entry of the search differ, so that it is written anew. Entries
// whose terms this program could not take out are taken out together.
func (p *pusher) moveSearch(before state) []libsql.Statement {
	list := []libsql.Statement{
		{SQL: `UPDATE search_push SET generation = ?1, terms = ?2`, Args: []any{p.generation, termsMark()}},
		{SQL: `UPDATE content SET hash = ~hash WHERE kind = ?1`, Args: []any{int(entry)}},
	}
	if before.terms != termsMark() {
		list = append(list, libsql.Statement{SQL: `DELETE FROM search_name`},
			libsql.Statement{SQL: `INSERT INTO search_index (search_index) VALUES ('delete-all')`})
	}
	return list
}
