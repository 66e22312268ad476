package writer

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/registry/libsql"
)

// heldOperation is a message of an edge that waits for news.
func heldOperation(edge string, s *syncproto.Sync) *operation {
	return &operation{edge: edge, hold: s, step: step(syncproto.Message{Sync: s}), done: make(chan error, 1)}
}

// TestAMessageWaitsWhileThereIsNoNews, and no longer; one of an edge that is not there does not.
func TestAMessageWaitsWhileThereIsNoNews(t *testing.T) {
	const now = 1_790_000_000_000
	l := ledger.New(1)
	l.SetPlan(now, ledger.Plan{ID: "scale"})
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(now, 1, 10, ledger.EntryBought, ""))
	require.NoError(t, l.AddEdge("one"))
	session := l.Hello(now, l.Edge("one"), &syncproto.Hello{Boot: 1}).Session
	w := &Writer{ledger: l}
	require.False(t, w.due(heldOperation("one", &syncproto.Sync{Session: session})))
	want := syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Target: 1, Urgent: true}
	l.Sync(now, l.Edge("one"), &syncproto.Sync{Session: session, Wants: []syncproto.Want{want}})
	require.True(t, w.due(heldOperation("one", &syncproto.Sync{Session: session})))
	require.True(t, w.due(heldOperation("two", &syncproto.Sync{Session: session})))
}

// TestAFileThatCannotBeLookedAtIsNotAway: a writer would book nothing any more
// after one bad moment of its disk.
func TestAFileThatCannotBeLookedAtIsNotAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	was, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, same(path, was))
	require.NoError(t, same(filepath.Join(path, "below a file"), was)) // ENOTDIR
	require.ErrorIs(t, same(path+".gone", was), errAway)
	require.NoError(t, same(path+".gone", nil))
}

// TestALogThatSQLiteMadeAnewIsNoOther: it removes the log with the last connection.
func TestALogThatSQLiteMadeAnewIsNoOther(t *testing.T) {
	w, _ := openUnrun(t)
	commit := func() {
		t.Helper()
		require.NoError(t, w.commitBeat(t.Context(), w.now()))
	}
	commit()
	log := w.location.path + "-wal"
	require.FileExists(t, log)
	require.NoError(t, w.release())
	w.config.Ledger.SetMaxIdleConns(-1)
	require.NoFileExists(t, log)
	require.NoError(t, os.WriteFile(log+".between", nil, 0o600)) // so that the next one has another inode
	commit()
	require.FileExists(t, log)
	commit()
	require.NoError(t, w.release())
}

// TestHeldMessagesAreAnsweredWhenTheLedgerIsGone, but for those whose callers have gone.
func TestHeldMessagesAreAnsweredWhenTheLedgerIsGone(t *testing.T) {
	waits, gone := heldOperation("one", &syncproto.Sync{}), heldOperation("two", &syncproto.Sync{})
	gone.claim()
	w := &Writer{held: []*operation{gone, waits}}
	w.releaseNews()
	require.ErrorIs(t, <-waits.done, ErrUnavailable)
	require.Empty(t, gone.done)
	require.Empty(t, w.held)
}

// TestHeldMessagesAreCommittedTogether: news for many edges, as of a large plan, cost one write.
func TestHeldMessagesAreCommittedTogether(t *testing.T) {
	w, _ := openUnrun(t)
	defer w.release()
	withEdge(t, w)
	groups := func() float64 { return scrapeWriter(t, w)["regedge_writer_groups_total"] }
	before := groups()
	var held []*operation
	for range 3 {
		held = append(held, heldOperation("one", &syncproto.Sync{Session: 1})) // its session is over
	}
	w.held = append(w.held, held...)
	w.releaseNews()
	for _, op := range held {
		require.NoError(t, <-op.done)
	}
	require.Equal(t, before+1, groups())
}

