package cluster_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// fault disturbs a cluster, and returns the time from its end until the edges were in step again.
type fault struct {
	name string
	run  func(*testing.T) time.Duration
}

func TestNoLookupFailsWhileReleasesChange(t *testing.T) {
	t.Parallel()
	f := start(t, "--access-max-age", "1h", "--max-lag", "1h")
	f.push(f.before)
	l := f.underLoad(t)
	l.disturbed(t,
		fault{"a push of 1%", func(t *testing.T) time.Duration { return f.pushed(t, f.after) }},
		fault{"a push of everything", func(t *testing.T) time.Duration { return f.pushed(t, f.whole) }},
		fault{"a rollback", func(*testing.T) time.Duration { return f.rollback("") }},
		fault{"a push killed half-way and resumed", f.killedPush})
}

func TestNoLookupFailsWhenAPartDoes(t *testing.T) {
	t.Parallel()
	f := start(t, "--access-max-age", "1h", "--max-lag", "1h")
	f.push(f.before)
	f.push(f.after) // for a way back and forth
	l := f.underLoad(t)
	l.disturbed(t,
		fault{"a replica killed and restarted", f.replicaKilled},
		fault{"a primary killed and restarted", f.primaryKilled},
		fault{"a primary killed, and a replica of it without its database", f.databaseLost},
		fault{"a replica's directory deleted and rebuilt", f.replicaDeleted},
		fault{"a replica's file overwritten", func(t *testing.T) time.Duration { return f.replicaOverwritten(t, l) }},
		fault{"an edge killed and restarted", func(t *testing.T) time.Duration { return f.edgeKilled(t, l) }})
}

// TestNoLookupFailsWhileTheCentreIsCutOff cuts the network between one edge and the centre for a minute.
func TestNoLookupFailsWhileTheCentreIsCutOff(t *testing.T) {
	t.Parallel()
	f := start(t, "--access-max-age", "1h", "--max-lag", "1h")
	f.push(f.before)
	f.push(f.after) // for a way back and forth
	l := f.underLoad(t)
	l.disturbed(t, fault{"cut off", func(t *testing.T) time.Duration { return f.cut(t, l) }})
}

// underLoad begins to look up.
func (f *fixture) underLoad(t *testing.T) *traffic {
	l := f.newTraffic(manyAccounts)
	l.start()
	l.through(t, 150)
	return l
}

// disturbed requires that no lookup is wrong through one fault after another, under the same load, so that
// late effects of a fault are found as well. Then it ends the load.
func (l *traffic) disturbed(t *testing.T, faults ...fault) {
	t.Helper()
	for _, fault := range faults {
		if !t.Run(fault.name, func(t *testing.T) { l.rightThrough(t, fault) }) {
			break
		}
	}
	l.end(t)
}

func (l *traffic) rightThrough(t *testing.T, fault fault) {
	phase := l.begin()
	recovery := fault.run(t)
	l.through(t, 100)
	t.Logf("in step after %v; %s", recovery.Round(time.Millisecond), phase.describe())
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.wrong)
}

// rollback goes back to a release, by default the previous one, and returns the time until every edge
// answered from it.
func (f *fixture) rollback(to string) time.Duration {
	f.t.Helper()
	args, env, err := f.PushArgs("")
	require.NoError(f.t, err)
	args = append([]string{"rollback", "--yes"}, args[2:]...)
	if to != "" {
		args = append(args, "--to", to)
	}
	out, err := f.command(args, env).CombinedOutput()
	require.NoError(f.t, err, string(out))
	written := time.Now()
	f.arrived(f.release())
	return time.Since(written)
}

func (f *fixture) pushed(t *testing.T, file string) time.Duration {
	took, arrived, said := f.push(file)
	t.Logf("%v\n%s", took, said)
	return arrived
}

// killedPush kills a push of everything, after more batches each time, until one completes.
func (f *fixture) killedPush(t *testing.T) time.Duration {
	args, env, err := f.PushArgs(f.after)
	require.NoError(t, err)
	f.push(f.whole)
	args = f.confirmed(args, env)
	token, err := f.Token("registry", pki.ReadWrite)
	require.NoError(t, err)
	primary := f.open(f.Primaries["registry"], token)
	half := 0
	for batches := 1; f.pushUntil(t, args, env, primary, batches); batches *= 2 {
		half++
	}
	require.Positive(t, half, "pushes that were killed half-way")
	t.Logf("%d pushes were killed half-way", half)
	return f.pushed(t, f.after)
}

