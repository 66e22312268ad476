package push

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// contentFile is a registry of 20,000 companies in one of the first parts, of which 50 share a bucket, with
// further changes.
func contentFile(t *testing.T, changes string) *sql.DB {
	t.Helper()
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "content.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	_, err = db.Exec(`INSERT INTO content_whole VALUES (1);
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO content SELECT CASE WHEN i <= 50 THEN 777 ELSE i * 51 END, 1, 'c' || i, i * 1000003 FROM n;` + changes)
	require.NoError(t, err)
	return db
}

// TestEachDifferenceIsFoundAmongManyRecords, also in a bucket with more records than are listed, without
// reading much more than the parts that differ.
func TestEachDifferenceIsFoundAmongManyRecords(t *testing.T) {
	here := &side{db: contentFile(t, "")}
	there := &side{db: contentFile(t, `UPDATE content SET hash = 5 WHERE key IN ('c7', 'c9000');
		DELETE FROM content WHERE key IN ('c8', 'c15000');
		INSERT INTO content VALUES (777, 2, 'l1', 1), (777, 2, 'a, b', 2), (1019990, 1, 'new', 3), (4294967295, 1, 'last', 4)`)}
	want := []change{
		{record{Kind: company, Key: "c7"}, true, true, 7 * 1000003}, {record{Kind: company, Key: "c9000"}, true, true, 9000 * 1000003},
		{record{Kind: company, Key: "c8"}, true, false, 8 * 1000003}, {record{Kind: company, Key: "c15000"}, true, false, 15000 * 1000003},
		{record{Kind: llp, Key: "l1"}, false, true, 0}, {record{Kind: llp, Key: "a, b"}, false, true, 0},
		{record{Kind: company, Key: "new"}, false, true, 0}, {record{Kind: company, Key: "last"}, false, true, 0},
	}
	var found []change
	done, total := 0, 0
	require.NoError(t, compare(t.Context(), here, there, func(c change) { found = append(found, c) }, func(d, all int) {
		require.GreaterOrEqual(t, d, done)
		require.LessOrEqual(t, d, all)
		done, total = d, all
	}))
	require.ElementsMatch(t, want, found)
	require.Equal(t, 2, total, "two of the first parts differ")
	require.Equal(t, total, done)
	require.Less(t, there.received, int64(15_000), "all records are 400,000 bytes")

	found = nil
	require.NoError(t, compare(t.Context(), there, &side{db: there.db}, func(c change) { found = append(found, c) }, func(int, int) {}))
	require.Empty(t, found)
}

// TestAPartIsDividedWhicheverSideHasMore: an answer that lists thousands of records could be beyond sqld's limit.
func TestAPartIsDividedWhicheverSideHasMore(t *testing.T) {
	many := &side{db: contentFile(t, "")}
	few := &side{db: contentFile(t, "DELETE FROM content WHERE key <> 'c100'")}
	for _, sides := range [][2]*side{{many, few}, {few, many}} {
		parts, listed, err := allHashes.divide(t.Context(), sides[0], sides[1], []span{{0, allBuckets, 1}}, allBuckets/firstParts)
		require.NoError(t, err)
		require.Equal(t, []span{{0, allBuckets / firstParts, 20_000}}, parts)
		require.Empty(t, listed)
	}
}

// TestADatabaseThatCannotBeReadIsNoEmptyOne: everything would be written, or deleted.
func TestADatabaseThatCannotBeReadIsNoEmptyOne(t *testing.T) {
	whole := &side{db: contentFile(t, "")}
	closed := &side{db: contentFile(t, "")}
	require.NoError(t, closed.db.Close())
	halfway := &side{db: contentFile(t, `UPDATE content SET hash = 5 WHERE key = 'c9000'; ALTER TABLE content RENAME TO lost`)}
	// Their records can be summed, and not listed: the one in a part with many others, the other in a part of its own.
	const unlisted = `; ALTER TABLE content RENAME COLUMN key TO lost`
	many := &side{db: contentFile(t, `UPDATE content SET hash = 5 WHERE key = 'c9000'`+unlisted)}
	alone := &side{db: contentFile(t, `INSERT INTO content VALUES (4000000000, 1, 'far', 5)`+unlisted)}
	for _, sides := range [][2]*side{{whole, closed}, {closed, whole}, {whole, halfway}, {halfway, whole}, {whole, many}, {many, whole}, {whole, alone}, {alone, whole}} {
		found := 0
		require.Error(t, compare(t.Context(), sides[0], sides[1], func(change) { found++ }, func(int, int) {}))
		require.Zero(t, found)
		_, err := allHashes.list(t.Context(), sides[0], []span{{0, allBuckets, 1}})
		require.Equal(t, sides[0] != whole, err != nil)
	}
}

// TestNoSideIsReadOnOnceBothAreGivenUp: its database may be closed next.
func TestNoSideIsReadOnOnceBothAreGivenUp(t *testing.T) {
	here, there := &side{}, &side{}
	ended := false
	_, _, err := both(here, there, "read", func(a *side) (int, error) {
		if a == there {
			return 0, errors.New("away")
		}
		time.Sleep(10 * time.Millisecond)
		ended = true
		return 1, nil
	})
	require.EqualError(t, err, "read of the primary: away")
	require.True(t, ended)
}

// TestEveryDifferenceIsFoundBeyondTheRangesOfOneQuery: more than 1,000 parts differ at a level.
func TestEveryDifferenceIsFoundBeyondTheRangesOfOneQuery(t *testing.T) {
	const spread = `DELETE FROM content; WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO content SELECT i * 867, 1, 'c' || i, i FROM n;`
	here, there := &side{db: contentFile(t, spread)}, &side{db: contentFile(t, spread+`UPDATE content SET hash = hash + 1;`)}
	found := map[record]bool{}
	require.NoError(t, compare(t.Context(), here, there, func(c change) { found[c.record] = true }, func(int, int) {}))
	require.Equal(t, 20_000, len(found))
}

// TestWhereMostDiffersPartsAreListedAsTheyAre, and so many at a time that the answer stays below sqld's limit.
func TestWhereMostDiffersPartsAreListedAsTheyAre(t *testing.T) {
	const parts = 2 * partsAtOnce
	spread := fmt.Sprintf(`DELETE FROM content; WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO content SELECT i * %d, 1, 'c' || i, i FROM n;`, parts<<20/20_000)
	here, there := &side{db: contentFile(t, spread)}, &side{db: contentFile(t, spread+`UPDATE content SET hash = hash + 1;`)}
	found := map[record]bool{}
	visit := func(c change) { found[c.record] = true }
	require.NoError(t, compare(t.Context(), here, there, visit, func(int, int) {}))
	require.Len(t, found, 20_000)
	received := there.received

	const width = allBuckets / firstParts
	var spans []span
	for i := range int64(parts) {
		spans = append(spans, span{i * width, (i + 1) * width, 40})
	}
	clear(found)
	there.received = 0
	require.NoError(t, allHashes.compareWhole(t.Context(), here, there, spans, width, visit))
	require.Len(t, found, 20_000)
	listed := there.received
	require.Greater(t, received, listed, "the first half was divided")

	clear(found)
	there.received = 0
	require.NoError(t, allHashes.compareParts(t.Context(), here, there, spans, width, visit))
	require.Len(t, found, 20_000)
	require.Less(t, received, there.received, "the second half was not")

	for _, records := range []int64{recordsAtOnce, recordsAtOnce + 1} {
		spans[1].records = records
		clear(found)
		there.received = 0
		require.NoError(t, allHashes.compareWhole(t.Context(), here, there, spans, width, visit))
		require.Len(t, found, 20_000)
		require.Equal(t, records > recordsAtOnce, there.received > listed, "a part of more records than one query lists is divided")
	}
}

// TestADifferenceInEitherHalfOfAHashIsFound.
func TestADifferenceInEitherHalfOfAHashIsFound(t *testing.T) {
	const greatest = `UPDATE content SET hash = 1 << 50 WHERE key = 'c50';` // of those that share a bucket
	here := &side{db: contentFile(t, greatest)}
	digest := func(s *side) string {
		text, err := s.text(t.Context(), selectDigest)
		require.NoError(t, err)
		return text
	}
	for _, change := range []string{"hash + (1 << 40) WHERE key = 'c9000'", "hash + (1 << 3) WHERE key = 'c9000'", "hash + (1 << 33) WHERE key = 'c7'", "hash + (1 << 3) WHERE key = 'c7'"} {
		there := &side{db: contentFile(t, greatest+`UPDATE content SET hash = `+change)}
		require.NotEqual(t, digest(here), digest(there), change)
		found := 0
		require.NoError(t, compare(t.Context(), here, there, countTo(&found), func(int, int) {}))
		require.Equal(t, 1, found, change)
	}
}

// TestADifferenceInEitherHalfOfANewerHashIsFound, beside a greater one that is the same.
func TestADifferenceInEitherHalfOfANewerHashIsFound(t *testing.T) {
	put := func(hash int64) *side {
		s := &side{db: contentFile(t, "")}
		rows := [][4]any{{5, int(company), "great", int64(1) << 60}, {6, int(company), "low", int64(1)<<32 - 1}, {7, int(company), "one", hash}}
		for i := range 9 { // more than are listed at once
			rows = append(rows, [4]any{1000 + i, int(company), fmt.Sprint(i), i})
		}
		_, err := s.db.Exec(putContent, encode(rows))
		require.NoError(t, err)
		return s
	}
	here := put(0)
	for _, hash := range []int64{1 << 3, 1 << 33, 1<<40 + 1} {
		found := 0
		require.NoError(t, compare(t.Context(), here, put(hash), countTo(&found), func(int, int) {}))
		require.Equal(t, 1, found, hash)
	}
}

// TestHashesThatWereMadeAnewAreTold: by any of a file's hashes, in whichever part.
func TestHashesThatWereMadeAnewAreTold(t *testing.T) {
	const more = `INSERT INTO content VALUES (4000000000, 1, 'far', 1 << 60), (4000000001, 1, 'farther', (1 << 32) - 1);`
	filled := func(changes string) *side { return &side{db: contentFile(t, more+changes)} }
	with := func(changes string) string {
		text, err := filled(changes).text(t.Context(), selectFilled)
		require.NoError(t, err)
		return text
	}
	first := with("")
	require.Equal(t, "20002-", first[:6])
	for _, later := range []string{
		`INSERT INTO content_newer VALUES (4000000000, 1, 'far', 5, 1 << 60), (9, 1, 'new', 7, NULL), (10, 1, 'same', 7, NULL), (4000000001, 1, 'farther', NULL, (1 << 32) - 1)`,
		`INSERT INTO content_newer VALUES (9, 1, 'new', 7, NULL); UPDATE content_newer SET hash = NULL`,
	} {
		require.Equal(t, first, with(later), "what changed since does not count")
	}
	for _, other := range []string{
		`UPDATE content SET hash = hash + 1 WHERE key = 'far'`, `UPDATE content SET hash = hash + (1 << 32) WHERE key = 'farther'`,
		`UPDATE content SET hash = hash + 1 WHERE key = 'c5'`, `UPDATE content SET hash = hash + (1 << 40) WHERE key = 'c5'`,
		`DELETE FROM content WHERE key = 'c5'`, `INSERT INTO content VALUES (9, 1, 'new', 0)`,
	} {
		require.NotEqual(t, first, with(other), other)
	}
}

func countTo(n *int) func(change) { return func(change) { *n++ } }

// TestHashesThatAPushChangedCount: changed, removed, added, and back as they were. Others may be in their
// buckets.
func TestHashesThatAPushChangedCount(t *testing.T) {
	here := &side{db: contentFile(t, "")}
	db := contentFile(t, `DELETE FROM content WHERE key = 'c300'`)
	there := &side{db: db}
	bucketOf := func(key string) (bucket int64) {
		require.NoError(t, here.db.QueryRow(`SELECT bucket FROM content WHERE key = ?1`, key).Scan(&bucket))
		return bucket
	}
	put := func(bucket int64, key string, hash any) {
		t.Helper()
		_, err := db.Exec(putContent, encode([][4]any{{bucket, int(company), key, hash}}))
		require.NoError(t, err)
	}
	put(bucketOf("c7"), "c7", 5)
	put(bucketOf("c8"), "c8", nil)
	put(777, "added", 6)
	put(778, "added and removed", 7)
	put(778, "added and removed", nil)
	put(778, "removed twice", nil)
	put(bucketOf("c9000"), "c9000", 8)
	put(bucketOf("c9000"), "c9000", 9000*1000003) // as it was
	put(bucketOf("c9001"), "c9001", nil)
	put(bucketOf("c9001"), "c9001", 9)
	put(bucketOf("c300"), "c300", 300*1000003) // which content lacks
	want := []change{
		{record{Kind: company, Key: "c7"}, true, true, 7 * 1000003}, {record{Kind: company, Key: "c8"}, true, false, 8 * 1000003},
		{record{Kind: company, Key: "added"}, false, true, 0}, {record{Kind: company, Key: "c9001"}, true, true, 9001 * 1000003},
	}
	differences := func() (found []change) {
		t.Helper()
		require.Equal(t, dump(t, db, sumsOfContent), dump(t, db, "SELECT * FROM content_part WHERE records > 0 ORDER BY 1"))
		require.NoError(t, compare(t.Context(), here, there, func(c change) { found = append(found, c) }, func(int, int) {}))
		return found
	}
	require.ElementsMatch(t, want, differences())
	require.Equal(t, []string{"[{1 true} {20000 true}]"}, dump(t, db, selectKinds), "one was removed and one added")
	digest, err := there.text(t.Context(), selectDigest)
	require.NoError(t, err)

	_, err = db.Exec(`UPDATE content SET hash = ~hash; UPDATE content_newer SET hash = ~hash, was = ~was`)
	require.NoError(t, err)
	require.Len(t, differences(), 20_001, "all of them, and the one that was added")

	// The same records in a table that was filled anew have the same digest.
	_, err = db.Exec(`UPDATE content SET hash = ~hash; UPDATE content_newer SET hash = ~hash, was = ~was;
		CREATE TABLE now AS ` + contentNow + `; DELETE FROM content_newer; DELETE FROM content; INSERT INTO content SELECT * FROM now`)
	require.NoError(t, err)
	anew, err := there.text(t.Context(), selectDigest)
	require.NoError(t, err)
	require.Equal(t, anew, digest)
}

// TestDatabasesOfOneFillAreComparedByWhatChangedSince: each history of a record here meets each one there.
func TestDatabasesOfOneFillAreComparedByWhatChangedSince(t *testing.T) {
	here, there := &side{db: contentFile(t, "")}, &side{db: contentFile(t, "")}
	// write gives a record its hashes in turn, and returns the last one.
	write := func(s *side, bucket int64, key string, was any, hashes []any) any {
		for _, was = range hashes {
			_, err := s.db.Exec(putContent, encode([][4]any{{bucket, int(company), key, was}}))
			require.NoError(t, err)
		}
		return was
	}
	var want []change
	meet := func(bucket int64, key string, was any, own, other []any) {
		c := change{record: record{Kind: company, Key: key}}
		a, b := write(here, bucket, key, was, own), write(there, bucket, key, was, other)
		c.hash, c.here = a.(int64)
		_, c.there = b.(int64)
		if a != b {
			want = append(want, c)
		}
	}
	for i := range 6 {
		for j := range 6 {
			n := int64(9000 + 10*i + j)
			histories := func(was any) [][]any { return [][]any{nil, {n}, {n << 40}, {nil}, {n, was}, {nil, n << 40}} }
			was := n * 1000003
			meet(n*51, fmt.Sprint("c", n), was, histories(was)[i], histories(was)[j])
			meet(900_000_000, fmt.Sprint("new, ", n), nil, histories(nil)[i], histories(nil)[j])
		}
	}
	find := func() (found []change) {
		t.Helper()
		require.NoError(t, compare(t.Context(), here, there, func(c change) { found = append(found, c) }, func(int, int) {}))
		return found
	}
	require.ElementsMatch(t, want, find())
	for _, s := range []*side{here, there} {
		_, err := s.db.Exec(`ALTER TABLE content RENAME TO unread`)
		require.NoError(t, err)
	}
	require.ElementsMatch(t, want, find())
	_, err := there.db.Exec(`UPDATE unread SET hash = hash + 1 WHERE key = 'c5'`)
	require.NoError(t, err)
	require.ErrorContains(t, compare(t.Context(), here, there, func(change) {}, func(int, int) {}), "no such table: content", "filled otherwise")
}
