package push

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"

	"regedge/schema/search"
)

// record identifies a record.
type record struct {
	kind kind
	key  string
}

// bucket is a hash of the record's key, so that changed records are spread evenly over the buckets.
func (r record) bucket() int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", r.kind, r.key))
	return int64(binary.BigEndian.Uint32(sum[:]))
}

// hashOf hashes a record's content. It is never negative, so that the sums of halves stay exact.
func hashOf(content []byte) int64 {
	sum := sha256.Sum256(content)
	return int64(binary.BigEndian.Uint64(sum[:]) & math.MaxInt64)
}

// termsMark identifies the terms that this program makes of names. Entries can be deleted from the
// search index only with the terms that they were inserted with, so a primary with another mark
// gets a new index.
func termsMark() int64 {
	return hashOf([]byte(search.Terms("abc & sons tea company private limited") + search.Terms("x") + search.Terms("नम llp")))
}

const fillParts = `INSERT INTO content_part (part, records, low, high)
SELECT bucket >> 20, count(*), sum(hash & 4294967295), sum(hash >> 32) FROM content GROUP BY bucket >> 20`

// fillContent computes the tables content and content_part of a snapshot from its records.
func fillContent(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `DELETE FROM search_push; DELETE FROM content; DELETE FROM content_part`); err != nil {
		return err
	}
	put, err := tx.PrepareContext(ctx, `INSERT INTO content (bucket, kind, key, hash) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer put.Close()
	for _, k := range kinds {
		err := hashRecords(ctx, tx, k, func(key string, content []byte) error {
			_, err := put.ExecContext(ctx, record{k, key}.bucket(), int(k), key, hashOf(content))
			return err
		})
		if err != nil {
			return fmt.Errorf("hash the %v: %w", k, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fillParts); err != nil {
		return fmt.Errorf("sum the hashes: %w", err)
	}
	return tx.Commit()
}

// hashRecords calls each with the key and the content of every record of a kind.
func hashRecords(ctx context.Context, tx *sql.Tx, k kind, each func(string, []byte) error) error {
	if k == entry {
		rows, err := openCursor(ctx, tx, `SELECT value, json_array(place, name, label) FROM search_name ORDER BY value`)
		if err != nil {
			return err
		}
		return merge([]*cursor{rows}, each)
	}
	var cursors []*cursor
	for _, t := range tables[k] {
		rows, err := openCursor(ctx, tx, t.scan())
		if err != nil {
			closeAll(cursors)
			return err
		}
		cursors = append(cursors, rows)
	}
	return merge(cursors, each)
}

// cursor reads rows of (key, text) in the order of the keys.
type cursor struct {
	rows *sql.Rows
	key  string
	text []byte
	ok   bool
}

func openCursor(ctx context.Context, tx *sql.Tx, query string) (*cursor, error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c := &cursor{rows: rows}
	if err := c.next(); err != nil {
		rows.Close()
		return nil, err
	}
	return c, nil
}

func (c *cursor) next() error {
	if c.ok = c.rows.Next(); !c.ok {
		return c.rows.Err()
	}
	return c.rows.Scan(&c.key, &c.text)
}

func closeAll(cursors []*cursor) {
	for _, c := range cursors {
		c.rows.Close()
	}
}

// merge joins the rows of all cursors by key. A record's content is its rows, each after the number
// of its cursor.
func merge(cursors []*cursor, each func(string, []byte) error) error {
	defer closeAll(cursors)
	var content []byte
	for {
		least, any := "", false
		for _, c := range cursors {
			if c.ok && (!any || c.key < least) {
				least, any = c.key, true
			}
		}
		if !any {
			return nil
		}
		content = content[:0]
		for i, c := range cursors {
			for c.ok && c.key == least {
				content = append(append(content, byte('0'+i)), c.text...)
				if err := c.next(); err != nil {
					return err
				}
			}
		}
		if err := each(least, content); err != nil {
			return err
		}
	}
}