// TestGroupsAreCountedByTheirOutcome: what the ledger refuses is no failure of the ledger.
func TestGroupsAreCountedByTheirOutcome(t *testing.T) {
	p := projectorOf(t, nil)
	m := newMetrics(p.ledger, 7, p)
	m.group(3, nil)
	m.group(2, nil)
	m.group(1, ErrUnavailable)
	_, refused := p.ledger.Exec(`INSERT INTO plan (id) VALUES (NULL)`)
	m.group(1, refused)
	recorder := httptest.NewRecorder()
	m.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		"regedge_writer_generation 7\n", "regedge_writer_groups_total 4\n", "regedge_writer_messages_total 7\n",
		"regedge_writer_failed_groups_total 1\n", "regedge_writer_access_pending 1\n",
	} {
		require.Contains(t, recorder.Body.String(), line)
	}
}

// broken is a transport to a writer that takes requests and answers none.
type broken struct{}

func (broken) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).WroteHeaders()
	return nil, io.ErrUnexpectedEOF
}

// TestPausesBetweenAttemptsGrowToAFewSeconds, and end with the time that the caller gave.
func TestPausesBetweenAttemptsGrowToAFewSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pauses []time.Duration
		client := NewClient("http://writer", "token", &http.Client{Transport: broken{}}).
			Retrying(12*time.Second, func(_ error, pause time.Duration) { pauses = append(pauses, pause) })
		_, err := client.AddNode(t.Context(), "one")
		require.ErrorIs(t, err, ErrUncertain)
		require.Equal(t, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second}, pauses)

		pauses = nil
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = client.AddNode(ended, "one")
		require.Error(t, err)
		require.Empty(t, pauses)
	})
}

func TestTheAddressOfAConnectionHasNoPort(t *testing.T) {
	for remote, address := range map[string]string{
		"192.0.2.1:443": "192.0.2.1", "[2001:db8::1]:443": "2001:db8::1", "pipe": "pipe",
	} {
		require.Equal(t, address, Connection(&http.Request{RemoteAddr: remote}))
	}
}

// TestAnAccountIsShownWithWhatIsLeftAndLeased.
func TestAnAccountIsShownWithWhatIsLeftAndLeased(t *testing.T) {
	w, client, _ := runForRoles(t)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = w.config.Ledger.Exec(`UPDATE account SET bought = 100, compensated = 10, spent = 20, lost = 3, leased = 7`)
	require.NoError(t, err)
	a, err = client.Account(t.Context(), a.ID)
	require.NoError(t, err)
	require.EqualValues(t, 80, a.Left)
	require.EqualValues(t, 87, a.Balance)
}

func TestLimitsOfAPlanAreNoNonsense(t *testing.T) {
	_, client, _ := runForRoles(t)
	for _, p := range []Plan{
		{ID: "own", APIAccess: true, PerMinute: -1}, {ID: "own", MonthlyVolume: -1}, {ID: "own", APIAccess: true},
		{ID: "own", PerMinute: -1, MonthlyVolume: -1}, {ID: "Not A Name"}, {ID: strings.Repeat("x", 64)},
	} {
		_, err := client.SetPlan(t.Context(), p)
		require.ErrorIs(t, err, ErrMalformed, p)
	}
	for _, p := range []Plan{{ID: "own", APIAccess: true, PerMinute: 1}, {ID: "own"}, {ID: "own", APIAccess: true, PerMinute: 1, MonthlyVolume: 1}, {ID: strings.Repeat("x", 63)}} {
		set, err := client.SetPlan(t.Context(), p)
		require.NoError(t, err, p)
		require.Equal(t, p, set)
	}
}

