package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/edge"
	"regedge/host/service"
	"regedge/host/sqlite"
	"regedge/internal/testkit/sampletest"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// TestAnEdgeReadsNoAccessDatabaseOlderThanItsFlagSays (guarantee G8): a revoked key would go on working.
func TestAnEdgeReadsNoAccessDatabaseOlderThanItsFlagSays(t *testing.T) {
	server := sqldtest.Primary(t)
	require.NoError(t, schema.Migrate(t.Context(), sqldtest.Open(t, server), schema.Access))
	sqldtest.Exec(t, server, fmt.Sprintf(`INSERT INTO heartbeat (id, beat) VALUES (1, %d)`, time.Now().Add(-time.Hour).UnixMilli()))
	for maxAge, want := range map[time.Duration]error{2 * time.Hour: nil, 10 * time.Minute: sqlite.ErrTooOld} {
		var c edgeCommand
		c.Registry, c.Access, c.AccessMaxAge, c.MaxLag = sampletest.Registry(t), server.URL(), maxAge, time.Minute
		tokens := &readTokens{byDatabase: map[string]*libsql.Token{"access": libsql.NewToken("")}}
		var closers service.Closers
		config := edge.Config{Log: slog.New(slog.DiscardHandler)}
		require.NoError(t, c.openDatabases(t.Context(), &Main{Now: time.Now}, &config, tokens, &closers))
		require.ErrorIs(t, config.Access.Query(t.Context(), "SELECT count(*) FROM plan", nil, &handler.Result{}), want, maxAge)
		require.NoError(t, closers.Close())
		for _, database := range []edge.Database{config.Registry, config.Access} {
			require.Error(t, database.Query(t.Context(), "SELECT 1", nil, &handler.Result{}), "a file that stays open")
		}
	}
}

// TestAnEdgeReadsTheFilesOfItsReplicas, also while their endpoints do not answer.
func TestAnEdgeReadsTheFilesOfItsReplicas(t *testing.T) {
	var c edgeCommand
	c.Registry, c.Access, c.AccessMaxAge, c.MaxLag = "http://127.0.0.1:1", "http://127.0.0.1:1", time.Hour, time.Hour
	c.RegistryReplica, c.AccessReplica = t.TempDir(), t.TempDir()
	for database, dir := range map[schema.Database]string{schema.Registry: c.RegistryReplica, schema.Access: c.AccessReplica} {
		require.NoError(t, os.MkdirAll(filepath.Dir(sqld.File(dir)), 0o700))
		db, err := schema.OpenFile(sqld.File(dir))
		require.NoError(t, err)
		require.NoError(t, schema.Migrate(t.Context(), db, database))
		_, err = db.Exec("INSERT INTO heartbeat (id, beat) VALUES (1, ?1)", time.Now().UnixMilli())
		if err == nil && database == schema.Registry {
			_, err = db.Exec("INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('r', 0, 0, 0, 0, 0, 0)")
		}
		require.NoError(t, errors.Join(err, db.Close()))
	}
	tokens := &readTokens{byDatabase: map[string]*libsql.Token{"registry": libsql.NewToken(""), "access": libsql.NewToken("")}}
	var closers service.Closers
	defer func() { require.NoError(t, closers.Close()) }()
	config := edge.Config{Log: slog.New(slog.DiscardHandler)}
	require.NoError(t, c.openDatabases(t.Context(), &Main{Now: time.Now}, &config, tokens, &closers))
	require.NoError(t, config.Registry.Query(t.Context(), "SELECT count(*) FROM release", nil, &handler.Result{}))
	require.NoError(t, config.Access.Query(t.Context(), "SELECT count(*) FROM plan", nil, &handler.Result{}))
}
