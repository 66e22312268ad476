package cluster_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/pki"
	"regedge/host/sqlite"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

const (
	// hurriedGroups is in how many groups the writer in a hurry changes the records.
	hurriedGroups = 50
	// hurriedReaders is how many readers each replica's file has beside the edge.
	hurriedReaders = 2
)

// agree reads rows of two tables and of many pages, which one transaction always changes
// together.
const agree = `SELECT c.low, c.high, d.low, d.high FROM
	(SELECT min(as_of) low, max(as_of) high FROM company WHERE cin IN
		(SELECT cin FROM numbered WHERE rowid IN (?1, ?1 + 50, ?1 + 500, ?1 + 1000, ?1 + 3000))) c,
	(SELECT min(as_of) low, max(as_of) high FROM director WHERE din IN
		(SELECT din FROM numbered_director WHERE rowid IN (?1, ?1 + 50, ?1 + 500, ?1 + 1000, ?1 + 3000))) d`

// TestReadsAreRightBesideAWriterInAHurry reads through the files while the primary writes
// as fast as it can: lookups at the edges, whose answers are known, and beside them readers
// that hold an invariant on every read.
func TestReadsAreRightBesideAWriterInAHurry(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.push(f.before)
	l := f.newTraffic(fewAccounts)
	token, err := f.Token("registry", pki.ReadWrite)
	require.NoError(t, err)
	primary := f.open(f.Primaries["registry"], token)
	f.alter(t, schema.Registry, "CREATE TABLE numbered (cin TEXT NOT NULL) STRICT",
		"INSERT INTO numbered (cin) SELECT cin FROM company",
		"CREATE TABLE numbered_director (din TEXT NOT NULL) STRICT", "INSERT INTO numbered_director (din) SELECT din FROM director")
	require.NoError(t, libsql.Commit(t.Context(), primary, hurried("rowid > 0", 0)))
	f.rollForward(t, primary)
	l.start()
	phase := l.begin()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers sync.WaitGroup
	var judge readJudge
	for _, e := range f.Edges {
		file := followFile(t, e.Replicas["registry"])
		for range hurriedReaders {
			readers.Go(func() { judge.readAgain(ctx, file) })
		}
	}
	length := 3 * time.Second
	if soak() {
		length = 10 * time.Minute
	}
	writes := 0
	for until := time.Now().Add(length); time.Now().Before(until); writes++ {
		group := fmt.Sprintf("rowid %% %d = %d", hurriedGroups, writes%hurriedGroups)
		require.NoError(t, libsql.Commit(t.Context(), primary, hurried(group, writes/hurriedGroups+1)))
	}
	cancel()
	readers.Wait()
	t.Logf("%d transactions, %d reads beside them; %s", writes, judge.reads.Load(), phase.describe())
	require.Positive(t, judge.reads.Load())
	require.Empty(t, judge.wrong)
	l.end(t)
	f.intact(t, token)
}

// hurried changes the records of a group in both tables to a day.
func hurried(group string, day int) []libsql.Statement {
	date := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, day).Format(time.DateOnly)
	return []libsql.Statement{
		{SQL: "UPDATE company SET as_of = ?1 WHERE cin IN (SELECT cin FROM numbered WHERE " + group + ")", Args: []any{date}},
		{SQL: "UPDATE director SET as_of = ?1 WHERE din IN (SELECT din FROM numbered_director WHERE " + group + ")", Args: []any{date}},
	}
}

// rollForward waits until the replicas have what the primary has.
func (f *fixture) rollForward(t *testing.T, primary *sql.DB) {
	t.Helper()
	var date string
	var others [3]string
	require.NoError(t, primary.QueryRow(agree, 1).Scan(&date, &others[0], &others[1], &others[2]))
	for _, e := range f.Edges {
		file := followFile(t, e.Replicas["registry"])
		require.Eventually(t, func() bool {
			var near handler.Result
			err := file.Query(t.Context(), agree, []handler.Value{{Kind: handler.Integer, Int: 1}}, &near)
			return err == nil && near.Values[0].Text == date && near.Values[3].Text == date
		}, patience, 10*time.Millisecond)
	}
}

// followFile reads a replica by its file, as an edge does, without an endpoint to fall
// back to.
func followFile(t *testing.T, of *sqld.Server) *sqlite.Replica {
	t.Helper()
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Registry, File: sqld.File(of.Dir), Connections: hurriedReaders, Now: time.Now,
	})
	require.NoError(t, err)
	t.Cleanup(func() { opened.Close() })
	return opened
}

// readJudge judges the reads of many readers.
type readJudge struct {
	reads atomic.Int64
	mu    sync.Mutex
	wrong []string
}

// readAgain reads until ctx is done or a read is wrong: its rows don't agree.
func (j *readJudge) readAgain(ctx context.Context, file *sqlite.Replica) {
	var result handler.Result
	for ctx.Err() == nil {
		args := []handler.Value{{Kind: handler.Integer, Int: int64(1 + rand.IntN(hurriedGroups))}}
		if err := file.Query(ctx, agree, args, &result); err != nil {
			if ctx.Err() == nil {
				j.blame(err.Error())
			}
			return
		}
		j.reads.Add(1)
		first := result.Values[0].Text
		for _, v := range result.Values {
			if v.Text != first || first == "" {
				j.blame(fmt.Sprintf("a read mixes two states: %v", result.Values))
				return
			}
		}
	}
}

func (j *readJudge) blame(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wrong = append(j.wrong, what)
}

// intact has SQLite check the primary, the replicas, and the replicas' files as an edge
// opens them.
func (f *fixture) intact(t *testing.T, token string) {
	t.Helper()
	for _, s := range []*sqld.Server{f.Primaries["registry"], f.Edges[0].Replicas["registry"], f.Edges[1].Replicas["registry"]} {
		var said string
		require.NoError(t, f.open(s, token).QueryRow("PRAGMA integrity_check").Scan(&said))
		require.Equal(t, "ok", strings.ToLower(said))
		db, err := schema.OpenFile(sqld.File(s.Dir), true)
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&said))
		require.Equal(t, "ok", said)
	}
}
