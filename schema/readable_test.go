package schema

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReaderManagesWithOneVersionMore(t *testing.T) {
	for _, database := range []Database{Registry, Access} {
		t.Run(string(database), func(t *testing.T) {
			steps, err := migrations(files, database)
			require.NoError(t, err)
			known := len(steps)
			require.NoError(t, Readable(database, database, known))
			require.NoError(t, Readable(database, database, known+1))
			require.NoError(t, Readable(database, database, oldestReadable[database]))
			var newer *NewerError
			require.ErrorAs(t, Readable(database, database, known+2), &newer)
			require.ErrorContains(t, Readable(database, database, oldestReadable[database]-1), "let its owner")
		})
	}
	require.Error(t, Readable(Ledger, Ledger, 1))
	require.Error(t, CheckReadable(context.Background(), openTemp(t), Access), "an empty database")
}

// TestMigrationsOfReplicasOnlyAdd holds what CheckReadable relies on.
func TestMigrationsOfReplicasOnlyAdd(t *testing.T) {
	for _, database := range []Database{Registry, Access} {
		steps, err := migrations(files, database)
		require.NoError(t, err)
		for _, step := range steps[oldestReadable[database]:] {
			for _, statement := range statements(step.sql) {
				require.Regexp(t, `(?s)^((--[^\n]*\n)|\s)*(CREATE TABLE|CREATE INDEX|CREATE TRIGGER|ALTER TABLE \w+ ADD COLUMN|INSERT INTO)\b`,
					statement, "%s adds only", step.name)
			}
		}
	}
}
