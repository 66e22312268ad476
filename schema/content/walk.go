package content

import (
	"bytes"
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// cursor reads rows of (key, text) in the order of the keys.
type cursor struct {
	rows *sqlite3.Stmt
	key  []byte
	ok   bool
}

func (c *cursor) next() error {
	if c.ok = c.rows.Step(); !c.ok {
		return c.rows.Err()
	}
	c.key = append(c.key[:0], c.rows.ColumnRawText(0)...)
	return nil
}

// walk calls each with the key and the content of every record of a kind, or only of the records in
// keys, a JSON array. A record's content is its rows, each preceded by the number of its table. Both
// arguments are valid until each returns.
func walk(c *sqlite3.Conn, k Kind, keys string, each func(key, content []byte) error) (err error) {
	var cursors []*cursor
	defer func() {
		for _, one := range cursors {
			err = errors.Join(err, one.rows.Close())
		}
	}()
	for i := range Tables[k] {
		rows, _, err := c.Prepare(Tables[k][i].scan(keys == ""))
		if err != nil {
			return err
		}
		one := &cursor{rows: rows}
		cursors = append(cursors, one)
		if keys != "" {
			if err := rows.BindText(1, keys); err != nil {
				return err
			}
		}
		if err := one.next(); err != nil {
			return err
		}
	}
	return merge(cursors, each)
}

// merge joins the rows of all cursors by key.
func merge(cursors []*cursor, each func(key, content []byte) error) error {
	var least, content []byte
	for {
		any := false
		for _, c := range cursors {
			if c.ok && (!any || bytes.Compare(c.key, least) < 0) {
				least, any = append(least[:0], c.key...), true
			}
		}
		if !any {
			return nil
		}
		content = content[:0]
		for i, c := range cursors {
			for c.ok && bytes.Equal(c.key, least) {
				content = append(append(content, byte('0'+i)), c.rows.ColumnRawText(1)...)
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
