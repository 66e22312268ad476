package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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

// replicasOf returns an edge with the files of two replicas, whose newest heartbeat has an age. Their endpoints do not answer.
func replicasOf(t *testing.T, age time.Duration) *edgeCommand {
	t.Helper()
	c := new(edgeCommand)
	c.Registry, c.Access = "http://127.0.0.1:1", "http://127.0.0.1:1"
	c.RegistryReplica, c.AccessReplica = t.TempDir(), t.TempDir()
	for database, dir := range map[schema.Database]string{schema.Registry: c.RegistryReplica, schema.Access: c.AccessReplica} {
		require.NoError(t, os.MkdirAll(filepath.Dir(sqld.File(dir)), 0o700))
		db, err := schema.OpenFile(sqld.File(dir))
		require.NoError(t, err)
		require.NoError(t, schema.Migrate(t.Context(), db, database))
		_, err = db.Exec("INSERT INTO heartbeat (id, beat) VALUES (1, ?1)", time.Now().Add(-age).UnixMilli())
		if err == nil && database == schema.Registry {
			_, err = db.Exec("INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('r', 0, 0, 0, 0, 0, 0)")
		}
		require.NoError(t, errors.Join(err, db.Close()))
	}
	return c
}

// opened opens the databases of an edge.
func opened(t *testing.T, c *edgeCommand) edge.Config {
	t.Helper()
	tokens := &readTokens{byDatabase: map[string]*libsql.Token{"registry": libsql.NewToken(""), "access": libsql.NewToken("")}}
	var closers service.Closers
	config := edge.Config{Log: slog.New(slog.DiscardHandler)}
	require.NoError(t, c.openDatabases(t.Context(), &Main{Now: time.Now}, &config, tokens, &closers))
	t.Cleanup(func() { require.NoError(t, closers.Close()) })
	return config
}

// TestAnEdgeReadsTheFilesOfItsReplicas, also while their endpoints do not answer.
func TestAnEdgeReadsTheFilesOfItsReplicas(t *testing.T) {
	c := replicasOf(t, 0)
	c.AccessMaxAge, c.MaxLag = time.Hour, time.Hour
	config := opened(t, c)
	require.NoError(t, config.Registry.Query(t.Context(), "SELECT count(*) FROM release", nil, &handler.Result{}))
	require.NoError(t, config.Access.Query(t.Context(), "SELECT count(*) FROM plan", nil, &handler.Result{}))
}

// TestAnEdgeIsReadyAsFarBehindAsItsFlagSays, whatever the age of the access database may be.
func TestAnEdgeIsReadyAsFarBehindAsItsFlagSays(t *testing.T) {
	c, of := startCentre(t), replicasOf(t, 30*time.Minute)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	p := start("edge", "--listen", "127.0.0.1:0", "--writer", c.url(), "--state", c.path("one"), "--token", node.Token,
		"--registry", of.Registry, "--registry-replica", of.RegistryReplica, "--access", of.Access, "--access-replica", of.AccessReplica,
		"--max-lag", "10m", "--access-max-age", "1h")
	t.Cleanup(func() { p.halt() })
	require.True(t, p.await(func() bool {
		if p.addr("lookups") == "" {
			return false
		}
		_, why, err := p.fetch("/readyz", "")
		t.Log(why)
		return err == nil && strings.Contains(why, "registry replica: ")
	}), p.stderr.String())
}
