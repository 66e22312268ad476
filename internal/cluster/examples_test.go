package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/examplestest"
)

func TestEveryExampleIsTrueAtAnEdgeOfACluster(t *testing.T) {
	t.Parallel()
	f := start(t, "--trusted-proxy", "127.0.0.1")
	f.push(f.before)
	f.inStep()
	for _, e := range f.Edges {
		examplestest.Check(t, e.URL, "../..")
	}
	_, key := f.account(1)
	require.Eventually(t, func() bool {
		return f.ask(f.Edges[0], "/v1/companies/U72900ZZ2015PTC000001", key).status == 404
	}, patience, 20*time.Millisecond, "a live key finds no made-up record")
}
