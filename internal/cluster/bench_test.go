package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/pki"
	"regedge/host/sqlite"
	"regedge/internal/cluster"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/push"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
	"regedge/schema/generate"
	"regedge/schema/importer"
)

// benchCompanies is the number of companies of the registry that is pushed.
const benchCompanies = 30_000

// BenchmarkPush pushes a registry, and then a change of 1% of its companies.
func BenchmarkPush(b *testing.B) {
	dir := b.TempDir()
	registry := newRegistry(b, dir, benchCompanies)
	for b.Loop() {
		primary := sqldtest.Primary(b)
		client := sqldtest.Open(b, primary)
		run := func(name string, rows int64) {
			release, err := push.Snapshot(b.Context(), registry, filepath.Join(dir, "releases"), nil)
			require.NoError(b, err)
			report, err := push.Run(b.Context(), push.Config{
				Snapshots: filepath.Join(dir, "releases"), Release: release, Primary: client, Now: time.Now,
			})
			require.NoError(b, err)
			n := float64(rows)
			b.ReportMetric(n/report.Elapsed.Seconds(), name+"-rows/s")
			b.ReportMetric(float64(report.Sent+report.Received)/n, name+"-B/row")
			b.Logf("%s: %d rows in %d records, %d transactions, %v, %d B sent, %d B received, of these %d to compare", name,
				rows, report.Records(), report.Transactions, report.Elapsed, report.Sent, report.Received, report.Compared)
		}
		run("full", countRows(b, registry))
		run("1%", change(b, registry, 100))
	}
}

// countRows counts the records of a registry.
func countRows(b *testing.B, registry string) (rows int64) {
	b.Helper()
	db, err := schema.OpenReadOnly(registry)
	require.NoError(b, err)
	defer db.Close()
	require.NoError(b, db.QueryRow(`SELECT (SELECT count(*) FROM company) + (SELECT count(*) FROM llp) + (SELECT count(*) FROM director)
		+ (SELECT count(*) FROM appointment) + (SELECT count(*) FROM partner) + (SELECT count(*) FROM pincode)`).Scan(&rows))
	return rows
}

// newRegistry makes a registry file of made-up companies.
func newRegistry(b testing.TB, dir string, companies int) string {
	b.Helper()
	out := filepath.Join(dir, "generated")
	made, err := generate.Run(b.Context(), generate.Config{Companies: companies, Seed: 5, Out: out})
	require.NoError(b, err)
	config := importer.Config{Registry: filepath.Join(dir, "registry.db"), AsOf: "2025-05-05"}
	for _, file := range made.Files {
		config.Files = append(config.Files, filepath.Join(out, filepath.Base(file.Name)))
	}
	_, err = importer.Run(b.Context(), config)
	require.NoError(b, err)
	require.NoError(b, os.RemoveAll(out))
	return config.Registry
}

