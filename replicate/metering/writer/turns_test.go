package writer

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

// projectorOf is a projector that does not run, on files in a folder of the test.
func projectorOf(t *testing.T, jitter func(time.Duration) time.Duration) *projector {
	t.Helper()
	open := func(database schema.Database) *sql.DB {
		db, err := schema.OpenFile(filepath.Join(t.TempDir(), string(database)+".db"))
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		require.NoError(t, schema.Migrate(t.Context(), db, database))
		return db
	}
	config := Config{Ledger: open(schema.Ledger), Access: open(schema.Access), Logger: slog.New(slog.DiscardHandler)}
	return newProjector(config, jitter)
}

// TestAnUpdateWaitsOnceForAServerThatHangs: the next one finds out whether it answers again.
func TestAnUpdateWaitsOnceForAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := testkit.HangingDB()
		defer ledger.Close()
		p := newProjector(Config{Ledger: ledger, Access: ledger, Logger: slog.New(slog.DiscardHandler)}, nil)
		p.migrated = true
		p.add(changedRow{table: keyTable, id: int64(1)})
		began := time.Now()
		require.ErrorIs(t, p.update(t.Context()), context.DeadlineExceeded)
		require.Equal(t, rowLimit, time.Since(began))
		changes, _ := p.behind()
		require.Equal(t, 2, changes, "the row and the comparison")
	})
}

// TestWhatTakesAccessAwayIsProjectedFirst, however late it came.
func TestWhatTakesAccessAwayIsProjectedFirst(t *testing.T) {
	p := projectorOf(t, nil)
	for _, statement := range []string{
		`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'scale', 0, 0), (2, '', '', 'scale', 0, 0)`,
		`INSERT INTO api_key (id, account, name, hash, shown, created_at, revoked_at) VALUES (1, 1, '', x'01', '', 0, 5), (2, 1, '', x'02', '', 0, NULL)`,
	} {
		_, err := p.ledger.Exec(statement)
		require.NoError(t, err)
	}
	for _, statement := range []string{
		`INSERT INTO plan (id, api_access, per_minute, monthly_volume, email, phone) VALUES ('scale', 1, 1, 1, 1, 1)`,
		`INSERT INTO account (id, plan, suspended) VALUES (1, 'scale', 0)`,
		`INSERT INTO api_key (id, account, hash) VALUES (1, 1, x'01')`,
		`CREATE TABLE done (what TEXT)`,
		`CREATE TRIGGER dropped AFTER DELETE ON api_key BEGIN INSERT INTO done VALUES ('key ' || OLD.id || ' revoked'); END`,
		`CREATE TRIGGER put AFTER INSERT ON api_key BEGIN INSERT INTO done VALUES ('key ' || NEW.id || ' added'); END`,
		`CREATE TRIGGER made AFTER INSERT ON account BEGIN INSERT INTO done VALUES ('account ' || NEW.id || ' added'); END`,
	} {
		_, err := p.access.Exec(statement)
		require.NoError(t, err)
	}
	added := p.add(changedRow{table: keyTable, id: int64(2)})
	p.add(changedRow{table: accountTable, id: int64(2)})
	revoked := p.add(changedRow{table: keyTable, id: int64(1), takes: true})
	require.NoError(t, p.projectPending(t.Context()))
	for _, row := range []*pendingRow{added, revoked} {
		select {
		case <-row.projected:
		default:
			require.Fail(t, "a caller still waits")
		}
	}
	var order string
	require.NoError(t, p.access.QueryRow(`SELECT group_concat(what, ', ') FROM (SELECT what FROM done ORDER BY rowid)`).Scan(&order))
	require.Equal(t, "key 1 revoked, account 2 added, key 2 added", order)
	changes, _ := p.behind()
	require.Equal(t, 1, changes, "the comparison at the start is left")
}

