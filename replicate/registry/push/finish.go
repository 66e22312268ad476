package push

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"regedge/replicate/registry/libsql"
	"regedge/schema/content"
)

// ErrDiffers means that the primary does not hold what was pushed: something else has written to
// it.
var ErrDiffers = errors.New("the primary differs from what was pushed: was it changed by hand? Push again")

// selectCounts counts the records, as one text.
const selectCounts = `SELECT json_array((SELECT count(*) FROM company), (SELECT count(*) FROM llp), (SELECT count(*) FROM director),
  (SELECT count(*) FROM appointment), (SELECT count(*) FROM partner), (SELECT count(*) FROM search_name))`

// selectDigest computes a digest of all content: the number of records, and the sums of both halves
// of their hashes.
const selectDigest = `SELECT printf('%d-%d-%d', sum(records), coalesce(sum(low), 0), coalesce(sum(high), 0)) FROM (
  SELECT count(*) AS records, sum(hash & 4294967295) AS low, sum(hash >> 32) AS high FROM content
  UNION ALL SELECT records, low, high FROM content_newer)`

const selectCommon = `SELECT coalesce(json_group_array(json_array(term, names)), '[]') FROM (SELECT term, names FROM search_common ORDER BY term)`

// selectRelease reads the row of a release.
const selectRelease = `SELECT json_array(id, released_at, companies, llps, directors, appointments, partners) FROM release WHERE id = ?1`

// putRelease makes the release ?1 the current one, also when the primary has had it before.
const putRelease = `INSERT INTO release (seq, id, released_at, companies, llps, directors, appointments, partners, digest, pushed_at)
SELECT (SELECT coalesce(max(seq), 0) + 1 FROM release), ?1 ->> 0, ?1 ->> 1, ?1 ->> 2, ?1 ->> 3, ?1 ->> 4, ?1 ->> 5, ?1 ->> 6, ?2, ?3
WHERE true ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, digest = excluded.digest, pushed_at = excluded.pushed_at`

// finish compares the digests of both databases and writes the release.
func (p *pusher) finish(ctx context.Context) error {
	var digest string
	for _, query := range []string{selectCounts, selectDigest} {
		near, far, err := both(p.here, p.there, "count the records", func(a *side) (string, error) { return a.text(ctx, query) })
		if err != nil {
			return err
		}
		if near != far {
			return fmt.Errorf("%w (%s in the snapshot, %s at the primary)", ErrDiffers, near, far)
		}
		digest = near
	}
	release, err := p.here.text(ctx, selectRelease, p.config.Release)
	if err != nil {
		return fmt.Errorf("read the release: %w", err)
	}
	list, hash, err := p.commonTerms(ctx)
	if err != nil {
		return err
	}
	digest += hash
	list = append(append(list, p.stack()...),
		libsql.Statement{SQL: putRelease, Args: []any{release, digest, p.config.Now().Unix()}},
		libsql.Statement{SQL: `UPDATE pushing SET release = '', dirty = 0`})
	if err := p.commit(ctx, list); err != nil {
		return fmt.Errorf("write the release: %w", err)
	}
	return nil
}

// commonTerms returns the statements that replace the counts of common terms, none if they are as
// in the last push, and their hash, which ends the digest of a release.
func (p *pusher) commonTerms(ctx context.Context) (list []libsql.Statement, hash string, err error) {
	terms, err := p.here.text(ctx, selectCommon)
	if err != nil {
		return nil, "", fmt.Errorf("read the common terms: %w", err)
	}
	hash = fmt.Sprintf("-%x", content.Hash([]byte(terms)))
	if strings.HasSuffix(p.lastDigest, hash) {
		return nil, hash, nil
	}
	return []libsql.Statement{
		{SQL: `DELETE FROM search_common`},
		{SQL: `INSERT INTO search_common (term, names) SELECT value ->> 0, value ->> 1 FROM json_each(?1)`, Args: []any{terms}},
	}, hash, nil
}
