package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// TestAFreshClusterAndAPushLogNoErrors: the registry is empty until the first push, and a push holds its
// lock for a moment. A primary that is down is an error.
func TestAFreshClusterAndAPushLogNoErrors(t *testing.T) {
	t.Parallel()
	primary := sqldtest.Primary(t)
	db := sqldtest.Open(t, primary)
	log := new(testkit.Log)
	ctx, stop := context.WithCancel(t.Context())
	beats := &Heartbeats{DB: db, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		beats.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	says := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, time.Minute, 10*time.Millisecond, log.String())
	}
	says("no heartbeat yet")
	other := sqldtest.Open(t, primary)
	require.NoError(t, schema.Migrate(ctx, other, schema.Registry))
	says("heartbeats are written")

	tx, err := other.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, "UPDATE heartbeat SET beat = beat")
	require.NoError(t, err)
	time.Sleep(2 * interval)
	require.NoError(t, tx.Rollback())
	var before, now int64
	require.NoError(t, db.QueryRow("SELECT beat FROM heartbeat").Scan(&before))
	require.Eventually(t, func() bool {
		return db.QueryRow("SELECT beat FROM heartbeat").Scan(&now) == nil && now > before
	}, time.Minute, 10*time.Millisecond)
	require.NotContains(t, log.String(), "level=ERROR")
	require.Equal(t, 1, strings.Count(log.String(), "no heartbeat yet"))

	require.Empty(t, beats.Failure())

	primary.Kill()
	says("level=ERROR")
	require.Eventually(t, func() bool { return beats.Failure() == "no heartbeat: the writer's log says why" }, time.Minute, 10*time.Millisecond)
	require.NoError(t, primary.Start())
	require.Eventually(t, func() bool { return strings.Count(log.String(), "heartbeats are written") == 2 }, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return beats.Failure() == "" }, time.Minute, 10*time.Millisecond)
}

func TestALockThatStaysIsAnError(t *testing.T) {
	log := new(testkit.Log)
	h := failureLog{log: slog.New(slog.NewTextHandler(log, nil))}
	at := time.Unix(0, 0)
	h.note(nil, at)
	h.note(errLocked{}, at)
	h.note(errLocked{}, at.Add(lockedPatience-1))
	h.note(errLocked{}, at.Add(2*5*time.Second)) // two transactions of a push, each as long as sqld lets it be
	require.Empty(t, log.String())
	h.note(nil, at)
	h.note(errLocked{}, at.Add(lockedPatience))
	require.Empty(t, log.String(), "it was free meanwhile")
	h.note(errLocked{}, at.Add(2*lockedPatience))
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	h.note(context.DeadlineExceeded, at.Add(3*lockedPatience))
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))

	// A table that was there is missed at once.
	log = new(testkit.Log)
	h = failureLog{log: slog.New(slog.NewTextHandler(log, nil))}
	h.note(nil, at)
	h.note(errMissing{}, at)
	require.Contains(t, log.String(), "level=ERROR")
}

// TestALockLastsSinceItBegan: one before the database was emptied is another.
func TestALockLastsSinceItBegan(t *testing.T) {
	log := new(testkit.Log)
	h := failureLog{log: slog.New(slog.NewTextHandler(log, nil))}
	at := time.Unix(0, 0)
	h.note(errLocked{}, at)
	h.note(errMissing{}, at.Add(time.Second))
	h.note(errLocked{}, at.Add(2*lockedPatience))
	require.NotContains(t, log.String(), "level=ERROR")
	h.note(errLocked{}, at.Add(3*lockedPatience))
	require.Contains(t, log.String(), "level=ERROR")
}

