package sqld_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/freeport"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

const patience = time.Minute

func TestAReplicaThatLostItsDatabaseIsRestarted(t *testing.T) {
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (1)")
	log := &testkit.Log{}
	replica := sqldtest.Start(t, sqld.Config{HTTP: freeport.ForTest(t), Primary: "http://" + primary.GRPC, Log: log})
	sqldtest.LoseDatabase(t, primary, "", replica.Dir, log)
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "regedge: the replica has lost its database, and is started again")
	}, patience, 50*time.Millisecond, log.String())

	sqldtest.Exec(t, primary, "UPDATE probe SET n = 2")
	follows(t, replica, 2)
}

// follows waits until the number in the table probe at a replica is want.
func follows(t *testing.T, replica *sqld.Server, want int64) {
	t.Helper()
	db := sqldtest.Open(t, replica)
	require.Eventually(t, func() bool {
		var n int64
		return db.QueryRowContext(t.Context(), "SELECT n FROM probe").Scan(&n) == nil && n == want
	}, patience, 50*time.Millisecond, "it follows")
}
