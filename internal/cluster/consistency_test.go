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
	// groups is the number of groups of records, of which each transaction changes one.
	groups = 50
	// fileReaders is how many readers each replica's file has beside the edge.
	fileReaders = 2
)

// selectDays reads the oldest and the newest date of some records of a group, which are on many pages
// of two tables. Each transaction sets them all to one day, so that the four dates are always equal.
const selectDays = `SELECT c.low, c.high, d.low, d.high FROM
	(SELECT min(as_of) low, max(as_of) high FROM company WHERE cin IN
		(SELECT cin FROM numbered WHERE rowid IN (?1, ?1 + 50, ?1 + 500, ?1 + 1000, ?1 + 3000))) c,
	(SELECT min(as_of) low, max(as_of) high FROM director WHERE din IN
		(SELECT din FROM numbered_director WHERE rowid IN (?1, ?1 + 50, ?1 + 500, ?1 + 1000, ?1 + 3000))) d`

// TestReadsAreConsistentDuringFastWrites reads the replicas' files while the primary commits as fast
// as it can: lookups at the edges, whose answers are checked, and readers that check each read with
// selectDays.
func TestReadsAreConsistentDuringFastWrites(t *testing.T) {
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
	require.NoError(t, libsql.Commit(t.Context(), primary, setDay("rowid > 0", 0)))
	f.rollForward(t, primary)
	l.start()
	phase := l.begin()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers sync.WaitGroup
	var checker readChecker
	for _, e := range f.Edges {
		file := followFile(t, e.Replicas["registry"])
		for range fileReaders {
			readers.Go(func() { checker.readAgain(ctx, file) })
		}
	}
	length := 3 * time.Second
	if soak() {
		length = 10 * time.Minute
	}
	writes := 0
	for until := time.Now().Add(length); time.Now().Before(until); writes++ {
		group := fmt.Sprintf("rowid %% %d = %d", groups, writes%groups)
		require.NoError(t, libsql.Commit(t.Context(), primary, setDay(group, writes/groups+1)))
	}
	cancel()
	readers.Wait()
	t.Logf("%d transactions, %d reads beside them; %s", writes, checker.reads.Load(), phase.describe())
	require.Positive(t, checker.reads.Load())
	require.Empty(t, checker.wrong)
	l.end(t)
	f.intact(t, token)
}

// setDay sets the records of a group in both tables to a day.
func setDay(group string, day int) []libsql.Statement {
	date := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, day).Format(time.DateOnly)
	return []libsql.Statement{
		{SQL: "UPDATE company SET as_of = ?1 WHERE cin IN (SELECT cin FROM numbered WHERE " + group + ")", Args: []any{date}},
		{SQL: "UPDATE director SET as_of = ?1 WHERE din IN (SELECT din FROM numbered_director WHERE " + group + ")", Args: []any{date}},
	}
}

// rollForward waits until the replicas have caught up with the primary.
func (f *fixture) rollForward(t *testing.T, primary *sql.DB) {
	t.Helper()
	var date string
	var others [3]string
	require.NoError(t, primary.QueryRow(selectDays, 1).Scan(&date, &others[0], &others[1], &others[2]))
	for _, e := range f.Edges {
		file := followFile(t, e.Replicas["registry"])
		require.Eventually(t, func() bool {
			var near handler.Result
			err := file.Query(t.Context(), selectDays, []handler.Value{{Kind: handler.Integer, Int: 1}}, &near)
			return err == nil && near.Values[0].Text == date && near.Values[3].Text == date
		}, patience, 10*time.Millisecond)
	}
}

// followFile opens a replica's file as an edge does, without an endpoint to fall back to.
func followFile(t *testing.T, of *sqld.Server) *sqlite.Replica {
	t.Helper()
	opened, err := sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Registry, File: sqld.File(of.Dir), Connections: fileReaders, Now: time.Now,
	})
	require.NoError(t, err)
	t.Cleanup(func() { opened.Close() })
	return opened
}

// readChecker collects the results of all readers.
type readChecker struct {
	reads atomic.Int64
	mu    sync.Mutex
	wrong []string
}

// readAgain reads until ctx is done or a read mixes two states.
func (c *readChecker) readAgain(ctx context.Context, file *sqlite.Replica) {
	var result handler.Result
	for ctx.Err() == nil {
		args := []handler.Value{{Kind: handler.Integer, Int: int64(1 + rand.IntN(groups))}}
		if err := file.Query(ctx, selectDays, args, &result); err != nil {
			if ctx.Err() == nil {
				c.fail(err.Error())
			}
			return
		}
		c.reads.Add(1)
		first := result.Values[0].Text
		for _, v := range result.Values {
			if v.Text != first || first == "" {
				c.fail(fmt.Sprintf("a read mixes two states: %v", result.Values))
				return
			}
		}
	}
}

func (c *readChecker) fail(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, what)
}

// intact runs SQLite's integrity check at the primary, and on the files of primary and replicas. A
// replica would forward it to its primary.
func (f *fixture) intact(t *testing.T, token string) {
	t.Helper()
	var said string
	require.NoError(t, f.open(f.Primaries["registry"], token).QueryRow("PRAGMA integrity_check").Scan(&said))
	require.Equal(t, "ok", strings.ToLower(said))
	for _, s := range []*sqld.Server{f.Primaries["registry"], f.Edges[0].Replicas["registry"], f.Edges[1].Replicas["registry"]} {
		db, err := schema.OpenReadOnly(sqld.File(s.Dir))
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&said))
		require.Equal(t, "ok", said)
	}
}
