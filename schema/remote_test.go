package schema

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
	_ "github.com/tursodatabase/libsql-client-go/libsql" // the remote driver

	"regedge/internal/testkit/sqldtest"
)

func TestMigrateMakesARemoteDatabase(t *testing.T) {
	for _, database := range []Database{Registry, Access} {
		t.Run(string(database), func(t *testing.T) {
			ctx := context.Background()
			db, err := sql.Open("libsql", sqldtest.Primary(t).URL())
			require.NoError(t, err)
			defer db.Close()
			require.NoError(t, Migrate(ctx, db, database))
			require.NoError(t, Check(ctx, db, database))
			before := dumpVersions(t, db)
			require.NoError(t, Migrate(ctx, db, database), "a second run")
			require.Equal(t, before, dumpVersions(t, db))
			requireOnly(t, db, database)
		})
	}
}
