package cli

import (
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// nobody is a URL of a database at which nothing answers.
const nobody = "http://127.0.0.1:1"

// TestAnOperatorIsToldOfAChangeThatEdgesDoNotKnow changes things while the access database can't be reached.
func TestAnOperatorIsToldOfAChangeThatEdgesDoNotKnow(t *testing.T) {
	t.Parallel()
	c := startCentre(t, "--access", nobody)
	a, err := c.client.AddAccount(t.Context(), "Acme", "", "scale")
	require.NoError(t, err)
	_, err = c.client.AddKey(t.Context(), a.ID, "")
	require.NoError(t, err)
	for _, change := range [][]string{{"key", "revoke", "1"}, {"account", "suspend", "1"}, {"account", "suspend", "1", "--json"}} {
		p := start(append(change, "--yes", "--writer", c.url(), "--token", operatorToken)...)
		require.Zero(t, p.halted(), "%v: %s", change, p.stderr)
		require.Contains(t, p.stderr.String(), "the change is stored, but edges do not know of it yet", "%v", change)
	}
	p := start("credit", "add", "1", "5", "--writer", c.url(), "--token", operatorToken)
	require.Zero(t, p.halted(), p.stderr.String())
	require.NotContains(t, p.stderr.String(), "do not know", "credits are not in the access database")
	key, err := c.client.Key(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, key.Active())
}

// TestAWriterStartsWithoutItsPrimaries, which refuse connections, or take them and never
// answer. It writes heartbeats there, projects what edges need to know of accounts, and lists
// releases; the ledger needs neither.
func TestAWriterStartsWithoutItsPrimaries(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--registry", "--access"} {
		for what, url := range map[string]func(*testing.T) string{
			"refuses": func(*testing.T) string { return nobody },
			"hangs":   func(t *testing.T) string { return hangingPrimary(t).URL() },
		} {
			t.Run(flag+" "+what, func(t *testing.T) {
				t.Parallel()
				c := startCentre(t, flag, url(t))
				response, err := http.Get(c.url() + "/readyz")
				require.NoError(t, err)
				response.Body.Close()
				require.Equal(t, http.StatusOK, response.StatusCode)
				id, _ := c.account(t, 5)
				a, err := c.client.Account(t.Context(), id)
				require.NoError(t, err)
				require.EqualValues(t, 5, a.Balance)
				_, err = c.client.AddNode(t.Context(), "one")
				require.NoError(t, err)
				require.Equal(t, exitOK, c.halt(), c.stderr.String())
			})
		}
	}
}

// hangingPrimary starts a primary that takes connections and never answers. It is started again after a minute and a
// half, so a test begins with it, and no other waits for it.
func hangingPrimary(t *testing.T) *sqld.Server {
	t.Helper()
	primary := sqldtest.Primary(t)
	pid := primary.PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	return primary
}

// TestAWriterFillsAnAccessPrimaryThatBeganAnew, also when no change comes that would not find its table. Its first heartbeat,
// with which edges take it, comes after the last key: keys that they did not find yet were refused with 401.
func TestAWriterFillsAnAccessPrimaryThatBeganAnew(t *testing.T) {
	primary := sqldtest.Primary(t)
	c := startCentre(t, "--access", primary.URL())
	id, _ := c.account(t, 10)
	const keys = 20_000
	ledger, err := schema.OpenFile(c.path("ledger.db"))
	require.NoError(t, err)
	defer ledger.Close()
	_, err = ledger.Exec(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO api_key (account, name, hash, shown, created_at) SELECT ?, '', randomblob(32), 'abcd', 0 FROM n`, keys, id)
	require.NoError(t, err)
	access := sqldtest.Open(t, primary)
	served := func() (n int) { // keys, once there is a heartbeat
		if access.QueryRow(`SELECT count(*) FROM api_key CROSS JOIN heartbeat`).Scan(&n) != nil {
			return 0
		}
		return n
	}
	require.Eventually(t, func() bool { return served() > 0 }, time.Minute, 10*time.Millisecond)
	primary.Kill()
	require.NoError(t, os.RemoveAll(primary.Dir))
	require.NoError(t, primary.Start())
	n := 0
	require.Eventually(t, func() bool { n = served(); return n > 0 }, time.Minute, time.Millisecond, c.stderr)
	require.Equal(t, keys, n, "%s", c.stderr)
}