// TestAChangeBeforeTheFirstComparisonIsNoFailure: accounts that were made while a new access database was away refer to plans that it
// does not have yet.
func TestAChangeBeforeTheFirstComparisonIsNoFailure(t *testing.T) {
	p := projectorOf(t, nil)
	_, err := p.ledger.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'starter', 0, 0)`)
	require.NoError(t, err)
	added := p.add(changedRow{table: accountTable, id: int64(1)})
	require.NoError(t, p.update(t.Context()))
	<-added.projected
	changes, _ := p.behind()
	require.Zero(t, changes)
}

// TestAComparisonThatFailedIsMadeAgain, and counts as a change that is missing until then.
func TestAComparisonThatFailedIsMadeAgain(t *testing.T) {
	p := projectorOf(t, nil)
	_, err := p.access.Exec(`ALTER TABLE plan RENAME TO away`)
	require.NoError(t, err)
	require.Error(t, p.compareIfAsked(t.Context()))
	changes, _ := p.behind()
	require.Equal(t, 1, changes)
	_, err = p.access.Exec(`ALTER TABLE away RENAME TO plan`)
	require.NoError(t, err)
	require.NoError(t, p.compareIfAsked(t.Context()))
	changes, age := p.behind()
	require.Zero(t, changes)
	require.Zero(t, age)
	var plans int
	require.NoError(t, p.access.QueryRow(`SELECT count(*) FROM plan`).Scan(&plans))
	require.Positive(t, plans)
}

// TestAnAccessDatabaseThatBeganAnewIsFilled: until the writer's restart it stayed without tables, and edges without changes.
func TestAnAccessDatabaseThatBeganAnewIsFilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := projectorOf(t, func(time.Duration) time.Duration { return time.Millisecond })
	ledger, before := p.ledger, p.access
	require.NoError(t, p.update(ctx))
	p.access = OpenAccess(t, t.TempDir())
	_, err := ledger.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'starter', 0, 0)`)
	require.NoError(t, err)
	added := p.add(changedRow{table: accountTable, id: int64(1)})
	done := make(chan struct{})
	go func() { defer close(done); p.run(ctx) }()
	select {
	case <-added.projected:
	case <-time.After(time.Minute):
		require.FailNow(t, "the row was not written")
	}
	require.Eventually(t, func() bool { changes, _ := p.behind(); return changes == 0 }, time.Minute, time.Millisecond)
	cancel()
	<-done
	want, have := contents(t, ledger, p.access)
	require.Equal(t, want, have)

	p.access = before // without a change
	_, err = before.Exec(`DELETE FROM plan`)
	require.NoError(t, err)
	(&Writer{projector: p}).AccessLost()
	<-p.asked
	require.NoError(t, p.update(t.Context()))
	want, have = contents(t, ledger, before)
	require.Equal(t, want, have)
}

// TestPausesOfAProjectorThatFailsAreBounded: the access database is served some seconds after it is back.
func TestPausesOfAProjectorThatFailsAreBounded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var pauses []time.Duration
	p := projectorOf(t, func(pause time.Duration) time.Duration {
		if pauses = append(pauses, pause); len(pauses) == 8 {
			cancel()
		}
		return 0
	})
	require.NoError(t, p.access.Close())
	p.run(ctx)
	require.Equal(t, []time.Duration{leastPause, 2 * leastPause, 4 * leastPause, 8 * leastPause, mostPause, mostPause, mostPause, mostPause}, pauses)
}

// TestAMessageIsHeldForSecondsAtMost, whatever its edge asks for.
func TestAMessageIsHeldForSecondsAtMost(t *testing.T) {
	for asked, held := range map[time.Duration]time.Duration{5 * time.Second: 5 * time.Second, 24 * time.Hour: maxHold} {
		synctest.Test(t, func(t *testing.T) {
			w := &Writer{ops: make(chan *operation, maxGroup), ended: make(chan struct{})}
			began := time.Now()
			reply, err := w.hold(t.Context(), "one", &syncproto.Sync{HoldMillis: asked.Milliseconds()})
			require.NoError(t, err)
			require.Nil(t, reply)
			require.Equal(t, held, time.Since(began))
		})
	}
}