// TestAnEmptyDatabaseHidesNoError, nor does an error before outlast it: readiness says what is so now.
func TestAnEmptyDatabaseHidesNoError(t *testing.T) {
	log := new(testkit.Log)
	h := failureLog{log: slog.New(slog.NewTextHandler(log, nil))}
	at := time.Unix(0, 0)
	for turn := range 2 {
		h.note(context.DeadlineExceeded, at)
		require.Equal(t, "no heartbeat: the writer's log says why", h.why)
		h.note(errMissing{}, at)
		h.note(errMissing{}, at)
		require.Empty(t, h.why, "the primary answers, and waits for its first push")
		require.Equal(t, turn+1, strings.Count(log.String(), "level=ERROR"))
		require.Equal(t, turn+1, strings.Count(log.String(), "no heartbeat yet"))
	}
	h.note(nil, at)
	require.Equal(t, 1, strings.Count(log.String(), "heartbeats are written"))
}

type errLocked struct{}

func (errLocked) Error() string { return "SQLite error: database is locked" }

type errMissing struct{}

func (errMissing) Error() string { return "SQLite error: no such table: heartbeat" }

// TestAHeartbeatGoesBackOnlyToAClockThatWasAhead: else readers would take the copy before for the newer one.
func TestAHeartbeatGoesBackOnlyToAClockThatWasAhead(t *testing.T) {
	const hour, patience = 3600, 600
	type step struct{ second, ahead, want int64 } // in seconds; want is how far ahead the heartbeat is
	for name, steps := range map[string][]step{
		"right":             {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}},
		"ahead for a while": {{0, 0, 0}, {1, hour, hour}, {6, hour, hour}, {7, 0, 0}, {8, 0, 0}},
		"ahead twice":       {{0, 0, 0}, {1, hour, hour}, {2, 2 * hour, 2 * hour}, {3, 1, 1}, {4, hour, hour}, {5, 0, 0}},
		// The clock that was right has been set back: heartbeats stand still until it is right again.
		"behind for a while": {{0, 0, 0}, {10, -hour, -10}, {patience, -hour, -patience}, {patience + 1, 0, 0}},
		"behind twice":       {{0, 0, 0}, {10, -hour, -10}, {100, 0, 0}, {patience + 20, -hour, 80 - patience}, {patience + 21, 0, 0}},
		"behind for good":    {{0, 0, 0}, {10, -hour, -10}, {patience + 10, -hour, -patience - 10}, {patience + 11, -hour, -hour}, {patience + 12, -hour, -hour}},
		"behind for good, then further": {{0, 0, 0}, {10, -hour, -10}, {patience + 10, -hour, -patience - 10}, {patience + 11, -hour, -hour},
			{patience + 12, -2 * hour, -hour - 1}},
		"ahead at the start": {{0, hour, hour}, {1, 0, hour - 1}, {patience + 1, 0, hour - patience - 1}, {patience + 2, 0, 0}},
		"ahead, then behind": {{0, 0, 0}, {1, hour, hour}, {2, -hour, hour - 1}, {3, 0, 0}},
		// Nobody knows which of two times is right that the clock had for as long as the other.
		"back and ahead again": {{0, 0, 0}, {10, -hour, -10}, {100, -hour, -100}, {101, 0, 0}, {110, -hour, -9}, {111, 0, 0}},
		"ahead for long":       {{0, 0, 0}, {5000, 0, 0}, {5001, hour, hour}, {6000, hour, hour}, {6001, 0, 0}},
		// A clock that was set forward soon after the start counts as right, as after a machine has slept.
		"ahead for good": {{0, 0, 0}, {1, hour, hour}, {patience + 2, hour, hour}, {patience + 3, 0, hour - 1}},
		"ahead again":    {{0, 0, 0}, {1, hour, hour}, {2, 0, 0}, {3, hour, hour}, {4, 0, 0}},
		// What was usual before the clock was ahead for long is so again after as long.
		"ahead for longest": {{0, 0, 0}, {5000, 0, 0}, {5001, hour, hour}, {10_100, hour, hour}, {10_101, 0, hour - 1}, {10_200, 0, hour - 100},
			{10_201, hour, hour}, {10_202, 0, 0}},
		"within 5 s":    {{0, 0, 0}, {1, 5, 5}, {2, 0, 4}, {9, 0, 0}},
		"more than 5 s": {{0, 0, 0}, {1, 6, 6}, {2, 0, 0}},
		// One that went back is no leave for the next.
		"back, then behind": {{0, 0, 0}, {1, hour, hour}, {2, 0, 0}, {3, -hour, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := schema.OpenFile(filepath.Join(t.TempDir(), "access.db"))
			require.NoError(t, err)
			defer db.Close()
			require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
			start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
			var clock beatClock
			var before int64
			for _, s := range steps {
				since := time.Duration(s.second) * time.Second
				at := start.Add(since + time.Duration(s.ahead)*time.Second)
				goesBack := clock.mayGoBack(at, since)
				var beat int64
				require.NoError(t, db.QueryRow(putHeartbeat, at.UnixMilli(), goesBack, true).Scan(&beat))
				require.True(t, goesBack || beat > before, "a copy with it is the newer one")
				before = beat
				clock.wrote(time.UnixMilli(beat), at, since, slog.New(slog.DiscardHandler))
				require.WithinDuration(t, start.Add(since+time.Duration(s.want)*time.Second), time.UnixMilli(beat), 20*time.Millisecond,
					"at second %d", s.second)
			}
		})
	}
}