// TestACommitThatFailsHasTheProjectionCompared: it may have been made all the same, and edges would not
// know of it.
func TestACommitThatFailsHasTheProjectionCompared(t *testing.T) {
	w, client, _ := runForRoles(t)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = w.config.Access.Exec(`DELETE FROM account`)
	require.NoError(t, err)
	_, err = w.config.Ledger.Exec(`CREATE TRIGGER refuse BEFORE UPDATE OF posted ON account BEGIN SELECT raise(ABORT, 'no'); END`)
	require.NoError(t, err)
	suspended := true
	_, err = client.ChangeAccount(t.Context(), a.ID, AccountChange{Suspended: &suspended})
	require.Error(t, err)
	require.Eventually(t, func() bool {
		var n int
		return w.config.Access.QueryRow(`SELECT count(*) FROM account`).Scan(&n) == nil && n == 1
	}, time.Minute, 5*time.Millisecond)
}

// TestAnActIsNotedWithoutWhatCannotBeKept: at most so many bytes, and never half a character.
func TestAnActIsNotedWithoutWhatCannotBeKept(t *testing.T) {
	require.Len(t, truncateDetail(strings.Repeat("x", maxDetail)), maxDetail)
	require.Len(t, truncateDetail(strings.Repeat("x", maxDetail+1)), maxDetail)
	require.Len(t, truncateDetail("x"+strings.Repeat("é", maxDetail)), maxDetail-1)
}

// TestARestoreIsLoggedWhenItBeginsAndEnds, and once.
func TestARestoreIsLoggedWhenItBeginsAndEnds(t *testing.T) {
	var log bytes.Buffer
	l := ledger.New(9)
	require.NoError(t, l.AddEdge("one"))
	require.NoError(t, l.AddEdge("two"))
	w := &Writer{ledger: l, config: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	w.logAwaited()
	require.Empty(t, log.String())
	l.Restore()
	w.logAwaited()
	w.logAwaited()
	require.Equal(t, 1, strings.Count(log.String(), "came back from a backup: nothing"))
	require.Contains(t, log.String(), `edges="one, two"`)
	for _, name := range []string{"one", "two"} {
		require.NoError(t, l.Retire(1, name, false))
	}
	w.logAwaited()
	require.Contains(t, log.String(), "leases are granted again")
	w.ledger = nil
	w.logAwaited()
	require.Equal(t, 2, strings.Count(log.String(), "\n"))
}

// TestAFencedGenerationIsSeenBeforeAnAnswer: the writer asks the ledger again after a second, and when
// its clock was set back.
func TestAFencedGenerationIsSeenBeforeAnAnswer(t *testing.T) {
	p := projectorOf(t, nil)
	var generation uint64
	require.NoError(t, p.ledger.QueryRow(`SELECT generation FROM writer`).Scan(&generation))
	w := &Writer{config: Config{Ledger: p.ledger}, generation: generation, confirmed: 5000}
	_, err := p.ledger.Exec(`UPDATE writer SET generation = generation + 1`)
	require.NoError(t, err)
	require.NoError(t, w.confirm(t.Context(), 5000))
	require.NoError(t, w.confirm(t.Context(), 5999))
	require.ErrorIs(t, w.confirm(t.Context(), 6000), ErrFenced)
	require.True(t, w.fenced.Load())
	require.ErrorIs(t, w.confirm(t.Context(), 4999), ErrFenced)
	_, err = p.ledger.Exec(`UPDATE writer SET generation = ?`, int64(generation))
	require.NoError(t, err)
	require.NoError(t, w.confirm(t.Context(), 7000))
	require.EqualValues(t, 7000, w.confirmed)
	require.NoError(t, p.ledger.Close())
	require.NoError(t, w.confirm(t.Context(), 7999))
	require.ErrorIs(t, w.confirm(t.Context(), 8000), ErrUnavailable)
}

// TestAnswersToOldChangesAreDropped when later ones are kept.
func TestAnswersToOldChangesAreDropped(t *testing.T) {
	w, _, clock := runForRoles(t)
	change := func(key string) {
		r := httptest.NewRequest(http.MethodPost, "/v1/accounts", strings.NewReader(`{"name":"made-up","plan":"starter"}`))
		r.Header.Set("Authorization", "Bearer "+firstOperator)
		r.Header.Set(IdempotencyHeader, key)
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, r)
		require.Equal(t, http.StatusOK, recorder.Code, recorder.Body)
	}
	kept := func() (n int) {
		require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM idempotent_change`).Scan(&n))
		return n
	}
	change("the-first-of-many-changes")
	clock.pass(answerKept)
	change("another-of-many-changes")
	require.Equal(t, 1, kept())
	clock.pass(answerKept - time.Millisecond)
	change("the-third-of-many-changes")
	require.Equal(t, 2, kept())

	_, err := w.config.Ledger.Exec(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO idempotent_change (id, request, at, answer) SELECT randomblob(32), x'', 1, x'' FROM n`, 2*maxAnswersDropped)
	require.NoError(t, err)
	before := kept()
	change("no-change-drops-them-all-at-once")
	require.Equal(t, before+1-maxAnswersDropped, kept())
}

