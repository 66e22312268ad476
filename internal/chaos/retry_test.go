package chaos

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARetryAfterAKillIsNotChargedTwice kills an edge after it has charged lookups, and repeats them
// when it runs again. It has a kill for each, since the charge of one may be at any place of the
// journal's mapped memory.
func TestARetryAfterAKillIsNotChargedTwice(t *testing.T) {
	c := newCluster(t)
	edge := c.run("one")
	a := c.account(100)
	require.Equal(t, http.StatusOK, a.asksUntilHeard(edge))
	const kills = 5
	for n := range kills {
		key := string(rune('a' + n))
		status, replayed := a.once(t, edge, key)
		require.Equal(t, http.StatusOK, status)
		require.Empty(t, replayed)
		edge.Kill()
		edge.start()
		edge.await("/readyz", http.StatusOK)
		status, replayed = a.once(t, edge, key)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "true", replayed)
	}
	eventually(t, func() bool {
		at, err := a.read()
		return err == nil && at.Spent == kills+1
	}, func() string { return "each lookup is paid once" })
}

// once asks an edge under an Idempotency-Key until it hears the writer, and returns the status and Idempotent-Replayed.
func (a *account) once(t *testing.T, p *process, key string) (status int, replayed string) {
	t.Helper()
	eventually(t, func() bool {
		request, err := http.NewRequest(http.MethodGet, p.url(company), nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+a.key)
		request.Header.Set("Idempotency-Key", key)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		status, replayed = response.StatusCode, response.Header.Get("Idempotent-Replayed")
		return status != http.StatusServiceUnavailable
	}, func() string { return p.name + " hears the writer" })
	return status, replayed
}
