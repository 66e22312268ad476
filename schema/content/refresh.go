package content

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

const (
	// together is the batch size: the number of marked records that one statement reads.
	together = 2000
	// fillShare: with more than 1/fillShare of the records marked, Refresh drops all hashes, since a
	// new Fill is cheaper.
	fillShare = 5
)

// State tells whether the hashes of a registry are complete.
type State struct {
	Whole   bool  // the tables were filled, and changes are marked
	Pending int64 // records that were marked since
}

// Complete reports whether every record has its hash.
func (s State) Complete() bool { return s.Whole && s.Pending == 0 }

// Look reads the state.
func Look(c *sqlite3.Conn) (s State, err error) {
	whole, err := number(c, `SELECT count(*) FROM content_whole`)
	if err != nil {
		return s, err
	}
	tracked, err := number(c, `SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND name GLOB '`+triggerPrefix+`*'`)
	if err != nil {
		return s, err
	}
	s.Whole = whole > 0 && tracked == trackers()
	s.Pending, err = number(c, `SELECT count(*) FROM content_pending`)
	return s, err
}

// track creates triggers that mark every changed record, whatever program changes it.
func track(c *sqlite3.Conn) error {
	for _, k := range Kinds {
		for i := range Tables[k] {
			if err := c.Exec(Tables[k][i].triggers(k)); err != nil {
				return fmt.Errorf("track changes of %s: %w", Tables[k][i].Name, err)
			}
		}
	}
	return nil
}

// events are the changes that have a trigger at each table.
var events = []string{"insert", "delete", "update"}

// trackers is the number of triggers that mark changes.
func trackers() (n int64) {
	for _, k := range Kinds {
		n += int64(len(Tables[k]) * len(events))
	}
	return n
}

// Untrack removes the triggers from a copy that is not meant to change any more. If it changes nevertheless, as
// when a registry is restored from it, its hashes are made anew.
func Untrack(c *sqlite3.Conn) error {
	for _, k := range Kinds {
		for i := range Tables[k] {
			for _, event := range events {
				if err := c.Exec("DROP TRIGGER IF EXISTS " + Tables[k][i].trigger(event)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// triggerPrefix begins the names of the triggers.
const triggerPrefix = "mark_"

func (t *Table) trigger(event string) string { return triggerPrefix + t.Name + "_" + event }

// triggers mark the records whose compared columns change. In most rows that an import writes, only
// the date changes.
func (t *Table) triggers(k Kind) string {
	var differs []string
	for _, column := range t.compared() {
		differs = append(differs, fmt.Sprintf("OLD.%s IS NOT NEW.%s", column, column))
	}
	mark := func(event, when string, rows ...string) string {
		var body strings.Builder
		for _, row := range rows {
			fmt.Fprintf(&body, "INSERT OR IGNORE INTO content_pending (kind, key) VALUES (%d, %s.%s); ", k, row, t.Key)
		}
		return fmt.Sprintf("CREATE TRIGGER %s AFTER %s ON %s %s BEGIN %sEND;\n",
			t.trigger(strings.ToLower(event)), event, t.Name, when, body.String())
	}
	return mark("INSERT", "", "NEW") + mark("DELETE", "", "OLD") +
		mark("UPDATE", "WHEN "+strings.Join(differs, " OR "), "OLD", "NEW")
}

// Refresh hashes the marked records and deletes the marks. If the hashes are not whole, or too many
// records are marked, it empties the tables instead. It joins the connection's open transaction.
func Refresh(c *sqlite3.Conn) (err error) {
	defer c.Savepoint().Release(&err)
	state, err := Look(c)
	if err != nil || state.Pending == 0 {
		return err
	}
	total, err := number(c, `SELECT sum(records) FROM content_part`)
	if err != nil {
		return err
	}
	if !state.Whole || state.Pending > total/fillShare {
		return Forget(c)
	}
	for _, k := range Kinds {
		if err := refresh(c, k); err != nil {
			return fmt.Errorf("hash the changed %v: %w", k, err)
		}
	}
	return c.Exec(`DELETE FROM content_pending`)
}

// refresh hashes the marked records of a kind.
func refresh(c *sqlite3.Conn, k Kind) (err error) {
	put, _, err := c.Prepare(putNewer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, put.Close()) }()
	for after := ""; ; {
		keys, err := marked(c, k, after)
		if err != nil || len(keys) == 0 {
			return err
		}
		after = keys[len(keys)-1]
		list, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		hashes := make(map[string]int64, len(keys))
		err = walk(c, k, string(list), func(key, content []byte) error {
			hashes[string(key)] = Hash(content)
			return nil
		})
		if err != nil {
			return err
		}
		for _, key := range keys {
			hash, held := hashes[key]
			if err := write(put, Record{k, key}, hash, held); err != nil {
				return err
			}
		}
	}
}

// marked reads the next batch of marked keys after the given one.
func marked(c *sqlite3.Conn, k Kind, after string) (keys []string, err error) {
	s, _, err := c.Prepare(fmt.Sprintf(`SELECT key FROM content_pending WHERE kind = ?1 AND key > ?2 ORDER BY key LIMIT %d`, together))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := errors.Join(s.BindInt64(1, int64(k)), s.BindText(2, after)); err != nil {
		return nil, err
	}
	for s.Step() {
		keys = append(keys, s.ColumnText(0))
	}
	return keys, s.Err()
}

// putNewer stores beside content the hash ?4 of a record, or that the record is gone. A record whose hash is again
// as it was gets no row.
const putNewer = `INSERT INTO content_newer (bucket, kind, key, hash, was)
SELECT ?1, ?2, ?3, ?4, c.hash FROM (SELECT 1) LEFT JOIN content c ON c.bucket = ?1 AND c.kind = ?2 AND c.key = ?3
WHERE c.hash IS NOT ?4 OR EXISTS (SELECT 1 FROM content_newer WHERE bucket = ?1 AND kind = ?2 AND key = ?3)
ON CONFLICT (bucket, kind, key) DO UPDATE SET hash = excluded.hash WHERE hash IS NOT excluded.hash`

// write stores a record's hash if the registry holds the record.
func write(put *sqlite3.Stmt, r Record, hash int64, held bool) error {
	err := errors.Join(put.BindInt64(1, r.Bucket()), put.BindInt64(2, int64(r.Kind)), put.BindText(3, r.Key))
	if held {
		return errors.Join(err, put.BindInt64(4, hash), put.Exec())
	}
	return errors.Join(err, put.BindNull(4), put.Exec())
}
