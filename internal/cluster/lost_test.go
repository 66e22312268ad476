package cluster_test

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	driver "github.com/tursodatabase/libsql-client-go/libsql"

	"regedge/host/pki"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// TestLostPrimariesAreMadeAgain loses the disks of both primaries. The writer fills access
// again when it starts, an operator pushes the registry, and the replicas begin anew by
// themselves; lookups go on from the old files meanwhile, however long the registry takes
// to be filled.
func TestLostPrimariesAreMadeAgain(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.push(w.before)
	l := w.newTraffic(fewAccounts)
	l.start()
	l.through(t, 50)
	for _, database := range pki.Databases {
		p := w.Primaries[database]
		p.Kill()
		require.NoError(t, os.RemoveAll(p.Dir))
		require.NoError(t, p.Start())
		token, err := w.Token(database, pki.ReadOnly)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, p.Await(ctx, token))
	}
	l.through(t, 50)
	w.WriterProcess.Stop()
	require.NoError(t, w.WriterProcess.Start())
	w.beginRegistry(t)
	l.through(t, 3*int64(load()))
	w.push(w.after)
	w.inStep()
	l.through(t, 50)
	l.end(t)
}

// beginRegistry gives an empty primary its schema, as a push does first, and waits until
// the replicas have that and the heartbeats after it.
func (w *world) beginRegistry(t *testing.T) {
	t.Helper()
	token, err := w.Token("registry", pki.ReadWrite)
	require.NoError(t, err)
	connector, err := driver.NewConnector(w.Primaries["registry"].URL(), driver.WithAuthToken(token))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	for _, e := range w.Edges {
		near := libsql.New(e.Replicas["registry"].URL(), token)
		defer near.Close()
		require.Eventually(t, func() bool {
			result, err := near.Query(t.Context(), "SELECT count(*) FROM heartbeat")
			return err == nil && result.Int(0, 0) == 1
		}, patience, 20*time.Millisecond)
	}
}
