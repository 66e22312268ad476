package sqld_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

// TestAReplicaThatHangsIsStartedAgain: it would follow no more, and a revoked key be served for as long as it may be old.
func TestAReplicaThatHangsIsStartedAgain(t *testing.T) {
	t.Parallel()
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (1)")
	log := &testkit.Log{}
	replica := &sqld.Server{Config: sqld.Config{Program: sqldtest.Program(t), Dir: t.TempDir(), HTTP: testkit.FreePort(t), Primary: "http://" + primary.GRPC, Log: log}}
	replica.HangsAfter(5)
	require.NoError(t, replica.Start())
	t.Cleanup(replica.Kill)
	follows(t, replica, 1)
	before, err := os.Stat(sqld.File(replica.Dir))
	require.NoError(t, err)
	pid := replica.PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	sqldtest.Exec(t, primary, "UPDATE probe SET n = 2")
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "the replica has answered nothing") }, patience, 50*time.Millisecond)
	follows(t, replica, 2)
	require.NotEqual(t, pid, replica.PID())
	after, err := os.Stat(sqld.File(replica.Dir))
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "it goes on where it was")
}
