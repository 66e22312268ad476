package cli

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is a URL of a database at which nothing answers.
const nobody = "http://127.0.0.1:1"

// TestAnOperatorIsToldOfAChangeThatEdgesDoNotKnow changes things while the access database can't be reached.
func TestAnOperatorIsToldOfAChangeThatEdgesDoNotKnow(t *testing.T) {
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

// TestAWriterStartsWithoutTheRegistrysPrimary: it only writes heartbeats there and lists releases.
func TestAWriterStartsWithoutTheRegistrysPrimary(t *testing.T) {
	c := startCentre(t, "--registry", nobody)
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
}
