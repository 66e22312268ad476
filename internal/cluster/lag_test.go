package cluster_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnEdgeThatFallsBehindIsNotReadyUntilItHasCaughtUp cuts an edge off for longer than
// its bound of lag. It goes on answering whoever still asks it.
func TestAnEdgeThatFallsBehindIsNotReadyUntilItHasCaughtUp(t *testing.T) {
	t.Parallel()
	w := start(t, "--max-lag", "4s")
	w.push(w.before)
	w.inStep()
	east, west := w.edge("east"), w.edge("west")
	east.Cut()
	require.Eventually(t, func() bool { return !ready(east.URL) }, patience, 50*time.Millisecond)
	said, err := get(east.URL+"/readyz", "")
	require.NoError(t, err)
	require.True(t, strings.Contains(said, "too far behind"), said)
	require.True(t, ready(west.URL), "the other one is not cut off")
	a := w.ask(east, "/v1/companies/"+w.watched()[0], "reg_sandbox_public")
	require.Equal(t, 200, a.status)
	require.Equal(t, w.release(), a.release)
	east.Mend()
	w.inStep()
}

// ready asks an edge whether it should be given requests.
func ready(url string) bool {
	response, err := http.Get(url + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
