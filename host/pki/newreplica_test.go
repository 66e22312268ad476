package pki_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/edge"
	"regedge/internal/testkit"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// TestANewReplicaIsNotSaidToRefuseTheToken: until it has a copy it forwards each statement to the
// primary, whose gate refuses it. An edge that has the right token says nothing about its token.
func TestANewReplicaIsNotSaidToRefuseTheToken(t *testing.T) {
	p := newPair(t)
	p.start(t, p.primary, p.write)
	writer := open(t, p.primary, p.write)
	require.NoError(t, schema.Migrate(t.Context(), writer, schema.Access))
	_, err := writer.ExecContext(t.Context(), "INSERT INTO heartbeat VALUES (1, ?1)", time.Now().UnixMilli())
	require.NoError(t, err)

	require.NoError(t, p.replica.Start())
	t.Cleanup(p.replica.Kill)
	endpoint, err := libsql.Open(p.replica.URL(), p.read)
	require.NoError(t, err)
	log := new(testkit.Log)
	access, err := edge.OpenReplica(edge.ReplicaConfig{
		Database: schema.Access, Endpoint: endpoint, Dir: p.replica.Dir, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(t, err)
	defer access.Close()
	readiness := access.(interface{ Ready(time.Duration) error })
	var said []string
	require.Eventually(t, func() bool {
		require.NoError(t, access.Refresh())
		err := readiness.Ready(0)
		if err != nil {
			said = append(said, err.Error())
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond, log)
	require.NotContains(t, log.String(), "refuses the token")
	for _, reason := range said {
		require.NotContains(t, reason, "refuses the token")
	}
}
