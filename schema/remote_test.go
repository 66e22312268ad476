package schema

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
)

func TestMigrateMakesARemoteDatabase(t *testing.T) {
	for _, database := range []Database{Registry, Access} {
		t.Run(string(database), func(t *testing.T) {
			ctx := context.Background()
			db := sqldtest.Open(t, sqldtest.Primary(t))
			require.NoError(t, Migrate(ctx, db, database))
			require.NoError(t, Check(ctx, db, database))
			before := dumpVersions(t, db)
			require.NoError(t, Migrate(ctx, db, database), "a second run")
			require.Equal(t, before, dumpVersions(t, db))
			requireOnly(t, db, database)
		})
	}
}