// TestAMachineThatStartsWithAWrongClockIsKnownByTheRunBefore: heartbeats go back as soon as the clock is set
// right. One that was off for long, and is set back then, is not.
func TestAMachineThatStartsWithAWrongClockIsKnownByTheRunBefore(t *testing.T) {
	const minute, month = time.Minute, 30 * 24 * time.Hour
	for name, c := range map[string]struct {
		off, ahead, back time.Duration // since the heartbeat before; at the start; after a minute
		goesBack         bool
	}{
		"a month ahead":                    {minute, month, 0, true},
		"a month ahead, set nearly right":  {minute, month, -minute / 2, true},
		"a month ahead, off for a while":   {30 * minute, month, 0, true},
		"right, and then set back":         {30 * minute, 0, -20 * minute, false},
		"off for a month, and set back":    {month, 0, -10 * 24 * time.Hour, false},
		"a month ahead, set too far back":  {minute, month, -time.Hour, false},
		"a month ahead, not set right yet": {minute, month, month - time.Hour, false},
		"ahead, and off for long":          {5 * time.Hour, month, 0, false},
		"ahead for as long as a start":     {minute, time.Hour - minute, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := schema.OpenFile(filepath.Join(t.TempDir(), "access.db"))
			require.NoError(t, err)
			defer db.Close()
			var clock beatClock
			require.ErrorContains(t, clock.read(t.Context(), db), "no such table")
			require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
			start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
			_, err = db.Exec(putHeartbeat, start.Add(-c.off).UnixMilli(), false, true)
			require.NoError(t, err)
			beat := func(since, off time.Duration) time.Duration {
				require.NoError(t, clock.read(t.Context(), db))
				at := start.Add(since + off)
				var beat int64
				require.NoError(t, db.QueryRow(putHeartbeat, at.UnixMilli(), clock.mayGoBack(at, since), true).Scan(&beat))
				clock.wrote(time.UnixMilli(beat), at, since, slog.New(slog.DiscardHandler))
				return time.UnixMilli(beat).Sub(at)
			}
			require.Zero(t, beat(0, c.ahead))
			beat(minute, c.back)
			require.Equal(t, c.goesBack, beat(minute+time.Second, c.back) == 0)
		})
	}
}