// TestACallerLearnsWhatBecameOfItsChange: it is told that a change is not made only if it will not be.
func TestACallerLearnsWhatBecameOfItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Writer{ops: make(chan *operation, maxGroup), ended: make(chan struct{})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { // the loop begins with it and takes long
			op := <-w.ops
			require.True(t, op.claim())
			time.Sleep(5 * time.Second)
			op.done <- nil
		}()
		require.NoError(t, w.submit(ctx, &operation{}))

		late, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		op := &operation{}
		require.ErrorIs(t, w.submit(late, op), ErrUnavailable)
		require.False(t, op.claim(), "nobody makes it later")

		hangs, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		<-w.ops                           // the second one, which its caller has given up
		go func() { (<-w.ops).claim() }() // and never answers
		began := time.Now()
		require.ErrorContains(t, w.submit(hangs, &operation{}), "its outcome is unknown")
		require.Equal(t, time.Second+outcomeLimit, time.Since(began))
	})
}

// TestAComparisonWhoseRowsAreRefusedIsMadeAgain: the access database lacks them still.
func TestAComparisonWhoseRowsAreRefusedIsMadeAgain(t *testing.T) {
	p := projectorOf(t, nil)
	_, err := p.access.Exec(`CREATE TRIGGER refuse BEFORE INSERT ON plan WHEN NEW.id = 'scale' BEGIN SELECT raise(ABORT, 'no'); END`)
	require.NoError(t, err)
	require.ErrorContains(t, p.compareIfAsked(t.Context()), "put plan scale")
	require.True(t, p.compare)
	_, err = p.access.Exec(`DROP TRIGGER refuse`)
	require.NoError(t, err)
	require.NoError(t, p.compareIfAsked(t.Context()))
	require.False(t, p.compare)
}

// TestAComparisonThatIsAskedForMeanwhileIsMade after the one under way, which may have read before.
func TestAComparisonThatIsAskedForMeanwhileIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := projectorOf(t, nil)
		p.access.SetMaxOpenConns(1)
		conn, err := p.access.Conn(t.Context())
		require.NoError(t, err)
		result := make(chan error, 1)
		go func() { result <- p.compareIfAsked(t.Context()) }()
		synctest.Wait()
		changes, _ := p.behind()
		require.Equal(t, 1, changes, "it counts while it goes on")
		p.compareAll()
		require.NoError(t, conn.Close())
		require.NoError(t, <-result)
		require.True(t, p.compare)
	})
}

// TestPausesBeginAnewAfterASuccess: the next failure may be a short one.
func TestPausesBeginAnewAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pauses []time.Duration
		var noted sync.Mutex
		p := projectorOf(t, func(pause time.Duration) time.Duration {
			noted.Lock()
			defer noted.Unlock()
			pauses = append(pauses, pause)
			return pause
		})
		so := func() []time.Duration {
			noted.Lock()
			defer noted.Unlock()
			return slices.Clone(pauses)
		}
		rename := func(from, to string) {
			_, err := p.access.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to)
			require.NoError(t, err)
		}
		rename("plan", "away")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { p.run(ctx); close(ended) }()
		time.Sleep(2 * time.Second)
		rename("away", "plan")
		time.Sleep(10 * time.Second)
		require.Equal(t, []time.Duration{leastPause, 2 * leastPause, 4 * leastPause}, so())
		rename("plan", "away")
		p.compareAll()
		time.Sleep(leastPause / 2)
		require.Equal(t, leastPause, so()[len(so())-1])
		cancel()
		<-ended
	})
}

// TestTwoPagesAreComparedAsFarAsBothGo: rows behind would be taken for missing, and deleted.
func TestTwoPagesAreComparedAsFarAsBothGo(t *testing.T) {
	page := func(n int, last int64) []row {
		rows := make([]row, n)
		rows[n-1][0] = last
		return rows
	}
	full, part := page(comparedRows, 50), page(comparedRows-1, 40)
	require.Equal(t, int64(50), wholeUpTo(full, part))
	require.Equal(t, int64(50), wholeUpTo(part, full))
	require.Equal(t, int64(50), wholeUpTo(full, page(comparedRows, 60)))
	require.Equal(t, int64(50), wholeUpTo(page(comparedRows, 60), full))
	require.Nil(t, wholeUpTo(part, part))
}
