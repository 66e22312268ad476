package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	// firstParts is the number of parts whose sums both databases store (table content_part).
	firstParts = 4096
	// mostParts is the most parts that a differing range is divided into.
	mostParts = 64
	// partRecords is about how many records the smallest parts have: dividing them further would
	// transfer as much as it saves.
	partRecords = 4
	// listed: a range of at most this many records is compared record by record.
	listed = 2 * partRecords
	// maxRanges is the most ranges of one query: with mostParts parts of some 25 bytes each, its
	// result stays below sqld's limit (10 MB).
	maxRanges = 1000
	// partsAtOnce is how many of the first parts are compared at a time. In all of India each has
	// some 2,000 records.
	partsAtOnce = 256
	// recordsAtOnce is the most records that one query lists, and listsAtOnce the most ranges.
	recordsAtOnce = maxRanges * mostParts
	listsAtOnce   = recordsAtOnce / listed
	// allBuckets is the number of buckets.
	allBuckets = int64(1) << 32
)

// span is a range of buckets, first included and end excluded, with the number of records there
// in the database that has more.
type span struct{ first, end, records int64 }

// sum is the number of records in a range, and the lower bits of the sums of both halves of their
// hashes. One difference in 2^52 is missed here; the digest finds it at the end of the push.
type sum struct{ records, hashes uint64 }

// change is a record that differs between the snapshot and the primary.
type change struct {
	record
	here, there bool  // whether the snapshot and the primary have it
	hash        int64 // of the snapshot's record
}

// comparison has the queries that compare tables of hashes. In SQL the operators &, | and << have the same precedence.
type comparison struct {
	// parts reads the sums of the first parts that are not empty, as PART,RECORDS,HASHES in hexadecimal.
	parts string
	// sums computes sums in the same form: for each [first, end, width] of the JSON array ?1, of every part of
	// that width that is not empty. Parts are numbered from bucket 0.
	sums string
	// records reads the records in each [first, end] of the JSON array ?1, as KIND,KEY,HASH,WAS with hashes in
	// hexadecimal. HASH is the record's hash, and WAS the hash that it has in a database which does not list it. Empty
	// means that there is no such record.
	records string
}

// allHashes compare databases whose content was filled by different runs.
var allHashes = comparison{
	parts: `SELECT coalesce(group_concat(printf('%x,%x,%x', part, records, (high & 1048575) << 32 | (low & 4294967295)), ' '), '')
FROM content_part WHERE records > 0`,
	sums: `SELECT coalesce(group_concat(part, ' '), '') FROM (
  SELECT printf('%x,%x,%x', part, sum(records), (sum(high) & 1048575) << 32 | (sum(low) & 4294967295)) AS part FROM (
    SELECT r.Key AS span, c.bucket / (r.value ->> 2) AS part, count(*) AS records, sum(c.hash & 4294967295) AS low, sum(c.hash >> 32) AS high
    FROM json_each(?1) r CROSS JOIN content c ON c.bucket >= r.value ->> 0 AND c.bucket < r.value ->> 1 GROUP BY 1, 2
    UNION ALL
    SELECT r.Key, n.bucket / (r.value ->> 2), n.records, n.low, n.high
    FROM json_each(?1) r CROSS JOIN content_newer n ON n.bucket >= r.value ->> 0 AND n.bucket < r.value ->> 1)
  GROUP BY span, part HAVING sum(records) > 0)`,
	records: `SELECT coalesce(group_concat(printf('%d,%s,%x,', kind, key, hash), char(10)), '') FROM (
  SELECT c.kind, c.key, c.hash FROM json_each(?1) r CROSS JOIN content c ON c.bucket >= r.value ->> 0 AND c.bucket < r.value ->> 1
  WHERE NOT EXISTS (SELECT 1 FROM content_newer n WHERE n.bucket = c.bucket AND n.kind = c.kind AND n.key = c.key)
  UNION ALL
  SELECT n.kind, n.key, n.hash FROM json_each(?1) r CROSS JOIN content_newer n ON n.bucket >= r.value ->> 0 AND n.bucket < r.value ->> 1
  WHERE n.hash IS NOT NULL)`,
}