// TestTheClockOfMostEdgesEndsTheWait of a writer that was started with a clock that was ahead: these
// took no heartbeat that was ahead of theirs. A clock that they do not have is not followed back.
func TestTheClockOfMostEdgesEndsTheWait(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for _, agree := range []bool{true, false} {
		start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
		db, err := schema.OpenFile(filepath.Join(t.TempDir(), "access.db"))
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
		_, err = db.Exec(putHeartbeat, start.Add(month).UnixMilli(), false, true) // of the run before, which was ahead
		require.NoError(t, err)
		agrees := false
		clock := beatClock{agrees: func() bool { return agrees }}
		beat := func(second time.Duration, ahead time.Duration) time.Duration {
			since := second * time.Second
			at := start.Add(since + ahead)
			require.NoError(t, clock.read(t.Context(), db))
			var beat int64
			require.NoError(t, db.QueryRow(putHeartbeat, at.UnixMilli(), clock.mayGoBack(at, since), true).Scan(&beat))
			clock.wrote(time.UnixMilli(beat), at, since, slog.New(slog.DiscardHandler))
			return time.UnixMilli(beat).Sub(at)
		}
		require.Zero(t, beat(1, month))
		require.Zero(t, beat(2, month), "the clock that nobody has is followed while it goes on")
		agrees = agree
		require.Greater(t, beat(3, 0), month-time.Minute)
		require.Equal(t, agree, beat(4, 0) == 0)
		require.Equal(t, agree, beat(5, 0) == 0)
	}
}

// TestAClockThatIsBehindIsToldOnce, and when its heartbeats go back.
func TestAClockThatIsBehindIsToldOnce(t *testing.T) {
	log := new(testkit.Log)
	logger := slog.New(slog.NewTextHandler(log, nil))
	var clock beatClock
	at := time.Unix(1_000_000, 0)
	for since := time.Second; since < 2*ClockPatience; since += time.Second {
		if clock.mayGoBack(at, since) {
			clock.wrote(at, at, since, logger)
			break
		}
		clock.wrote(at.Add(time.Hour+time.Second+time.Millisecond), at, since, logger)
	}
	require.Equal(t, 1, strings.Count(log.String(), "behind=1h0m1s"))
	require.Contains(t, log.String(), "taken back\"")
}

// TestWhatIsTakenBackIsToldOnce: the heartbeats after it are as usual.
func TestWhatIsTakenBackIsToldOnce(t *testing.T) {
	log := new(testkit.Log)
	logger := slog.New(slog.NewTextHandler(log, nil))
	var clock beatClock
	start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for since := time.Duration(0); since < 20*time.Second; since += time.Second {
		at := start.Add(since)
		if since == 5*time.Second {
			at = at.Add(time.Hour)
		}
		clock.mayGoBack(at, since)
		clock.wrote(at, at, since, logger)
	}
	require.Equal(t, 1, strings.Count(log.String(), "are taken back\""))
}

// TestNothingIsSaidToBeTakenBackThatIsNot: of a clock that was behind for a while there was nothing ahead, and
// what a clock that was set forward for good has written stays.
func TestNothingIsSaidToBeTakenBackThatIsNot(t *testing.T) {
	for name, off := range map[string]func(since time.Duration) time.Duration{
		"behind for a while": func(since time.Duration) time.Duration {
			if since >= 10*time.Second && since < 20*time.Second {
				return -time.Minute
			}
			return 0
		},
		"set forward for good": func(since time.Duration) time.Duration {
			if since >= 2*time.Second {
				return time.Hour
			}
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(testkit.Log)
			logger := slog.New(slog.NewTextHandler(log, nil))
			var clock beatClock
			start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
			var beat time.Time
			for since := time.Duration(0); since < 2*ClockPatience; since += time.Second {
				at := start.Add(since + off(since))
				require.False(t, clock.mayGoBack(at, since), "after %v", since)
				if beat = beat.Add(time.Millisecond); at.After(beat) {
					beat = at
				}
				clock.wrote(beat, at, since, logger)
			}
			require.NotContains(t, log.String(), "are taken back\"")
		})
	}
}

// TestARefusedTokenIsNamed, since its owner, not the database's, must act.
func TestARefusedTokenIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer server.Close()
	db, err := libsql.Open(server.URL, "expired")
	require.NoError(t, err)
	defer db.Close()
	log := new(testkit.Log)
	ctx, stop := context.WithCancel(t.Context())
	beats := &Heartbeats{DB: db, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		beats.Run(ctx)
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "level=ERROR") }, time.Minute, time.Millisecond)
	stop()
	<-ended
	require.Contains(t, log.String(), "the primary refuses the writer's token")
	require.Equal(t, "the primary refuses the writer's token: no heartbeat", beats.Failure(), "as readiness says")
}