// change changes one company in oneIn, adds a release, and returns the number of changed ones.
func change(b *testing.B, registry string, oneIn int) (rows int64) {
	b.Helper()
	db, err := schema.OpenFile(registry)
	require.NoError(b, err)
	defer db.Close()
	changed, err := db.Exec(fmt.Sprintf("UPDATE company SET paid_up_capital = coalesce(paid_up_capital, 0) + 1 WHERE rowid %% %d = 0", oneIn))
	require.NoError(b, err)
	rows, err = changed.RowsAffected()
	require.NoError(b, err)
	_, err = db.Exec(fmt.Sprintf(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
		SELECT 'bench-%d', released_at, companies, llps, directors, appointments, partners FROM release ORDER BY seq DESC LIMIT 1`, time.Now().UnixNano()))
	require.NoError(b, err)
	return rows
}

// BenchmarkVisible measures the time from a commit at the primary until a reader of the
// replica's file sees it.
func BenchmarkVisible(b *testing.B) {
	primary := sqldtest.Primary(b)
	sqldtest.Exec(b, primary, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO t VALUES (1, 0)")
	near := sqldtest.Replica(b, primary)
	sqldtest.Await(b, near, "") // a replica follows once it was queried
	var file *sqlite.Store
	require.Eventually(b, func() bool {
		opened, err := sqlite.Open(sqlite.Config{Path: sqld.File(near.Dir)})
		file = opened
		return err == nil
	}, patience, 10*time.Millisecond)
	defer file.Close()
	db := sqldtest.Open(b, primary)
	var took []time.Duration
	for n := int64(1); b.Loop(); n++ {
		_, err := db.ExecContext(b.Context(), "UPDATE t SET n = ?1", n)
		require.NoError(b, err)
		committed := time.Now()
		var result handler.Result
		for {
			err := file.Query(b.Context(), "SELECT n FROM t", nil, &result)
			if err == nil && result.Rows() == 1 && result.Values[0].Int == n {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
		took = append(took, time.Since(committed))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkStatement compares the ways to read a company: a plain file, a replica's file,
// and a replica's endpoint.
func BenchmarkStatement(b *testing.B) {
	dir := b.TempDir()
	registry := newRegistry(b, dir, 3000)
	primary := sqldtest.Primary(b)
	release, err := push.Snapshot(b.Context(), registry, dir, nil)
	require.NoError(b, err)
	_, err = push.Run(b.Context(), push.Config{Snapshots: dir, Release: release, Primary: sqldtest.Open(b, primary), Now: time.Now})
	require.NoError(b, err)
	near := sqldtest.Replica(b, primary)
	endpoint := sqlite.NewRemote(sqldtest.Open(b, near), sqlite.Config{})
	followed, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Registry, File: sqld.File(near.Dir), Endpoint: endpoint, Connections: 4, Now: time.Now})
	require.NoError(b, err)
	defer followed.Close()
	require.Eventually(b, func() bool { _ = followed.Refresh(); return !followed.Remote() }, patience, 20*time.Millisecond)
	plain, err := sqlite.Open(sqlite.Config{Path: registry})
	require.NoError(b, err)
	defer plain.Close()
	db, err := schema.OpenReadOnly(registry)
	require.NoError(b, err)
	defer db.Close()
	var cin string
	require.NoError(b, db.QueryRow("SELECT max(cin) FROM appointment JOIN company USING (cin)").Scan(&cin))
	statement := handler.Statements()["company"]
	args := []handler.Value{{Kind: handler.Text, Text: cin}, {Kind: handler.Integer, Int: 1}, {Kind: handler.Integer, Int: 1}}
	for name, from := range map[string]interface {
		Query(context.Context, string, []handler.Value, *handler.Result) error
	}{"plain file": plain, "replica's file": followed, "replica's endpoint": endpoint} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				var result handler.Result
				for pb.Next() {
					if err := from.Query(b.Context(), statement, args, &result); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "statements/s")
		})
	}
}

// clientsAtOnce is how many clients the edges are measured with, for each processor.
const clientsAtOnce = 8

// BenchmarkEdge measures lookups of whole edges, over HTTP and charged: one that reads the
// file of its replica, one that reads its replica's endpoint, and one on a plain file.
func BenchmarkEdge(b *testing.B) {
	f := startAt(b, "", []placed{{name: "file"}})
	f.push(f.before)
	f.inStep()
	cins := f.watched()
	_, key := f.account(1)
	registry, access := f.Edges[0].Replicas["registry"], f.Edges[0].Replicas["access"]
	for _, way := range []struct {
		name string
		edge *cluster.Edge
	}{
		{"replica's file", f.Edges[0]},
		{"replica's endpoint", f.another("endpoint", "--registry", registry.URL(), "--access", access.URL())},
		{"plain file", f.another("plain", "--registry", f.before, "--access", access.URL(), "--access-replica", access.Dir)},
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
func (f *fixture) another(name string, flags ...string) *cluster.Edge {
	f.t.Helper()
	node, err := f.Client.AddNode(f.t.Context(), name)
	require.NoError(f.t, err)
	address := testkit.FreePort(f.t)
	env := []string{"REGEDGE_TOKEN=" + node.Token}
	for _, database := range pki.Databases {
		token, err := f.Token(database, pki.ReadOnly)
		require.NoError(f.t, err)
		env = append(env, tokenVariable(database)+"="+token)
	}
	return f.run(&cluster.Edge{Name: name, URL: "http://" + address, Process: &testkit.Process{
		Program: f.Regedge, Log: f.log, Env: env,
		Args: append([]string{
			"edge", "--listen", address, "--log", "errors", "--writer", f.WriterURL(), "--state", filepath.Join(f.t.TempDir(), name),
		}, flags...),
	}})
}