// TestAClockThatJumpsMakesNoChangeTwice: the same call comes again after the clock was set by a year, either way, and
// other changes have dropped what is too old.
func TestAClockThatJumpsMakesNoChangeTwice(t *testing.T) {
	for _, jump := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		w, clock := openUnrun(t)
		var elapsed atomic.Int64
		w.config.Elapsed = func() time.Duration { return time.Duration(elapsed.Load()) }
		w.began = clock.now()
		runToEnd(t, w)
		client := clientOf(w, firstOperator)
		account, err := client.AddAccount(t.Context(), "made-up", "", "starter")
		require.NoError(t, err)
		buy := func(key string) {
			_, err := client.ChangeCredits(WithIdempotencyKey(t.Context(), key), account.ID, CreditChange{Amount: 100})
			require.NoError(t, err)
		}
		buy("a-purchase-that-is-retried")
		clock.pass(jump)
		buy("another-purchase-after-it")
		buy("a-purchase-that-is-retried")
		found, err := client.Account(t.Context(), account.ID)
		require.NoError(t, err)
		require.EqualValues(t, 200, found.Balance)

		elapsed.Store(int64(answerKept))
		buy("a-purchase-that-is-retried")
		found, err = client.Account(t.Context(), account.ID)
		require.NoError(t, err)
		require.EqualValues(t, 300, found.Balance, "it is kept for seven days")
	}
}

// TestARestartAfterTheClockWasSetMakesNoChangeTwice: the writer had started with a clock that was wrong by a year, either way, and the
// change was made after the clock was set right.
func TestARestartAfterTheClockWasSetMakesNoChangeTwice(t *testing.T) {
	for _, set := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		w, clock := openUnrun(t)
		w.config.Elapsed = func() time.Duration { return 0 }
		clock.pass(set)
		var account Account
		buy := func(t *testing.T) {
			client := clientOf(w, firstOperator)
			if account.ID == 0 {
				var err error
				account, err = client.AddAccount(t.Context(), "made-up", "", "starter")
				require.NoError(t, err)
			}
			_, err := client.ChangeCredits(WithIdempotencyKey(t.Context(), "a-purchase-that-is-retried"), account.ID, CreditChange{Amount: 100})
			require.NoError(t, err)
			found, err := client.Account(t.Context(), account.ID)
			require.NoError(t, err)
			require.EqualValues(t, 100, found.Balance)
		}
		t.Run("before", func(t *testing.T) { runToEnd(t, w); buy(t) })
		require.NoError(t, w.Close())
		var err error
		w, err = Open(t.Context(), w.config)
		require.NoError(t, err)
		t.Run("after", func(t *testing.T) { runToEnd(t, w); buy(t) })
	}
}

