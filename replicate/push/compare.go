package push

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const (
	// fanOut is into how many parts a range of buckets that differs is divided.
	fanOut = 64
	// listed is how many records of a range are compared one by one rather than divided:
	// about as much on the wire as the sums of its parts.
	listed = 24
	// maxRanges bounds one question: with fanOut parts of some 40 bytes each, its answer
	// stays below what sqld allows (10 MB).
	maxRanges = 1000
	// allBuckets is the number of buckets.
	allBuckets = int64(1) << 32
)

// asker runs a statement that returns one text.
type asker interface {
	text(ctx context.Context, query string, args ...any) (string, error)
}

// span is a range of buckets, from first up to, not including, end.
type span struct{ first, end int64 }

// sum is what a range holds: how many records, and the sums of the halves of their
// hashes.
type sum struct{ count, low, high int64 }

// change is a record that differs between the two sides.
type change struct {
	record
	here, there bool  // whether the file and the primary have it
	hash        int64 // of the file's
}

// The sums of ?1, a JSON array of [first, end, width], as FIRST,COUNT,LOW,HIGH of each
// part of a width that is not empty.
const selectSums = `SELECT coalesce(group_concat(part, ' '), '') FROM (
  SELECT printf('%d,%d,%d,%d', (c.bucket / (r.value ->> 2)) * (r.value ->> 2), count(*), sum(c.hash & 4294967295), sum(c.hash >> 32)) AS part
  FROM json_each(?1) r CROSS JOIN content c ON c.bucket >= r.value ->> 0 AND c.bucket < r.value ->> 1
  GROUP BY r.key, c.bucket / (r.value ->> 2))`

// The records of ?1, a JSON array of [first, end], as KIND,KEY,HASH.
const selectRecords = `SELECT coalesce(group_concat(printf('%d,%s,%d', c.kind, c.key, c.hash), char(10)), '')
FROM json_each(?1) r CROSS JOIN content c ON c.bucket >= r.value ->> 0 AND c.bucket < r.value ->> 1`

// compare finds the records whose content differs.
func compare(ctx context.Context, here, there asker) ([]change, error) {
	var changes []change
	spans := []span{{0, allBuckets}}
	for width := allBuckets / fanOut; len(spans) > 0; width /= fanOut {
		var next, small []span
		for part := range chunks(spans, maxRanges) {
			parts, leaves, err := divide(ctx, here, there, part, max(width, 1))
			if err != nil {
				return nil, err
			}
			next, small = append(next, parts...), append(small, leaves...)
		}
		for part := range chunks(small, maxRanges*fanOut/listed) {
			found, err := compareRecords(ctx, here, there, part)
			if err != nil {
				return nil, err
			}
			changes = append(changes, found...)
		}
		spans = next
	}
	return changes, nil
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

// divide finds the parts of spans that differ: those to divide again, and those with few
// enough records to list.
func divide(ctx context.Context, here, there asker, spans []span, width int64) (parts, small []span, err error) {
	near, err := sums(ctx, here, spans, width)
	if err != nil {
		return nil, nil, fmt.Errorf("sum the file's records: %w", err)
	}
	far, err := sums(ctx, there, spans, width)
	if err != nil {
		return nil, nil, fmt.Errorf("sum the primary's records: %w", err)
	}
	visit := func(first int64) {
		part := span{first, first + width}
		if width == 1 || max(near[first].count, far[first].count) <= listed {
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

func sums(ctx context.Context, a asker, spans []span, width int64) (map[int64]sum, error) {
	ranges := make([][3]int64, len(spans))
	for i, s := range spans {
		ranges[i] = [3]int64{s.first, s.end, width}
	}
	answer, err := ask(ctx, a, selectSums, ranges)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]sum)
	for part := range strings.FieldsSeq(answer) {
		var n [4]int64
		for i, field := range strings.SplitN(part, ",", 4) {
			if n[i], err = strconv.ParseInt(field, 10, 64); err != nil {
				return nil, fmt.Errorf("read a sum: %w", err)
			}
		}
		found[n[0]] = sum{n[1], n[2], n[3]}
	}
	return found, nil
}

func ask(ctx context.Context, a asker, query string, parameter any) (string, error) {
	text, err := json.Marshal(parameter)
	if err != nil {
		return "", err
	}
	return a.text(ctx, query, string(text))
}

// compareRecords compares the records of spans one by one.
func compareRecords(ctx context.Context, here, there asker, spans []span) ([]change, error) {
	near, err := hashes(ctx, here, spans)
	if err != nil {
		return nil, fmt.Errorf("list the file's records: %w", err)
	}
	far, err := hashes(ctx, there, spans)
	if err != nil {
		return nil, fmt.Errorf("list the primary's records: %w", err)
	}
	var changes []change
	for r, hash := range near {
		other, there := far[r]
		if !there || other != hash {
			changes = append(changes, change{r, true, there, hash})
		}
	}
	for r := range far {
		if _, here := near[r]; !here {
			changes = append(changes, change{r, false, true, 0})
		}
	}
	return changes, nil
}

func hashes(ctx context.Context, a asker, spans []span) (map[record]int64, error) {
	ranges := make([][2]int64, len(spans))
	for i, s := range spans {
		ranges[i] = [2]int64{s.first, s.end}
	}
	answer, err := ask(ctx, a, selectRecords, ranges)
	if err != nil {
		return nil, err
	}
	found := make(map[record]int64)
	for line := range strings.Lines(answer) {
		number, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ",")
		cut := strings.LastIndexByte(rest, ',')
		if cut < 0 {
			return nil, fmt.Errorf("read a record: %q", line)
		}
		k, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("read a record: %w", err)
		}
		hash, err := strconv.ParseInt(rest[cut+1:], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read a record: %w", err)
		}
		found[record{kind(k), rest[:cut]}] = hash
	}
	return found, nil
}