// pushUntil runs a push until the primary has so many of its batches, kills it then, and reports whether
// it did.
func (f *fixture) pushUntil(t *testing.T, args, env []string, primary *sql.DB, batches int) (killed bool) {
	c := f.command(args, env)
	require.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case err := <-ended:
			require.NoError(t, err)
			return false
		case <-time.After(2 * time.Millisecond):
		}
		var written int
		require.NoError(t, primary.QueryRow("SELECT coalesce(max(batch), 0) FROM pushing WHERE release <> ''").Scan(&written))
		if written >= batches {
			killing := c.Process.Kill()
			if errors.Is(killing, os.ErrProcessDone) { // it ended just before
				require.NoError(t, <-ended)
				return false
			}
			require.NoError(t, killing)
			return <-ended != nil
		}
	}
}

// follows waits until the edges are in step, and returns the time that took. Then it waits until a
// write at the primary is visible at every edge.
func (f *fixture) follows() time.Duration {
	f.t.Helper()
	back := time.Now()
	f.inStep()
	took := time.Since(back)
	f.rollback(f.releases()[1].ID) // back and forth: the release changes each time
	f.inStep()
	return took
}

func (f *fixture) replicaKilled(t *testing.T) time.Duration {
	for _, database := range pki.Databases {
		r := f.Edges[0].Replicas[database]
		r.Kill()
		require.NoError(t, r.Start())
	}
	return f.follows()
}

func (f *fixture) primaryKilled(t *testing.T) time.Duration {
	for _, database := range pki.Databases {
		p := f.Primaries[database]
		p.Kill()
		require.NoError(t, p.Start())
		token, err := f.Token(database, pki.ReadWrite)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, p.Await(ctx, token))
	}
	return f.follows()
}

// databaseLost makes a replica lose its database, which sqld.Server repairs by itself.
func (f *fixture) databaseLost(t *testing.T) time.Duration {
	again := func() int { return strings.Count(f.log.String(), "lost its database, and is started again") }
	before := again()
	token, err := f.Token("registry", pki.ReadWrite)
	require.NoError(t, err)
	sqldtest.LoseDatabase(t, f.Primaries["registry"], token, f.Edges[0].Replicas["registry"].Dir, f.log)
	took := f.follows()
	require.Greater(t, again(), before)
	return took
}

func (f *fixture) replicaDeleted(t *testing.T) time.Duration {
	for _, database := range pki.Databases {
		r := f.Edges[1].Replicas[database]
		r.Kill()
		require.NoError(t, os.RemoveAll(r.Dir))
		require.NoError(t, r.Start())
	}
	return f.follows()
}

// replicaOverwritten overwrites most of an edge's registry, which the replica then copies anew. Lookups of
// what was there fail meanwhile.
func (f *fixture) replicaOverwritten(t *testing.T, l *traffic) time.Duration {
	e := f.Edges[1]
	l.down.Store(e.Name, true)
	defer l.down.Delete(e.Name)
	for _, suffix := range []string{"", "-wal"} {
		file, err := os.OpenFile(sqld.File(e.Replicas["registry"].Dir)+suffix, os.O_RDWR, 0)
		require.NoError(t, err)
		info, err := file.Stat()
		require.NoError(t, err)
		_, err = file.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size()*3/4)), info.Size()/8)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	harmed, failed := time.Now(), time.Now()
	for row := 0; row < 100; row++ { // more than there are connections, each of which may have pages in its cache
		a, err := fetch(http.DefaultClient, e.URL, "/v1/companies/"+l.cins[row%len(l.cins)], l.keys[0])
		if err == nil && a.status == http.StatusOK {
			l.paid.Add(1)
			continue
		}
		require.Less(t, time.Since(harmed), patience)
		row, failed = -1, time.Now()
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("the last lookup failed after %v", failed.Sub(harmed).Round(time.Millisecond))
	return f.follows()
}