// newerHashes compare databases whose content was filled by the same run: only what changed since then. A record that
// is again as it was then counts as unchanged.
var newerHashes = comparison{
	parts: `SELECT coalesce(group_concat(part, ' '), '') FROM (
  SELECT printf('%x,%x,%x', bucket >> 20, count(*), (sum(high) & 1048575) << 32 | (sum(low) & 4294967295)) AS part
  FROM content_newer WHERE hash IS NOT was GROUP BY bucket >> 20)`,
	sums: `SELECT coalesce(group_concat(part, ' '), '') FROM (
  SELECT printf('%x,%x,%x', n.bucket / (r.value ->> 2), count(*), (sum(n.high) & 1048575) << 32 | (sum(n.low) & 4294967295)) AS part
  FROM json_each(?1) r CROSS JOIN content_newer n ON n.bucket >= r.value ->> 0 AND n.bucket < r.value ->> 1
  WHERE n.hash IS NOT n.was GROUP BY r.Key, n.bucket / (r.value ->> 2))`,
	records: `SELECT coalesce(group_concat(printf('%d,%s,%s,%s', n.kind, n.key, iif(n.hash IS NULL, '', printf('%x', n.hash)), iif(n.was IS NULL, '', printf('%x', n.was))), char(10)), '')
FROM json_each(?1) r CROSS JOIN content_newer n ON n.bucket >= r.value ->> 0 AND n.bucket < r.value ->> 1 WHERE n.hash IS NOT n.was`,
}

// selectFilled identifies the content that one run of content.Fill has made: the sums over it.
const selectFilled = `SELECT printf('%d-%d-%d', sum(records), sum(low), sum(high)) FROM (
  SELECT records, low, high FROM content_part UNION ALL SELECT -records, -low, -high FROM content_newer)`

// toCompare is how the databases are compared.
func toCompare(ctx context.Context, here, there *side) (comparison, error) {
	near, far, err := both(here, there, "sum the records", func(a *side) (string, error) { return a.text(ctx, selectFilled) })
	if err != nil || near != far {
		return allHashes, err
	}
	return newerHashes, nil
}

// compare calls visit with each record that differs. It finishes a few of the first parts before the
// next ones, so that its memory does not grow with the number of differences, and reports how many of
// the differing parts are done.
func compare(ctx context.Context, here, there *side, visit func(change), progress func(done, total int)) error {
	const width = allBuckets / firstParts
	c, err := toCompare(ctx, here, there)
	if err != nil {
		return err
	}
	parts, small, err := c.divide(ctx, here, there, []span{{0, allBuckets, math.MaxInt64}}, width)
	if err != nil {
		return err
	}
	done, total := 0, len(parts)+len(small)
	progress(0, total)
	for some := range chunks(small, listsAtOnce) {
		if err := c.compareRecords(ctx, here, there, some, visit); err != nil {
			return err
		}
		done += len(some)
		progress(done, total)
	}
	differ, records := int64(0), int64(0)
	for some := range chunks(parts, partsAtOnce) {
		approach := c.compareParts
		if 2*differ > records { // most of those before: records are spread by a hash, so most of these will
			approach = c.compareWhole
		}
		err := approach(ctx, here, there, some, width, func(found change) {
			differ++
			visit(found)
		})
		if err != nil {
			return err
		}
		for _, part := range some {
			records += part.records
		}
		done += len(some)
		progress(done, total)
	}
	return nil
}

// compareWhole lists spans of a width without dividing them first. Where most records differ, that takes 0.43 of the
// processor time (a million records, all different, 30 November 2026).
func (c *comparison) compareWhole(ctx context.Context, here, there *side, spans []span, width int64, visit func(change)) (err error) {
	for len(spans) > 0 && err == nil {
		n, records := 0, int64(0)
		for n < len(spans) && records+spans[n].records <= recordsAtOnce {
			records += spans[n].records
			n++
		}
		if n > 0 {
			err = c.compareRecords(ctx, here, there, spans[:n], visit)
		} else { // too many for one query
			n = 1
			err = c.compareParts(ctx, here, there, spans[:n], width, visit)
		}
		spans = spans[n:]
	}
	return err
}

// compareParts divides spans of a width until they are small enough to be listed.
func (c *comparison) compareParts(ctx context.Context, here, there *side, spans []span, width int64, visit func(change)) error {
	for len(spans) > 0 {
		width = partWidth(width, spans)
		var next, small []span
		for some := range chunks(spans, maxRanges) {
			parts, leaves, err := c.divide(ctx, here, there, some, width)
			if err != nil {
				return err
			}
			next, small = append(next, parts...), append(small, leaves...)
		}
		for some := range chunks(small, listsAtOnce) {
			if err := c.compareRecords(ctx, here, there, some, visit); err != nil {
				return err
			}
		}
		spans = next
	}
	return nil
}

// partWidth is the width of the parts that spans of a width are divided into.
func partWidth(width int64, spans []span) int64 {
	most := int64(0)
	for _, s := range spans {
		most = max(most, s.records)
	}
	parts := int64(2)
	for parts < mostParts && parts*partRecords < most {
		parts *= 2
	}
	return max(width/parts, 1)
}

// both reads from both databases at once.
func both[T any](here, there *side, what string, read func(*side) (T, error)) (near, far T, err error) {
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		near, failed = read(here)
	}()
	far, err = read(there)
	<-done
	if failed != nil {
		return near, far, fmt.Errorf("%s of the snapshot: %w", what, failed)
	}
	if err != nil {
		return near, far, fmt.Errorf("%s of the primary: %w", what, err)
	}
	return near, far, nil
}

