package search

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// records lists what the index is made of.
const records = `
SELECT cin, company_name, status FROM company UNION ALL
SELECT llpin, llp_name, status FROM llp`

// rebuild makes the index anew from the tables.
func rebuild(c *sqlite3.Conn) (change Change, err error) {
	b := NewBuilder(folderOf(c))
	defer b.Close()
	if err := readAll(c, b.Add); err != nil {
		return Change{}, fmt.Errorf("read names: %w", err)
	}
	if err := b.Prepare(); err != nil {
		return Change{}, err
	}
	return b.install(c)
}

// folderOf is where the database's file is: where there is room for it there is room for
// sorting it.
func folderOf(c *sqlite3.Conn) string {
	if name := c.Filename("main"); name != nil && name.String() != "" {
		return filepath.Dir(name.String())
	}
	return os.TempDir()
}

// readAll hands out the records.
func readAll(c *sqlite3.Conn, do func(value, registered, status string) error) error {
	s, _, err := c.Prepare(records)
	if err != nil {
		return err
	}
	defer s.Close()
	for s.Step() {
		if err := do(s.ColumnText(0), s.ColumnText(1), s.ColumnText(2)); err != nil {
			return err
		}
	}
	return s.Err()
}