// TestAKeyIsForgottenWithItsAnswer: what has it then is another change, whatever its body.
func TestAKeyIsForgottenWithItsAnswer(t *testing.T) {
	w, client, clock := runForRoles(t)
	first, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	status := func(name string) int {
		r := httptest.NewRequest(http.MethodPatch, fmt.Sprintf("/v1/accounts/%d", first.ID), strings.NewReader(`{"name":"`+name+`"}`))
		r.Header.Set("Authorization", "Bearer "+firstOperator)
		r.Header.Set(IdempotencyHeader, "the-key-of-several-changes")
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, r)
		return recorder.Code
	}
	require.Equal(t, http.StatusOK, status("one"))
	clock.pass(answerKept - time.Second)
	require.Equal(t, http.StatusUnprocessableEntity, status("two"))
	clock.pass(time.Second)
	require.Equal(t, http.StatusOK, status("two"))
}

func TestIdempotencyKeysHaveABoundedForm(t *testing.T) {
	for key, valid := range map[string]bool{
		strings.Repeat("x", 15): false, strings.Repeat("x", 16): true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false,
		"with a space in it": false, "!!!!!!!!~~~~~~~~": true, "not-ascii-é-not-ascii": false, "control-\x7f-control-": false, "": false,
	} {
		require.Equal(t, valid, validIdempotencyKey(key), "%q", key)
	}
}

// TestAProjectorSaysOnceThatItFailsAndThatItIsBack.
func TestAProjectorSaysOnceThatItFailsAndThatItIsBack(t *testing.T) {
	var log bytes.Buffer
	p := &projector{log: slog.New(slog.NewTextHandler(&log, nil))}
	lines := func() int { return strings.Count(log.String(), "\n") }
	p.logOutcome(nil)
	require.Zero(t, lines())
	p.logOutcome(errors.New("down"))
	p.logOutcome(errors.New("down"))
	require.Equal(t, 1, lines())
	p.logOutcome(errors.New("hangs"))
	require.Equal(t, 2, lines())
	require.Equal(t, "the writer's log says why", p.why())
	p.logOutcome(errors.New("error code 401: Unauthorized"))
	require.Equal(t, "its primary refuses the writer's token", p.why())
	p.logOutcome(nil)
	require.Empty(t, p.why())
	p.logOutcome(nil)
	require.Equal(t, 4, lines())
	require.Contains(t, log.String(), "up to date again")
	p.logOutcome(errors.New("hangs"))
	require.Equal(t, 5, lines())
	p.logOutcome(fmt.Errorf("read it: %w", libsql.ErrUnauthorized))
	require.Equal(t, "its primary refuses the writer's token", p.why())
}

// TestTheAgeOfWhatTheProjectionMisses: the oldest change counts.
func TestTheAgeOfWhatTheProjectionMisses(t *testing.T) {
	p := projectorOf(t, nil)
	require.NoError(t, p.compareIfAsked(t.Context()))
	changes, age := p.behind()
	require.Zero(t, changes)
	require.Zero(t, age)
	p.add(changedRow{table: keyTable, id: int64(1)}).since = time.Now().Add(-time.Hour)
	p.add(changedRow{table: keyTable, id: int64(2)})
	changes, age = p.behind()
	require.Equal(t, 2, changes)
	require.GreaterOrEqual(t, age, time.Hour)
	p.compareAll()
	changes, _ = p.behind()
	require.Equal(t, 3, changes)
	since := p.since
	p.compareAll()
	require.Equal(t, since, p.since, "it is asked for since the first time")
	p.since = time.Now().Add(-2 * time.Hour)
	_, age = p.behind()
	require.GreaterOrEqual(t, age, 2*time.Hour, "a comparison counts too")
}