// edgeKilled requires that lookups are answered as soon as the edge reports that it is ready: it
// recovers its leases from its journal.
func (f *fixture) edgeKilled(t *testing.T, l *traffic) time.Duration {
	e := f.Edges[0]
	l.down.Store(e.Name, true)
	unknown := l.unknown.Load()
	e.Kill()
	require.Eventually(t, func() bool { return l.unknown.Load() > unknown }, patience, 10*time.Millisecond)
	require.NoError(t, e.Start())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	started := time.Now()
	require.NoError(t, e.Ready(ctx))
	t.Logf("ready %v after its start", time.Since(started).Round(time.Millisecond))
	l.down.Delete(e.Name)
	return f.follows()
}

// cut cuts the network between one edge and the centre. Both edges continue to answer.
func (f *fixture) cut(t *testing.T, l *traffic) time.Duration {
	e := f.Edges[1]
	e.Cut()
	over := time.After(cutFor())
	for waiting := true; waiting; {
		select {
		case <-over:
			waiting = false
		default:
			l.through(t, 20)
		}
	}
	metrics, err := get(e.Metrics, "")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^regedge_unsettled_charges [1-9]`, metrics)
	require.Regexp(t, `(?m)^regedge_writer_unreachable 1`, metrics)
	e.Mend()
	return f.follows()
}

// TestAnEdgeThatFallsBehindIsNotReadyUntilItHasCaughtUp cuts an edge off for longer than
// --max-lag. It still answers requests.
func TestAnEdgeThatFallsBehindIsNotReadyUntilItHasCaughtUp(t *testing.T) {
	t.Parallel()
	f := start(t, "--max-lag", "4s")
	f.push(f.before)
	f.inStep()
	east, west := f.edge("east"), f.edge("west")
	east.Cut()
	require.Eventually(t, func() bool {
		said, err := get(east.URL+"/readyz", "")
		return err == nil && strings.Contains(said, "too far behind")
	}, patience, 50*time.Millisecond)
	require.False(t, ready(east.URL))
	require.Eventually(t, func() bool { return ready(west.URL) }, patience, 50*time.Millisecond, "the other one is not cut off")
	a := f.ask(east, "/v1/companies/"+f.watched()[0], "reg_sandbox_public")
	require.Equal(t, 200, a.status)
	require.Equal(t, f.release(), a.release)
	east.Mend()
	f.inStep()
}

// ready reports whether an edge is ready.
func ready(url string) bool {
	response, err := http.Get(url + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// TestLostPrimariesAreRebuilt deletes the databases of both primaries. The writer fills the access
// database when it starts, an operator pushes the registry, and the replicas copy both again. Until
// then, lookups are answered from the old files.
func TestLostPrimariesAreRebuilt(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.push(f.before)
	l := f.newTraffic(fewAccounts)
	l.start()
	l.through(t, 50)
	for _, database := range pki.Databases {
		p := f.Primaries[database]
		p.Kill()
		require.NoError(t, os.RemoveAll(p.Dir))
		require.NoError(t, p.Start())
		token, err := f.Token(database, pki.ReadWrite)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, p.Await(ctx, token))
	}
	l.through(t, 50)
	f.WriterProcess.Stop()
	require.NoError(t, f.WriterProcess.Start())
	f.migrateRegistry(t)
	l.through(t, 3*int64(load()))
	f.push(f.after)
	f.inStep()
	l.through(t, 50)
	l.end(t)
}

// migrateRegistry creates the schema at the empty primary, as a push does first, and waits until the
// replicas have the first heartbeat after it.
func (f *fixture) migrateRegistry(t *testing.T) {
	t.Helper()
	token, err := f.Token("registry", pki.ReadWrite)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), f.open(f.Primaries["registry"], token), schema.Registry))
	reads, err := f.Token("registry", pki.ReadOnly)
	require.NoError(t, err)
	for _, e := range f.Edges {
		near := f.open(e.Replicas["registry"], reads)
		require.Eventually(t, func() bool {
			var beats int
			return near.QueryRow("SELECT count(*) FROM heartbeat").Scan(&beats) == nil && beats == 1
		}, patience, 20*time.Millisecond)
	}
}
