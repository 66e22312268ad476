package dashboard_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAChangeThatEdgesDoNotKnowIsToldAsSuch changes things while the access database can't be used: no page may
// say that it is done everywhere.
func TestAChangeThatEdgesDoNotKnowIsToldAsSuch(t *testing.T) {
	w := newWorld(t)
	owner, account := w.owner("Acme", 0)
	operator := w.operator()
	require.Contains(t, owner.submit("/keys", "/keys", "name", "server").body, "reg_live_")
	keys, err := w.client.Keys(t.Context(), account)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.NoError(t, w.access.Close())

	const words = "the edges do not know of it yet"
	at, key := fmt.Sprint("/accounts/", account), fmt.Sprint("/keys/", keys[0].ID)
	p := operator.submit(at, at+"/suspension", "suspended", "1").text()
	require.Contains(t, p, words)
	require.NotContains(t, p, "within two seconds")
	require.Contains(t, operator.submit(at, at+"/plan", "plan", "scale").text(), words)
	require.Contains(t, operator.submit("/accounts", "/accounts", "name", "Other", "plan", "starter").text(), words)
	require.Contains(t, owner.submit(key, key+"/end", "days", "7").text(), words)
	require.Contains(t, owner.submit("/keys", "/keys", "name", "made meanwhile").text(), "The edges do not know it yet")
	p = owner.submit(key+"/revoke", key+"/revoke").text()
	require.Contains(t, p, words)
	require.NotContains(t, p, "within two seconds")
}
