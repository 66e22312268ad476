// Package schema has the SQL schemas of the three databases, and migrates a database to the
// version that this program knows.
//
// The migrations of a database are the files migrations/NAME/NNNN_WHAT.sql, numbered
// from 1 without gaps. Each is applied once, in order, in a transaction of its own that also
// records it in the table schema_version. They are plain SQL, so that they work on a local
// file and on a remote libSQL server.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

//go:embed migrations
var files embed.FS

// Database names one of the three databases. The text is the folder of its migrations and the
// label under which the component opens it.
type Database string

const (
	// Registry has companies, LLPs and directors: replaced in bulk by operators, replicated to
	// every edge.
	Registry Database = "registry"
	// Access says who may call the API: small, replicated to every edge.
	Access Database = "access"
	// Ledger has balances, usage and sign-in: only at the centre, never replicated.
	Ledger Database = "ledger"
)

// migration is one numbered step of a database's schema.
type migration struct {
	version int // from 1
	name    string
	sql     string
}

// migrations returns the steps of a database in order. An unknown database, or a gap or a
// repeated number, is a bug in this program and returned as an error.
func migrations(source fs.FS, database Database) ([]migration, error) {
	folder := path.Join("migrations", string(database))
	entries, err := fs.ReadDir(source, folder)
	if err != nil {
		return nil, fmt.Errorf("list migrations of %s: %w", database, err)
	}
	var steps []migration
	for _, e := range entries {
		number, _, ok := strings.Cut(e.Name(), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil || !strings.HasSuffix(e.Name(), ".sql") {
			return nil, fmt.Errorf("migration %s/%s: the name is not NNNN_WHAT.sql", database, e.Name())
		}
		text, err := fs.ReadFile(source, path.Join(folder, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read migration %s/%s: %w", database, e.Name(), err)
		}
		steps = append(steps, migration{version, e.Name(), string(text)})
	}
	sort.Slice(steps, func(i, j int) bool { return steps[i].version < steps[j].version })
	for i, s := range steps {
		if s.version != i+1 {
			return nil, fmt.Errorf("migration %s/%s: want number %d", database, s.name, i+1)
		}
	}
	return steps, nil
}
