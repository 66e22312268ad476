package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// TestASecondWriterEndsWithACodeOfItsOwn starts a writer on a ledger that is in use: the first one goes
// on, and the unit does not start the second one again.
func TestASecondWriterEndsWithACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	args := []string{
		"writer", "--listen", "127.0.0.1:0", "--token", operatorToken, "--database", c.path("ledger.db"), "--access", c.path("access.db"),
	}
	second := start(args...)
	require.Equal(t, exitHeld, <-second.ended, second.stderr.String())
	require.Contains(t, second.stderr.String(), "another writer runs on this ledger: process "+strconv.Itoa(os.Getpid()))
	require.Contains(t, second.stderr.String(), "hint: stop that one, or start this one with --take-over")
	_, err := c.client.AddAccount(t.Context(), "made-up", "", "free")
	require.NoError(t, err)
	unit, err := os.ReadFile("../../deploy/systemd/regedge-writer.service")
	require.NoError(t, err)
	require.Contains(t, string(unit), "\nRestartPreventExitStatus="+strconv.Itoa(exitHeld)+"\n")

	third := start(append(args, "--take-over")...)
	defer third.halt()
	require.True(t, third.await(func() bool { return third.addr("writer") != "" }), third.stderr.String())
	code := <-c.ended
	c.ended <- code // for the end of the test
	require.Equal(t, exitFailure, code, "the first one ends")
}

// TestAWriterThatCantServeTakesNoLedger: the one that runs has its address, and would end for it.
func TestAWriterThatCantServeTakesNoLedger(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	second := start("writer", "--listen", c.addr("writer"), "--token", operatorToken, "--database", c.path("ledger.db"), "--access", c.path("access.db"), "--take-over")
	require.Equal(t, exitFailure, <-second.ended, second.stderr.String())
	require.Contains(t, second.stderr.String(), "is in use")
	_, err := c.client.AddAccount(t.Context(), "made-up", "", "free")
	require.NoError(t, err, "the first one goes on")
}

// TestALedgerThatWasRestoredWaitsForItsNodes: what they were leased since its backup is not in it, and would be granted twice.
func TestALedgerThatWasRestoredWaitsForItsNodes(t *testing.T) {
	c := startCentre(t)
	c.edge(t, "mumbai").halt()
	c.halt()
	for _, flags := range [][]string{nil, {"--restored"}} {
		again := start(append([]string{
			"writer", "--listen", "127.0.0.1:0", "--token", operatorToken, "--database", c.path("ledger.db"), "--access", c.path("access.db"),
		}, flags...)...)
		defer again.halt()
		require.True(t, again.await(func() bool { return again.addr("writer") != "" }), again.stderr.String())
		health, err := writer.NewClient("http://"+again.addr("writer"), operatorToken, nil).Health(t.Context())
		require.NoError(t, err)
		require.Equal(t, flags != nil, health.Restoring)
		require.Equal(t, exitOK, again.halt())
	}
}

// TestAServiceThatFailsWhileItStartsGivesTheLedgerUp: the next start would wait for it.
func TestAServiceThatFailsWhileItStartsGivesTheLedgerUp(t *testing.T) {
	dir := t.TempDir()
	first := startDev(dir)
	require.True(t, first.await(first.greeted), first.stderr.String())
	require.Equal(t, exitOK, first.halt())
	registry := filepath.Join(dir, "registry.db")
	require.NoError(t, os.Rename(registry, registry+".kept"))
	require.NoError(t, os.WriteFile(registry, []byte("no database at all, but some words"), 0o600))
	require.Equal(t, exitFailure, <-startDev(dir).ended)

	require.NoError(t, os.Rename(registry+".kept", registry))
	again := startDev(dir)
	require.True(t, again.await(again.greeted), again.stderr.String())
	require.Equal(t, exitOK, again.halt())
	require.NotContains(t, again.stderr.String(), "was not given up")
}

// TestAWriterThatIsStoppedWhileItStartsEndsInOrder, as the other services: an init system would take it for one that failed.
func TestAWriterThatIsStoppedWhileItStartsEndsInOrder(t *testing.T) {
	dir := t.TempDir()
	p := start("writer", "--listen", "127.0.0.1:0", "--token", operatorToken,
		"--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db"))
	require.Equal(t, exitOK, p.halt(), p.stderr.String())
	require.NotContains(t, p.stderr.String(), "regedge: ")
}
