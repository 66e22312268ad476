package cli

import (
	"fmt"
	"log/slog"
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
	}
}