// chunks cuts a list into pieces of at most n.
func chunks[T any](list []T, n int) func(func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			size := min(n, len(list))
			if !yield(list[:size]) {
				return
			}
			list = list[size:]
		}
	}
}

// divide finds the parts of spans that differ: those to divide again, and those small enough to
// list.
func (c *comparison) divide(ctx context.Context, here, there *side, spans []span, width int64) (parts, small []span, err error) {
	near, far, err := both(here, there, "sum the records", func(a *side) (map[int64]sum, error) {
		return c.sumsOf(ctx, a, spans, width)
	})
	if err != nil {
		return nil, nil, err
	}
	visit := func(first int64) {
		part := span{first, first + width, int64(max(near[first].records, far[first].records))}
		if width == 1 || part.records <= listed {
			small = append(small, part)
		} else {
			parts = append(parts, part)
		}
	}
	for first, s := range near {
		if far[first] != s {
			visit(first)
		}
	}
	for first := range far {
		if _, both := near[first]; !both {
			visit(first)
		}
	}
	return parts, small, nil
}

// sums reads the sums of the parts of spans, by first bucket. Those of the first parts are stored
// in the database.
func (c *comparison) sumsOf(ctx context.Context, a *side, spans []span, width int64) (found map[int64]sum, err error) {
	var answer string
	if width == allBuckets/firstParts {
		answer, err = a.text(ctx, c.parts)
	} else {
		ranges := make([][3]int64, len(spans))
		for i, s := range spans {
			ranges[i] = [3]int64{s.first, s.end, width}
		}
		answer, err = ask(ctx, a, c.sums, ranges)
	}
	if err != nil {
		return nil, err
	}
	found = make(map[int64]sum)
	for part := range strings.FieldsSeq(answer) {
		var n [3]uint64
		for i, field := range strings.SplitN(part, ",", len(n)) {
			if n[i], err = strconv.ParseUint(field, 16, 64); err != nil {
				return nil, fmt.Errorf("read a sum: %w", err)
			}
		}
		found[int64(n[0])*width] = sum{n[1], n[2]}
	}
	return found, nil
}

// ask runs a query with one parameter, encoded as JSON.
func ask(ctx context.Context, a *side, query string, parameter any) (string, error) {
	text, err := json.Marshal(parameter)
	if err != nil {
		return "", err
	}
	return a.text(ctx, query, string(text))
}

// compareRecords compares the hashes of all records of spans.
func (c *comparison) compareRecords(ctx context.Context, here, there *side, spans []span, visit func(change)) error {
	near, far, err := both(here, there, "list the records", func(a *side) (map[record]hashed, error) {
		return c.list(ctx, a, spans)
	})
	if err != nil {
		return err
	}
	for r, own := range near {
		other, listed := far[r]
		if !listed {
			other.now = own.was
		}
		if own.now != other.now {
			visit(change{r, own.now.held, other.now.held, own.now.hash})
		}
	}
	for r, other := range far {
		if _, listed := near[r]; !listed && other.now != other.was {
			visit(change{r, other.was.held, other.now.held, other.was.hash})
		}
	}
	return nil
}

// hashed are the hashes of a record that is listed.
type hashed struct{ now, was hash }

// hash is the hash of a record, if there is one.
type hash struct {
	held bool
	hash int64
}

func parseHash(text string) (hash, error) {
	if text == "" {
		return hash{}, nil
	}
	n, err := strconv.ParseUint(text, 16, 64)
	return hash{true, int64(n)}, err
}

// list reads the hashes of the records of spans.
func (c *comparison) list(ctx context.Context, a *side, spans []span) (map[record]hashed, error) {
	ranges := make([][2]int64, len(spans))
	for i, s := range spans {
		ranges[i] = [2]int64{s.first, s.end}
	}
	answer, err := ask(ctx, a, c.records, ranges)
	if err != nil {
		return nil, err
	}
	found := make(map[record]hashed)
	for line := range strings.Lines(answer) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ",")
		if len(fields) < 4 {
			return nil, fmt.Errorf("read a record: %q", line)
		}
		k, wrong := strconv.Atoi(fields[0])
		now, invalid := parseHash(fields[len(fields)-2])
		was, unlike := parseHash(fields[len(fields)-1])
		if err := errors.Join(wrong, invalid, unlike); err != nil {
			return nil, fmt.Errorf("read a record: %w", err)
		}
		key := strings.Join(fields[1:len(fields)-2], ",") // which may have commas
		found[record{Kind: kind(k), Key: key}] = hashed{now, was}
	}
	return found, nil
}
