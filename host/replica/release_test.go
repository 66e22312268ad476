package replica_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/replica"
	"regedge/host/sqlite"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// TestARegistryIsReadFromItsFirstReleaseOn holds that nothing is said not to be found
// while the registry is only being filled.
func TestARegistryIsReadFromItsFirstReleaseOn(t *testing.T) {
	for name, byFile := range map[string]bool{"by its file": true, "by its endpoint": false} {
		t.Run(name, func(t *testing.T) {
			primary := sqldtest.Primary(t)
			db := remote(t, primary.URL())
			defer db.Close()
			require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
			near := sqldtest.Replica(t, primary)
			file := ""
			if byFile {
				file = sqld.File(near.Dir)
			}
			r, err := replica.Open(replica.Config{
				Database: schema.Registry, File: file, Connections: 1, Now: time.Now,
				Endpoint: sqlite.NewRemote(remote(t, near.URL()), sqlite.Config{}),
			})
			require.NoError(t, err)
			defer r.Close()
			query := func() error {
				_ = r.Refresh()
				var result handler.Result
				return r.Query(t.Context(), "SELECT count(*) FROM company", nil, &result)
			}
			require.ErrorIs(t, query(), replica.ErrUnreleased)
			sqldtest.Exec(t, primary, `INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
				VALUES ('first', 1, 0, 0, 0, 0, 0)`)
			require.Eventually(t, func() bool { return query() == nil }, patience, 10*time.Millisecond)
		})
	}
}