// TestALedgersFileHasEverythingOnceNobodyReadsItsLog, which may be lost: until then it is tried again.
func TestALedgersFileHasEverythingOnceNobodyReadsItsLog(t *testing.T) {
	w, _ := openUnrun(t)
	defer w.release()
	var log bytes.Buffer
	w.config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	reader, err := w.config.Ledger.Conn(t.Context())
	require.NoError(t, err)
	defer reader.Close()
	_, err = reader.ExecContext(t.Context(), `BEGIN; SELECT count(*) FROM attempt`)
	require.NoError(t, err)
	tx, end, err := w.begin(t.Context())
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), `INSERT INTO attempt (subject, since, count) VALUES ('x', 0, 1)`)
	require.NoError(t, errors.Join(err, tx.Commit()))
	end()
	_, err = w.conn.ExecContext(t.Context(), `PRAGMA busy_timeout = 0`)
	require.NoError(t, err)
	w.away.Store(true)
	w.everySecond(t.Context())
	require.False(t, w.saved)
	_, err = reader.ExecContext(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	w.everySecond(t.Context())
	require.True(t, w.saved)
	require.Nil(t, w.ledger, "nothing is answered from it any more")
	w.everySecond(t.Context())
	require.Equal(t, 1, strings.Count(log.String(), "is in the ledger's file"), "once")
}

// TestAfterAFailedTransactionTheLedgerIsNotAnsweredFrom: one that is away, or that another writer has.
func TestAfterAFailedTransactionTheLedgerIsNotAnsweredFrom(t *testing.T) {
	w, _ := openUnrun(t)
	defer w.release()
	require.NotNil(t, w.ledger)
	require.ErrorIs(t, w.outcome(t.Context(), fmt.Errorf("write it: %w", errAway)), ErrUnavailable)
	require.Nil(t, w.ledger)
	require.False(t, w.fenced.Load())
	require.ErrorIs(t, w.outcome(t.Context(), fmt.Errorf("write it: %w", ledger.ErrFenced)), ErrFenced)
	require.True(t, w.fenced.Load())
}

// TestATokenEndsWithItsMakersAccess, but not later than it has ended.
func TestATokenEndsWithItsMakersAccess(t *testing.T) {
	p := projectorOf(t, nil)
	_, err := p.ledger.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'scale', 0, 0);
		INSERT INTO owner_token (account, name, hash, role, made_by, created_at, ends_at) VALUES
		(1, 'ended', x'01', 'read', 'ann@example.com', 0, 5), (1, 'good', x'02', 'read', 'ann@example.com', 0, 100), (1, 'of bob', x'03', 'read', 'bob@example.com', 0, 100)`)
	require.NoError(t, err)
	tx, err := p.ledger.Begin()
	require.NoError(t, err)
	require.NoError(t, EndOwnerTokensOf(t.Context(), tx, 50, "ann@example.com"))
	require.NoError(t, tx.Commit())
	var ends string
	require.NoError(t, p.ledger.QueryRow(`SELECT group_concat(name || ' ' || ends_at, ', ' ORDER BY hash) FROM owner_token`).Scan(&ends))
	require.Equal(t, "ended -5, good -50, of bob 100", ends)
}

// TestAGroupIsBoundedAndTakesWhatWaits.
func TestAGroupIsBoundedAndTakesWhatWaits(t *testing.T) {
	w := &Writer{ops: make(chan *operation, 2*maxGroup)}
	require.Len(t, w.gather(&operation{}), 1)
	for range maxGroup + 5 {
		w.ops <- &operation{}
	}
	require.Len(t, w.gather(&operation{}), maxGroup)
	require.Len(t, w.gather(&operation{}), 7)
}

// TestAChangeWhoseAnswerCannotBeReadIsNotMade: nobody could tell its caller about it.
func TestAChangeWhoseAnswerCannotBeReadIsNotMade(t *testing.T) {
	w, _, _ := runForRoles(t)
	failed := errors.New("no answer")
	err := w.submit(t.Context(), &operation{
		change: func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO attempt (subject, since, count) VALUES ('x', 0, 1)`)
			return err
		},
		finish: func(context.Context, *sql.Tx, int64, *ledger.Ledger) error { return failed },
	})
	require.ErrorIs(t, err, failed)
	var n int
	require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM attempt`).Scan(&n))
	require.Zero(t, n)
}
