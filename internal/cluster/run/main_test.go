package main

import (
	"database/sql"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
)

// found is what a pattern's group has in a text.
func found(t *testing.T, pattern, text string) string {
	groups := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.Len(t, groups, 2, "%s in\n%s", pattern, text)
	return groups[1]
}

// TestAPortInUseIsNamed: without this, a second cluster talks with the first one's writer.
func TestAPortInUseIsNamed(t *testing.T) {
	require.NoError(t, portsFree(0), "free ones")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	for _, asked := range []int{port, port - 1, port - 2} {
		require.ErrorContains(t, portsFree(asked), "address already in use; give another PORT")
	}
	require.NoError(t, listener.Close())
}

// TestAPortHasRoomForThree: the writer's and both edges'.
func TestAPortHasRoomForThree(t *testing.T) {
	for text, want := range map[string]bool{"1": true, "65533": true, "65534": false, "0": false, "-1": false, "http": false} {
		_, valid := portOf([]string{"run", "up", "dir", "regedge", text})
		require.Equal(t, want, valid, text)
	}
	port, valid := portOf([]string{"run", "up", "dir", "regedge", ""})
	require.True(t, valid)
	require.Zero(t, port)
	_, valid = portOf([]string{"run", "up", "dir"})
	require.False(t, valid)
}

// TestWhatMakeClusterPrints starts a cluster and follows what it prints. Its tokens may read, and nothing else.
func TestWhatMakeClusterPrints(t *testing.T) {
	sqldtest.Program(t)
	dir := t.TempDir()
	regedge, err := testkit.BuildRegedge(t.Context(), dir)
	require.NoError(t, err)
	run := filepath.Join(dir, "run")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", run, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	command := func(name string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = root
		out, err := c.CombinedOutput()
		return string(out), err
	}
	home := filepath.Join(dir, "cluster")
	greeting, err := command(run, "up", home, regedge)
	require.NoError(t, err, greeting)
	kept, err := os.Stat(filepath.Join(home, greetingFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), kept.Mode().Perm(), "it holds a key and tokens")
	t.Cleanup(func() {
		if p := running(home); p != nil {
			_ = p.Kill()
		}
	})

	lookup, err := http.NewRequestWithContext(t.Context(), "GET", found(t, `curl .*' (\S+)`, greeting), nil)
	require.NoError(t, err)
	lookup.Header.Set("Authorization", found(t, `'Authorization: (.*)'`, greeting))
	answer, err := http.DefaultClient.Do(lookup)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, 200, answer.StatusCode)

	address, token := found(t, `REGEDGE_WRITER=(\S+)`, greeting), found(t, `REGEDGE_TOKEN=(\S+)`, greeting)
	reader := writer.NewClient(address, token, nil)
	all, err := reader.Accounts(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = reader.AddAccount(t.Context(), "another", "", "scale")
	require.ErrorIs(t, err, writer.ErrForbidden)
	_, err = reader.ChangeCredits(t.Context(), all[0].ID, writer.CreditChange{Amount: 1})
	require.ErrorIs(t, err, writer.ErrForbidden)
	require.ErrorIs(t, reader.PassReadTokens(t.Context(), "east", nil), writer.ErrForbidden)

	open := func(url string) *sql.DB {
		db, err := libsql.Open(url, found(t, `--registry-token (\S+)`, greeting))
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}
	registry := open(found(t, `--registry (\S+)`, greeting))
	var companies int
	require.NoError(t, registry.QueryRowContext(t.Context(), "SELECT count(*) FROM company").Scan(&companies))
	require.NotZero(t, companies)
	_, err = registry.ExecContext(t.Context(), "DELETE FROM company")
	require.ErrorContains(t, err, "PermissionDenied")
	_, err = open(found(t, `registry +(\S+) \(primary\)`, greeting)).ExecContext(t.Context(), "DELETE FROM company")
	require.ErrorContains(t, err, "401")

	script := regexp.MustCompile(`(?m)^  (export .*|\S+/regedge (?:status|push) .*)$`).FindAllString(greeting, -1)
	require.Len(t, script, 4)
	said, err := command("sh", "-e", "-c", strings.Join(script, "\n"))
	require.NoError(t, err, said)
	require.Contains(t, said, "east")

	again, err := command(run, "up", home, regedge)
	require.Error(t, err)
	require.Contains(t, again, "make cluster-down stops it")
	said, err = command(run, "down", home, regedge)
	require.NoError(t, err, said)
	require.Equal(t, "the cluster has stopped\n", said)
	require.Nil(t, running(home))
}
