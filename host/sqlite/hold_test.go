package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
	"regedge/schema"
)

// pushed is a registry's file that is being pushed to, and its reader.
type pushed struct {
	*sqlite.Replica
	t    *testing.T
	path string
	db   *sql.DB
	log  bytes.Buffer
}

const shownConnections = 3

func startPushed(t *testing.T) *pushed {
	t.Helper()
	p := &pushed{t: t, path: filepath.Join(t.TempDir(), "data")}
	var err error
	p.db, err = schema.OpenFile(p.path)
	require.NoError(t, err)
	t.Cleanup(func() { p.db.Close() })
	require.NoError(t, schema.Migrate(t.Context(), p.db, schema.Registry))
	p.exec("INSERT INTO heartbeat (id, beat) VALUES (1, unixepoch() * 1000)")
	p.exec("INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('one', 1, 0, 0, 0, 0, 0)")
	for i := range 10 {
		p.exec(fmt.Sprintf("INSERT INTO pincode (pincode, district) VALUES ('%d', 'one')", i))
	}
	p.open(nil)
	return p
}

func (p *pushed) open(endpoint sqlite.Endpoint) {
	p.t.Helper()
	var err error
	p.Replica, err = sqlite.OpenReplica(sqlite.ReplicaConfig{
		Database: schema.Registry, File: p.path, Endpoint: endpoint, Connections: shownConnections, ReadTx: time.Millisecond, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { p.Replica.Close() })
}

func (p *pushed) exec(statement string) {
	p.t.Helper()
	_, err := p.db.Exec(statement)
	require.NoError(p.t, err)
}

// begin claims the database as a push does.
func (p *pushed) begin() {
	p.t.Helper()
	p.exec("INSERT INTO pushing (id, release, back, token, claimed, batch) VALUES (1, 'two', 0, 't', 't', 0)")
}

func (p *pushed) write(pincode int) {
	p.t.Helper()
	p.exec(fmt.Sprintf("BEGIN; UPDATE pushing SET dirty = 1, batch = batch + 1; UPDATE pincode SET district = 'two' WHERE pincode = '%d'; COMMIT", pincode))
}

func (p *pushed) finish() {
	p.t.Helper()
	p.exec("BEGIN; UPDATE pincode SET district = 'two'; UPDATE pushing SET release = '', dirty = 0;" +
		"INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('two', 2, 0, 0, 0, 0, 0); COMMIT")
}

const selectShown = `SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1), group_concat(DISTINCT district) FROM pincode`

// shown reads the release and the districts at every connection at once, each in one statement.
func (p *pushed) shown() (list []string) {
	p.t.Helper()
	var lock sync.Mutex
	var wait sync.WaitGroup
	for range shownConnections {
		wait.Go(func() {
			var result handler.Result
			err := p.Query(context.Background(), selectShown, nil, &result)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				list = append(list, err.Error())
				return
			}
			list = append(list, result.Values[0].Text+": "+result.Values[1].Text)
		})
	}
	wait.Wait()
	return list
}

func (p *pushed) requireShown(want string) {
	p.t.Helper()
	for _, got := range p.shown() {
		require.Equal(p.t, want, got)
	}
}

// eventually waits until every connection shows a state: one keeps its transaction for ReadTx.
func (p *pushed) eventually(want string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		return !slices.ContainsFunc(p.shown(), func(got string) bool { return got != want })
	}, testTimeout, time.Millisecond)
}

func TestEveryAnswerIsOfOneReleaseDuringAPush(t *testing.T) {
	p := startPushed(t)
	p.requireShown("one: one")
	p.begin()
	require.NoError(t, p.Refresh())
	for i := range 5 {
		p.write(i)
		time.Sleep(3 * time.Millisecond) // longer than ReadTx
		p.requireShown("one: one")
		p.exec("UPDATE heartbeat SET beat = unixepoch('subsec') * 1000")
		require.NoError(t, p.Refresh())
		age, known := p.Age()
		require.True(t, known)
		require.Less(t, age, 30*time.Second, "the newest heartbeat tells the age")
	}
	p.finish()
	p.requireShown("one: one")
	require.NoError(t, p.Refresh())
	p.eventually("two: two")
	require.NotContains(t, p.log.String(), "mix")

	var busy, log, moved int
	require.Eventually(t, func() bool {
		return p.db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved) == nil && busy == 0
	}, testTimeout, 10*time.Millisecond, "nothing is held any more")
}

func TestAnEdgeThatMeetsAPushInItsMiddleSaysSo(t *testing.T) {
	p := startPushed(t)
	p.begin()
	p.write(1)
	for range 3 {
		require.NoError(t, p.Refresh())
	}
	require.Eventually(t, func() bool { return slices.Contains(p.shown(), "one: one,two") }, testTimeout, time.Millisecond)
	require.Equal(t, 1, bytes.Count(p.log.Bytes(), []byte("may mix two releases")))
	p.finish()
	require.NoError(t, p.Refresh())
	p.eventually("two: two")
}