// TestALostTableIsTold, also of a database that had heartbeats: its owner makes it again. Other failures are not.
func TestALostTableIsTold(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "access.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	ctx, stop := context.WithCancel(t.Context())
	lost := make(chan struct{})
	beats := &Heartbeats{DB: db, Now: time.Now, Log: slog.New(slog.DiscardHandler), Lost: func() { stop(); close(lost) }}
	beaten := func() bool {
		var beat int64
		return db.QueryRow("SELECT beat FROM heartbeat").Scan(&beat) == nil
	}
	go beats.Run(ctx)
	require.Eventually(t, beaten, time.Minute, time.Millisecond)
	_, err = db.Exec("DROP TABLE heartbeat")
	require.NoError(t, err)
	select {
	case <-lost:
	case <-time.After(time.Minute):
		require.FailNow(t, "nobody was told")
	}
	require.False(t, noTable(nil) || noTable(context.DeadlineExceeded))
}

// TestADatabaseThatIsBeingFilledHasNoFirstHeartbeat: with that, readers take it. One that has heartbeats goes on with them.
func TestADatabaseThatIsBeingFilledHasNoFirstHeartbeat(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "access.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	var filled atomic.Bool
	log := new(testkit.Log)
	var looks atomic.Int64
	isFilled := func() bool { looks.Add(1); return filled.Load() }
	beats := &Heartbeats{DB: db, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil)), Filled: isFilled}
	run := func() (end func()) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			beats.Run(ctx)
		}()
		return func() { stop(); <-ended }
	}
	newest := func() (beat int64) {
		require.NoError(t, db.QueryRow("SELECT coalesce(max(beat), 0) FROM heartbeat").Scan(&beat))
		return beat
	}
	end := run()
	require.Eventually(t, func() bool { return beats.Failure() == "the writer is filling it" }, time.Minute, time.Millisecond)
	before, since := looks.Load(), time.Now()
	time.Sleep(3 * fillPause)
	require.LessOrEqual(t, looks.Load()-before, 2*int64(time.Since(since)/fillPause)+5, "it is not looked at without a pause")
	require.Zero(t, newest())
	filled.Store(true)
	require.Eventually(t, func() bool { return newest() > 0 && beats.Failure() == "" }, time.Minute, time.Millisecond)
	end()
	for _, line := range []string{"the database is being filled", "heartbeats are written"} {
		require.Equal(t, 1, strings.Count(log.String(), line), log.String())
	}
	require.NotContains(t, log.String(), "level=ERROR")

	written := newest()
	filled.Store(false)
	end = run()
	require.Eventually(t, func() bool { return newest() > written }, time.Minute, time.Millisecond)
	end()

	// While it is filled, it is asked for the heartbeat of another writer as often as one is written.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := make(chan time.Time, 1)
	tick <- time.Now()
	beats.awaitFilled(ctx, tick)
	require.NoError(t, ctx.Err())
}

