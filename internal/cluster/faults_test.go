package cluster_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit/sqldtest"
	"regedge/schema"
)

// TestNoLookupFailsWhileThePartsOfTheClusterDo breaks one part after another under load.
// The load is one for all of them; what each left behind is found at the end at the
// latest. Each fault returns how long the edges took to be in step again once the broken
// part was back.
func TestNoLookupFailsWhileThePartsOfTheClusterDo(t *testing.T) {
	t.Parallel()
	w := start(t, "--access-max-age", "1h", "--max-lag", "1h")
	w.push(w.before)
	l := w.newTraffic(manyAccounts)
	l.start()
	l.through(t, 150)
	for _, fault := range []struct {
		name string
		run  func(*testing.T) time.Duration
	}{
		{"a push of what changed", func(t *testing.T) time.Duration { return w.pushed(t, w.after) }},
		{"a push of everything", func(t *testing.T) time.Duration { return w.pushed(t, w.whole) }},
		{"a rollback", func(*testing.T) time.Duration { return w.rollback("") }},
		{"a push killed half-way and resumed", w.killedPush},
		{"a replica killed and restarted", w.replicaKilled},
		{"a primary killed and restarted", w.primaryKilled},
		{"a primary killed, and a replica of it without its database", w.databaseLost},
		{"a replica's directory deleted and rebuilt", w.replicaDeleted},
		{"an edge killed and restarted", func(t *testing.T) time.Duration { return w.edgeKilled(t, l) }},
		{"the network to the centre cut", func(t *testing.T) time.Duration { return w.cut(t, l) }},
	} {
		ok := t.Run(fault.name, func(t *testing.T) {
			phase := l.begin()
			recovery := fault.run(t)
			l.through(t, 100)
			t.Logf("in step after %v; %s", recovery.Round(time.Millisecond), phase.describe())
			l.mu.Lock()
			defer l.mu.Unlock()
			require.Empty(t, l.wrong)
		})
		if !ok {
			break
		}
	}
	l.end(t)
}

// rollback goes back to a release, or to the one before, and returns how long it took to
// reach every edge.
func (w *world) rollback(to string) time.Duration {
	w.t.Helper()
	args, env, err := w.PushArgs("")
	require.NoError(w.t, err)
	args = append([]string{"rollback"}, args[2:]...)
	if to != "" {
		args = append(args, "--to", to)
	}
	out, err := w.command(args, env).CombinedOutput()
	require.NoError(w.t, err, string(out))
	written := time.Now()
	w.arrived(w.release())
	return time.Since(written)
}

func (w *world) pushed(t *testing.T, file string) time.Duration {
	took, arrived, said := w.push(file)
	t.Logf("%v\n%s", took, said)
	return arrived
}

// killedPush kills a push of everything at a moment later each time, until one is done.
func (w *world) killedPush(t *testing.T) time.Duration {
	args, env, err := w.PushArgs(w.after)
	require.NoError(t, err)
	w.push(w.whole)
	token, err := w.Token("registry", pki.ReadOnly)
	require.NoError(t, err)
	primary := w.open(w.Primaries["registry"], token)
	half := 0
	for wait := 30 * time.Millisecond; ; wait += wait / 2 {
		c := w.command(args, env)
		require.NoError(t, c.Start())
		time.AfterFunc(wait, func() { c.Process.Kill() })
		if c.Wait() == nil {
			break
		}
		var unfinished int
		require.NoError(t, primary.QueryRow("SELECT count(*) FROM pushing WHERE release <> '' AND batch > 0").Scan(&unfinished))
		half += unfinished
	}
	require.Positive(t, half, "pushes that were killed half-way")
	t.Logf("%d pushes were killed half-way", half)
	return w.pushed(t, w.after)
}

// follows waits until the edges are in step again, and returns how long that took; then
// it waits until a write at the primary is seen through every edge.
func (w *world) follows() time.Duration {
	w.t.Helper()
	back := time.Now()
	w.inStep()
	took := time.Since(back)
	w.rollback(w.releases()[1].ID) // back and forth: the release changes each time
	w.inStep()
	return took
}

func (w *world) replicaKilled(t *testing.T) time.Duration {
	for _, database := range pki.Databases {
		r := w.Edges[0].Replicas[database]
		r.Kill()
		require.NoError(t, r.Start())
	}
	return w.follows()
}

func (w *world) primaryKilled(t *testing.T) time.Duration {
	for _, database := range pki.Databases {
		p := w.Primaries[database]
		p.Kill()
		require.NoError(t, p.Start())
		token, err := w.Token(database, pki.ReadOnly)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, p.Await(ctx, token))
	}
	return w.follows()
}

// databaseLost leaves the keeper of a replica to bring it back.
func (w *world) databaseLost(t *testing.T) time.Duration {
	again := func() int { return strings.Count(w.log.String(), "lost its database, and is started again") }
	before := again()
	token, err := w.Token("registry", pki.ReadOnly)
	require.NoError(t, err)
	sqldtest.LoseDatabase(t, w.Primaries["registry"], token, w.Edges[0].Replicas["registry"].Dir, w.log)
	took := w.follows()
	require.Greater(t, again(), before)
	return took
}

func (w *world) replicaDeleted(t *testing.T) time.Duration {
	for _, database := range pki.Databases {
		r := w.Edges[1].Replicas[database]
		r.Kill()
		require.NoError(t, os.RemoveAll(r.Dir))
		require.NoError(t, r.Start())
	}
	return w.follows()
}

// edgeKilled expects lookups to be answered from the moment on at which the edge says
// that it is ready: its leases come back from its journal.
func (w *world) edgeKilled(t *testing.T, l *traffic) time.Duration {
	e := w.Edges[0]
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
	return w.follows()
}

// cut cuts one edge off; both go on answering.
func (w *world) cut(t *testing.T, l *traffic) time.Duration {
	e := w.Edges[1]
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
	return w.follows()
}

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

// TestLostPrimariesAreMadeAgain loses the disks of both primaries. The writer fills access
// again when it starts, an operator pushes the registry, and the replicas begin anew by
// themselves; lookups go on from the old files meanwhile, however long the registry takes
// to be filled.
func TestLostPrimariesAreMadeAgain(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.push(w.before)
	l := w.newTraffic(fewAccounts)
	l.start()
	l.through(t, 50)
	for _, database := range pki.Databases {
		p := w.Primaries[database]
		p.Kill()
		require.NoError(t, os.RemoveAll(p.Dir))
		require.NoError(t, p.Start())
		token, err := w.Token(database, pki.ReadOnly)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, p.Await(ctx, token))
	}
	l.through(t, 50)
	w.WriterProcess.Stop()
	require.NoError(t, w.WriterProcess.Start())
	w.beginRegistry(t)
	l.through(t, 3*int64(load()))
	w.push(w.after)
	w.inStep()
	l.through(t, 50)
	l.end(t)
}

// beginRegistry gives an empty primary its schema, as a push does first, and waits until
// the replicas have that and the heartbeats after it.
func (w *world) beginRegistry(t *testing.T) {
	t.Helper()
	token, err := w.Token("registry", pki.ReadWrite)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), w.open(w.Primaries["registry"], token), schema.Registry))
	for _, e := range w.Edges {
		near := w.open(e.Replicas["registry"], token)
		require.Eventually(t, func() bool {
			var beats int
			return near.QueryRow("SELECT count(*) FROM heartbeat").Scan(&beats) == nil && beats == 1
		}, patience, 20*time.Millisecond)
	}
}
