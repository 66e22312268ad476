package sqlite_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/schema"
)

// plan returns SQLite's query plan of a statement, one line for each step.
func plan(t *testing.T, path, statement string) []string {
	t.Helper()
	c, err := sqlite3.Open(path)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, schema.Prepare(c, false))
	explain, _, err := c.Prepare("EXPLAIN QUERY PLAN " + statement)
	require.NoError(t, err)
	defer explain.Close()
	var steps []string
	for explain.Step() {
		steps = append(steps, explain.ColumnText(3))
	}
	require.NoError(t, explain.Err())
	return steps
}

func migrated(t *testing.T, kind schema.Database) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), string(kind)+".db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, kind))
	require.NoError(t, db.Close())
	return path
}

// wantSteps lists the index searches that the plan of each lookup must contain.
var wantSteps = map[string][]string{
	"access": {
		"USING INDEX sqlite_autoindex_api_key_1 (hash=?)",
		"USING INDEX api_key_by_old_hash (old_hash=?)",
		"USING INTEGER PRIMARY KEY (rowid=?)",
		"USING INDEX sqlite_autoindex_plan_1 (id=?)",
	},
	"company": {
		"c USING INTEGER PRIMARY KEY (rowid=?)",
		"c USING INDEX sqlite_autoindex_company_1 (cin=?)",
	},
	"director": {
		"USING PRIMARY KEY (din=?)",
		"USING INDEX appointment_by_director (din=?)",
		"USING INDEX sqlite_autoindex_company_1 (cin=?)",
	},
	"llp": {
		"USING INDEX sqlite_autoindex_llp_1 (llpin=?)",
		"USING PRIMARY KEY (pincode=?)",
		"USING PRIMARY KEY (llpin=?)",
	},
	"search_acronym":   {"USING INTEGER PRIMARY KEY (rowid=?)"},
	"search_begin":     {"USING INDEX sqlite_autoindex_company_1 (cin>? AND cin<?)"},
	"search_end":       {"USING INDEX sqlite_autoindex_company_1 (cin=?)", "USING COVERING INDEX sqlite_autoindex_company_1 (cin>?)"},
	"search_companies": {"USING INTEGER PRIMARY KEY (rowid=?)"},
	"search_forgiving": {"USING INTEGER PRIMARY KEY (rowid=?)", "USING PRIMARY KEY (term=?)"},
	"search_llps":      {"USING INDEX sqlite_autoindex_llp_1 (llpin=?)"},
	"like_number": {
		"USING INDEX sqlite_autoindex_company_1 (cin=?)",
		"USING INDEX sqlite_autoindex_llp_1 (llpin=?)",
	},
	"search_number": {
		"USING INDEX sqlite_autoindex_company_1 (cin=?)",
		"USING INDEX sqlite_autoindex_llp_1 (llpin=?)",
	},
}

// freeScans lists the allowed scans, none of which reads a whole table that grows: constant rows,
// intermediate results with a limit, matches of the full-text index, elements of a JSON parameter, and
// releases, of which the newest comes first.
var freeScans = regexp.MustCompile(`^SCAN (CONSTANT ROW|\(subquery-\d+\)|release|search_index VIRTUAL TABLE INDEX \d+:M\d+|([a-z]|typed) VIRTUAL TABLE INDEX 1:)$`)

// gathered matches the common table expressions of the search, which have limits of their own.
var gathered = regexp.MustCompile(`^SCAN (near|few|held|exact|whole|starts|start|phrase|ordered|words|found|inside|best|b|c|f|forgiven|near|industry)$`)

func TestEveryLookupReadsThroughItsIndexes(t *testing.T) {
	access, registry := migrated(t, schema.Access), migrated(t, schema.Registry)
	for name, statement := range handler.Statements() {
		t.Run(name, func(t *testing.T) {
			path := registry
			if name == "access" {
				path = access
			}
			steps := plan(t, path, statement)
			require.NotEmpty(t, wantSteps[name], "this statement has no expected plan")
			for _, want := range wantSteps[name] {
				require.True(t, slices.ContainsFunc(steps, func(step string) bool {
					return strings.HasPrefix(step, "SEARCH ") && strings.Contains(step, want)
				}), "want a search %s, got %q", want, steps)
			}
			for _, step := range steps {
				free := freeScans.MatchString(step) || strings.HasPrefix(name, "search_") && gathered.MatchString(step)
				if strings.HasPrefix(step, "SCAN") && !free {
					t.Errorf("%s: want an index, got %s", name, step)
				}
			}
		})
	}
}
