package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
)

// startEdge starts an edge that need not get ready.
func (c *centre) startEdge(t *testing.T, token string, flags ...string) *program {
	t.Helper()
	p := start(append([]string{
		"edge", "--listen", "127.0.0.1:0", "--registry", c.path("registry.db"), "--access", c.path("access.db"),
		"--writer", c.url(), "--state", c.path("one"), "--token", token,
	}, flags...)...)
	t.Cleanup(func() { p.halt() })
	return p
}

// readiness is the status and the text of /readyz, 0 while nothing answers.
func (p *program) readiness() (int, string) {
	if p.addr("lookups") == "" {
		return 0, ""
	}
	response, body, err := p.fetch("/readyz", "")
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, body
}

func TestAWrongTokenOfANodeIsCalledThat(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	p := c.startEdge(t, "reg_node_of_another_cluster")
	require.True(t, p.await(func() bool {
		status, body := p.readiness()
		return status == 503 && strings.Contains(body, "the writer refuses this node's token")
	}), p.stderr.String())
	_, body := p.readiness()
	require.NotContains(t, body, "never reached", "it was reached")
	require.True(t, p.await(func() bool { return strings.Contains(p.stderr.String(), "regedge node token makes a new one") }))
	require.Equal(t, 1, strings.Count(p.stderr.String(), "regedge node token makes a new one"))
	require.NotContains(t, p.stderr.String(), "the writer does not answer")

	require.Equal(t, exitOK, c.halt())
	time.Sleep(3 * time.Second) // longer than between two reports
	_, body = p.readiness()
	require.Contains(t, body, "refuses this node's token", "a writer that is away says nothing else")
}

func TestAWrongTokenOfAReplicaIsCalledThat(t *testing.T) {
	t.Parallel()
	s := startStage(t, "access")
	sqldtest.ExecWith(t, s.primary, s.write, "DROP TABLE probe") // the writer takes it for another's database
	c := startCentre(t, "--access", s.primary.URL(), "--access-token", s.write)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	reader, err := libsql.Open(s.replica.URL(), s.read)
	require.NoError(t, err)
	defer reader.Close()
	require.Eventually(t, func() bool {
		var beat int64
		return reader.QueryRow("SELECT beat FROM heartbeat").Scan(&beat) == nil && beat > 0
	}, time.Minute, 50*time.Millisecond)

	p := c.startEdge(t, node.Token, "--access", s.replica.URL(), "--access-replica", s.replica.Dir, "--access-token", s.read+"x", "--max-lag", "3s")
	const line = "the replica's endpoint refuses the token: there is no fallback"
	require.True(t, p.await(func() bool { return strings.Contains(p.stderr.String(), line) }))
	require.Equal(t, exitOK, c.halt()) // no more heartbeats
	require.True(t, p.await(func() bool {
		time.Sleep(50 * time.Millisecond)
		status, body := p.readiness()
		return status == 503 && strings.Contains(body, "too far behind") && strings.Contains(body, "the replica's endpoint refuses the token")
	}))
	require.Equal(t, 1, strings.Count(p.stderr.String(), line))
	require.NotContains(t, p.stderr.String(), "endpoint does not answer")
}
