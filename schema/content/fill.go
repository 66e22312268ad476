package content

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/extsort"
)

const (
	// sortBytes is the memory budget for sorting the hashes; the rest spills to a temporary file.
	sortBytes = 64 << 20
	// reportEach is the number of records between two calls of Progress.
	reportEach = 10_000
)

// Progress receives the number of records hashed so far, and the total.
type Progress func(done, total int64)

// selectTotal counts the records.
const selectTotal = `SELECT (SELECT count(*) FROM company) + (SELECT count(*) FROM llp) + (SELECT count(*) FROM director)
  + (SELECT count(*) FROM pincode) + (SELECT count(*) FROM search_name)`

const insertHash = `INSERT INTO content (bucket, kind, key, hash) VALUES (?1, ?2, ?3, ?4)`

const fillParts = `INSERT INTO content_part (part, records, low, high)
SELECT bucket >> 20, count(*), sum(hash & 4294967295), sum(hash >> 32) FROM content GROUP BY bucket >> 20`

// Forget empties the tables; the next Fill rebuilds them.
func Forget(c *sqlite3.Conn) error {
	if err := Untrack(c); err != nil {
		return err
	}
	// While content_whole is empty, the triggers on content leave content_part alone.
	return c.Exec(`DELETE FROM content_whole; DELETE FROM content_newer; DELETE FROM content; DELETE FROM content_part; DELETE FROM content_pending`)
}

// Fill hashes all records, in one transaction or as part of the one open on the connection. Temporary
// files go to folder. The hashes are sorted before they are inserted: inserted in record order, each
// would touch a different page of the table, and all of India took 8 minutes.
func Fill(c *sqlite3.Conn, folder string, progress Progress) (err error) {
	defer c.Savepoint().Release(&err)
	if err := Forget(c); err != nil {
		return err
	}
	sorter := extsort.New(folder, sortBytes)
	defer func() { err = errors.Join(err, sorter.Close()) }()
	if err := collect(c, sorter, progress); err != nil {
		return err
	}
	if err := insertAll(c, sorter); err != nil {
		return fmt.Errorf("write the hashes: %w", err)
	}
	if err := c.Exec(fillParts + `; INSERT INTO content_whole (id) VALUES (1)`); err != nil {
		return fmt.Errorf("sum the hashes: %w", err)
	}
	return track(c)
}

// collect adds the hashes of all records to sorter, by bucket, kind and key.
func collect(c *sqlite3.Conn, sorter *extsort.Sorter, progress Progress) error {
	total, err := number(c, selectTotal)
	if err != nil {
		return fmt.Errorf("count the records: %w", err)
	}
	var key, value []byte
	for _, k := range Kinds {
		err := walk(c, k, "", func(id, content []byte) error {
			key = binary.BigEndian.AppendUint32(key[:0], uint32(Record{k, string(id)}.Bucket()))
			key = append(append(key, byte(k)), id...)
			value = binary.BigEndian.AppendUint64(value[:0], uint64(Hash(content)))
			if done := sorter.Len(); progress != nil && done%reportEach == 0 {
				progress(done, total)
			}
			return sorter.Add(key, value)
		})
		if err != nil {
			return fmt.Errorf("hash the %v: %w", k, err)
		}
	}
	return nil
}

func insertAll(c *sqlite3.Conn, sorter *extsort.Sorter) error {
	insert, _, err := c.Prepare(insertHash)
	if err != nil {
		return err
	}
	defer insert.Close()
	rows, err := sorter.Rows()
	if err != nil {
		return err
	}
	for rows.Next() {
		key := rows.Key()
		err := errors.Join(
			insert.BindInt64(1, int64(binary.BigEndian.Uint32(key))), insert.BindInt64(2, int64(key[4])),
			insert.BindRawText(3, key[5:]), insert.BindInt64(4, int64(binary.BigEndian.Uint64(rows.Value()))), insert.Exec())
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// number runs a query that returns one integer.
func number(c *sqlite3.Conn, query string) (n int64, err error) {
	s, _, err := c.Prepare(query)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if s.Step() {
		n = s.ColumnInt64(0)
	}
	return n, s.Err()
}
