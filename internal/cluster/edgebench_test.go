package cluster_test

import (
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/cluster"
	"regedge/internal/testkit/freeport"
)

// clientsAtOnce is how many clients the edges are measured with, for each processor.
const clientsAtOnce = 8

// BenchmarkEdge measures lookups of whole edges, over HTTP and charged: one that reads the
// file of its replica, one that reads its replica's endpoint, and one on a plain file.
func BenchmarkEdge(b *testing.B) {
	w := startAt(b, "", []placed{{name: "file"}})
	w.push(w.before)
	w.inStep()
	cins := w.watched()
	_, key := w.account(1)
	registry, access := w.Edges[0].Replicas["registry"], w.Edges[0].Replicas["access"]
	for _, way := range []struct {
		name string
		edge *cluster.Edge
	}{
		{"replica's file", w.Edges[0]},
		{"replica's endpoint", w.another("endpoint", "--registry", registry.URL(), "--access", access.URL())},
		{"plain file", w.another("plain", "--registry", w.before, "--access", access.URL(), "--access-replica", access.Dir)},
	} {
		b.Run(way.name, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
			require.Eventually(b, func() bool {
				a, err := fetch(client, way.edge.URL, "/v1/companies/"+cins[0], key)
				return err == nil && a.status == 200
			}, patience, 10*time.Millisecond)
			var next atomic.Int64
			b.SetParallelism(clientsAtOnce)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					a, err := fetch(client, way.edge.URL, "/v1/companies/"+cins[int(next.Add(1))%len(cins)], key)
					if err != nil || a.status != 200 {
						b.Errorf("%+v %v", a, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
		})
	}
}

// another is an edge beside the first, on its machine, that reads as the flags say.
func (w *world) another(name string, flags ...string) *cluster.Edge {
	w.t.Helper()
	node, err := w.Client.AddNode(w.t.Context(), name)
	require.NoError(w.t, err)
	address := freeport.ForTest(w.t)
	env := []string{"REGEDGE_TOKEN=" + node.Token}
	for _, database := range pki.Databases {
		token, err := w.Token(database, pki.ReadOnly)
		require.NoError(w.t, err)
		env = append(env, tokenVariable(database)+"="+token)
	}
	return w.run(&cluster.Edge{Name: name, URL: "http://" + address, Process: &cluster.Process{
		Program: w.Regedge, Log: w.log, Env: env,
		Args: append([]string{
			"edge", "--listen", address, "--log", "errors", "--writer", w.WriterURL(), "--state", filepath.Join(w.t.TempDir(), name),
		}, flags...),
	}})
}