// TestATokenThatIsRefusedLaterIsNamed: the primary was down before, which is not why there is no heartbeat now.
func TestATokenThatIsRefusedLaterIsNamed(t *testing.T) {
	log := new(testkit.Log)
	h := failureLog{log: slog.New(slog.NewTextHandler(log, nil))}
	refused := fmt.Errorf("beat: %w", libsql.ErrUnauthorized)
	at := time.Unix(1000, 0)
	for range 2 {
		h.note(context.DeadlineExceeded, at)
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	for range 2 {
		h.note(refused, at)
	}
	require.Equal(t, 2, strings.Count(log.String(), "level=ERROR"))
	require.Equal(t, "the primary refuses the writer's token: no heartbeat", h.why)
	h.note(context.DeadlineExceeded, at)
	require.Equal(t, 3, strings.Count(log.String(), "level=ERROR"), log.String())
	require.NotContains(t, h.why, "token")
	h.note(errLocked{}, at)
	require.Equal(t, 3, strings.Count(log.String(), "level=ERROR"))
}

// TestAPrimaryThatStartsAgainIsNoError: it does when a push hands it a whole file. One that stays away is an error, and so is
// one that was never reached.
func TestAPrimaryThatStartsAgainIsNoError(t *testing.T) {
	log := new(testkit.Log)
	h := failureLog{log: slog.New(slog.NewTextHandler(log, nil))}
	at := time.Unix(1000, 0)
	gone := fmt.Errorf("beat: %w", &url.Error{Op: "Post", URL: "http://127.0.0.1:1/v2/pipeline", Err: syscall.ECONNREFUSED})
	h.note(nil, at)
	h.note(gone, at.Add(time.Second))
	for _, last := range []string{"error code 404: Namespace `default` doesn't exist", "error code 503: Namespace store has shutdown"} {
		h.note(errors.New(last), at.Add(time.Second)) // of one that is about to end
	}
	h.note(gone, at.Add(restartPatience-1))
	require.Empty(t, log.String())
	require.Empty(t, h.why)
	h.note(nil, at.Add(restartPatience))
	require.Empty(t, log.String())
	h.note(gone, at.Add(2*restartPatience))
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	require.NotEmpty(t, h.why)
	h.note(gone, at.Add(3*restartPatience))
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	h.note(nil, at.Add(3*restartPatience+1))
	require.Equal(t, 1, strings.Count(log.String(), "heartbeats are written"))

	h.note(errLocked{}, at.Add(4*restartPatience)) // a locked one answers
	h.note(gone, at.Add(5*restartPatience-1))
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	h.note(nil, at.Add(5*restartPatience))

	first := failureLog{log: h.log} // the first push finds no tables
	first.note(errMissing{}, at)
	first.note(gone, at.Add(restartPatience-1))
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	first.note(errMissing{}, at.Add(restartPatience))
	first.note(nil, at.Add(restartPatience+1))

	hanging := failureLog{log: h.log}
	hanging.note(nil, at)
	hanging.note(&url.Error{Op: "Post", URL: "http://127.0.0.1:1/v2/pipeline", Err: context.DeadlineExceeded}, at.Add(timeout))
	require.Equal(t, 2, strings.Count(log.String(), "level=ERROR"), "its first call has taken long enough")

	never := failureLog{log: h.log}
	never.note(gone, at)
	require.Equal(t, 3, strings.Count(log.String(), "level=ERROR"))

	// Of one that refuses the token before it is gone, readiness says what is so now.
	h.note(nil, at)
	h.note(errors.New("error code 401: refused"), at.Add(time.Second))
	require.Equal(t, "the primary refuses the writer's token: no heartbeat", h.why)
	h.note(gone, at.Add(2*time.Second))
	require.Equal(t, "no heartbeat: the writer's log says why", h.why)
}

// TestAHeartbeatOfTheFutureIsTold by the writer that finds it.
func TestAHeartbeatOfTheFutureIsTold(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "access.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec(putHeartbeat, time.Now().Add(time.Hour).UnixMilli(), false, true)
	require.NoError(t, err)
	log := new(testkit.Log)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		(&Heartbeats{DB: db, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))}).Run(ctx)
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "the clock is behind the heartbeats") }, time.Minute, time.Millisecond)
	stop()
	<-ended
}

// TestADatabaseThatHangsIsAnError: an operator is told, though no call comes back by itself.
func TestADatabaseThatHangsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(testkit.Log)
		db := testkit.HangingDB()
		defer db.Close()
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		go (&Heartbeats{DB: db, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))}).Run(ctx)
		time.Sleep(timeout + time.Millisecond)
		synctest.Wait()
		require.Contains(t, log.String(), `msg="no heartbeat"`)

		log = new(testkit.Log)
		short, endShort := context.WithTimeout(t.Context(), timeout/2)
		defer endShort()
		(&Heartbeats{DB: db, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))}).Run(short)
		require.Empty(t, log.String(), "the end of the writer is no error")
	})
}
