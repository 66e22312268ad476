package notice_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promtest "github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/noticetest"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/notice"
)

// silent carries nothing: the tests here look at what is found and stored.
type silent struct{}

func (silent) Carry(_ context.Context, list []notice.Notice) []notice.Outcome {
	return make([]notice.Outcome, len(list))
}

var (
	byWebhook = notice.Way{Channel: notice.Webhook, Carrier: silent{}}
	byMail    = notice.Way{Channel: notice.Mail, Carrier: silent{}}
)

func TestWhatAnOwnerIsTold(t *testing.T) {
	o := noticetest.New(t, byWebhook, byMail)
	volume := func(kind, subject, window, spent int64) {
		o.Exec(`INSERT OR REPLACE INTO pool (kind, subject, time_window, compensated, spent, lost) VALUES (?, ?, ?, 0, ?, 0)`, kind, subject, window, spent)
	}
	ms := o.Now.UnixMilli()
	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 9999)
	require.NoError(t, o.Sender.Look(t.Context()))
	require.Zero(t, o.Count(`SELECT count(*) FROM notice`), "who has no target is told nothing")
	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 7999)
	volume(int64(syncproto.NotFound), 5, int64(syncproto.Day(ms)), 99)
	o.SetWebhook(1, "https://example.com", 50, "")
	o.SetMail(1, 50)
	o.SetMail(3, 50)
	hook, ada, bob := o.Webhook(1), o.Mail(1), o.Mail(3)
	require.Equal(t, []string{notice.LowBalance}, o.Look(bob), "the other account never had 50")
	look := func() []string {
		t.Helper()
		told := o.Look(hook)
		require.Equal(t, told, o.Look(ada), "mail tells the same")
		return told
	}
	require.Empty(t, look())
	o.Exec(`UPDATE plan SET monthly_volume = 0`)
	require.Empty(t, look(), "of a plan without calls, none are used")
	o.Exec(`UPDATE plan SET monthly_volume = 10000`)

	o.Exec(`UPDATE account SET spent = 50`)
	require.Empty(t, look(), "as much as the threshold is enough")
	o.Exec(`UPDATE account SET lost = 1`)
	require.Equal(t, []string{notice.LowBalance}, look(), "what was lost is gone as well")
	require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE target = ? AND instr(body, '"data":{"balance":49,"threshold":50}')`, hook.ID))
	o.Now = o.Now.Add(time.Second)
	require.Empty(t, look(), "once")
	o.SetWebhook(1, "https://example.com/", 50, "")
	o.SetMail(1, 50)
	require.Empty(t, look(), "nor for another address")
	o.Now = o.Now.Add(time.Second)
	o.SetWebhook(1, "https://example.com", 60, "")
	o.SetMail(1, 60)
	require.Equal(t, []string{notice.LowBalance}, look(), "but for another threshold")
	o.SetWebhook(1, "https://example.com", 50, "")
	o.SetMail(1, 50)
	o.Now = o.Now.Add(time.Second)
	require.Len(t, look(), 1)
	o.Exec(`UPDATE account SET bought = bought + 10`)
	require.Empty(t, look())
	o.Exec(`UPDATE account SET spent = 80`)
	o.Now = o.Now.Add(time.Minute)
	ms = o.Now.UnixMilli()
	require.Equal(t, []string{notice.LowBalance}, look(), "again after it was enough in between")
	o.SetWebhook(1, "https://example.com", 0, "")
	o.SetMail(1, 0)
	require.Empty(t, look(), "0 is for never")

	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 8000)
	require.Equal(t, []string{notice.VolumeUsed}, look())
	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 9000)
	require.Empty(t, look(), "once a month")

	o.Exec(`INSERT INTO api_key (id, account, name, hash, shown, created_at, revoked_at) VALUES (6, 1, 'old', x'06', 'efgh', 0, 1)`)
	volume(int64(syncproto.NotFound), 6, int64(syncproto.Day(ms)), 100)
	require.Empty(t, look(), "a revoked key looks up nothing")
	volume(int64(syncproto.NotFound), 5, int64(syncproto.Day(ms)), 103)
	require.Equal(t, []string{notice.NotFoundCap}, look())
	require.Empty(t, look(), "once a day")

	o.Exec(`UPDATE api_key SET expires_at = ?`, ms+notice.EndsSoon.Milliseconds()+1)
	require.Empty(t, look())
	o.Exec(`UPDATE api_key SET expires_at = ?`, ms+notice.EndsSoon.Milliseconds())
	require.Equal(t, []string{notice.KeyEnding}, look())
	require.Empty(t, look(), "once for each end")
	o.Exec(`UPDATE api_key SET revoked_at = 1, expires_at = expires_at - 1`)
	require.Empty(t, look(), "a revoked key does not end")
	for kind, want := range map[string]string{
		notice.KeyEnding:   `"begins":"reg_live_abcd"`,
		notice.NotFoundCap: `"data":{"begins":"reg_live_abcd","cap":100,"day":"2026-01-31","key":5,"name":"server"}`,
	} {
		var body string
		require.NoError(t, o.DB.QueryRow(`SELECT body FROM notice WHERE kind = ?`, kind).Scan(&body))
		require.Contains(t, body, want)
	}

	o.Now = o.Now.Add(24 * time.Hour)
	ms = o.Now.UnixMilli()
	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 8000)
	require.Equal(t, []string{notice.VolumeUsed}, look(), "another month")
	o.Now = o.Now.Add(notice.Kept)
	o.Exec(`UPDATE account SET spent = 0`)
	o.SetWebhook(1, "https://example.com", 1000, "")
	o.SetMail(1, 1000)
	require.Equal(t, []string{notice.LowBalance}, look())
	require.Len(t, o.Deliveries(ada), 1, "old ones are dropped")
	require.Empty(t, look())
	require.Empty(t, o.Look(bob), "others are no concern of theirs")
}

// TestAnOwnerIsToldOfAKeyThatHasSpentItsCredits once a month.
func TestAnOwnerIsToldOfAKeyThatHasSpentItsCredits(t *testing.T) {
	o := noticetest.New(t, byWebhook, byMail)
	o.SetWebhook(1, "https://example.com", 0, "")
	o.SetMail(1, 0)
	o.SetWebhook(2, "https://example.org", 0, "")
	limit := func(key, until int64) {
		o.Exec(`UPDATE api_key SET monthly_credits = 500, limited_until = ? WHERE id = ?`, until, key)
	}
	end := func() int64 { return syncproto.EndOfMonth(syncproto.Month(o.Now.UnixMilli())) }
	look := func(why string, want ...string) {
		t.Helper()
		require.Equal(t, want, o.Look(o.Webhook(1)), why)
		require.Equal(t, want, o.Look(o.Mail(1)), "mail tells the same")
		require.Empty(t, o.Look(o.Webhook(2)), "others are told nothing")
	}
	limit(5, 0)
	look("it has credits left")
	limit(5, o.Now.UnixMilli())
	look("the month is over in which it had none")
	limit(5, end())
	look("", notice.KeyCreditsSpent)
	var body string
	require.NoError(t, o.DB.QueryRow(`SELECT body FROM notice WHERE target = ? AND kind = ?`, o.Webhook(1).ID, notice.KeyCreditsSpent).Scan(&body))
	require.Contains(t, body, `"data":{"begins":"reg_live_abcd","credits":500,"key":5,"month":"2026-01","name":"server","until":"2026-02-01T00:00:00Z"}`)
	look("once")
	limit(5, 0)
	look("its limit is raised")
	limit(5, end())
	look("once a month")
	for id, column := range map[int]string{6: "revoked_at", 7: "expires_at"} {
		o.Exec(`INSERT INTO api_key (id, account, name, hash, shown, created_at, monthly_credits, limited_until, `+column+`) VALUES (?, 1, 'old', ?, 'efgh', 0, 500, ?, ?)`,
			id, []byte{byte(id)}, end(), o.Now.UnixMilli())
	}
	look("what was revoked or expired is used no more")
	o.Exec(`INSERT INTO api_key (id, account, name, hash, shown, created_at, monthly_credits, limited_until) VALUES (8, 1, 'job', x'08', 'ijkl', 0, 9, ?)`, end())
	look("each key", notice.KeyCreditsSpent)

	o.Now = time.UnixMilli(end()).UTC()
	look("another month has begun, with credits")
	limit(5, end())
	look("another month", notice.KeyCreditsSpent)
	look("once")
}

// TestNoQueryReadsATableThatGrows holds that targets, which are few, lead to the rest by an index.
func TestNoQueryReadsATableThatGrows(t *testing.T) {
	o := noticetest.New(t)
	for query, values := range notice.Queries {
		rows, err := o.DB.Query("EXPLAIN QUERY PLAN "+query, make([]any, values)...)
		require.NoError(t, err)
		for rows.Next() {
			var id, parent, unused int
			var step string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
			if strings.HasPrefix(step, "SCAN") {
				require.Equal(t, "SCAN t", step, query)
			}
		}
		require.NoError(t, rows.Err())
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetWebhook(1, "https://example.com", 0, "")
	o.SetMail(1, 0)
	hook := o.Webhook(1)
	for range notice.MaxWaiting {
		require.NoError(t, o.Test(hook))
	}
	require.ErrorIs(t, o.Test(hook), notice.ErrFull)
	require.NoError(t, o.Test(o.Mail(1)), "each target has a queue of its own")
	require.NoError(t, o.Commit(t.Context(), func(ctx context.Context, tx *sql.Tx, _ int64) error { return notice.RemoveWebhook(ctx, tx, 1) }))
	require.Empty(t, o.Deliveries(hook))
	none, err := notice.ReadWebhook(t.Context(), o.DB, 1)
	require.NoError(t, err)
	require.Nil(t, none)
	require.ErrorIs(t, o.Test(hook), notice.ErrFull, "who is told nothing any more has no queue")
	require.Len(t, o.Deliveries(o.Mail(1)), 1)
}

// TestALowBalanceWaitsForRoom: it is noted as told only with the notice, like whatever else an owner is told once.
func TestALowBalanceWaitsForRoom(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetWebhook(1, "https://example.com", 50, "")
	hook := o.Webhook(1)
	for range notice.MaxWaiting {
		require.NoError(t, o.Test(hook))
	}
	o.Exec(`UPDATE account SET spent = 60`)
	require.NotContains(t, o.Look(hook), notice.LowBalance, "there is no room")
	require.Equal(t, []string{notice.LowBalance}, o.Look(hook))
	o.Now = o.Now.Add(time.Second)
	require.Empty(t, o.Look(hook), "once")
}

func TestASecretStaysUntilItIsRenewed(t *testing.T) {
	o := noticetest.New(t)
	for i, want := range []bool{true, false, true} {
		require.NoError(t, o.Commit(t.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error {
			target := notice.Target{Account: 1, URL: fmt.Sprint("https://example.com/", i)}
			taken, err := notice.SetWebhook(ctx, tx, now, target, fmt.Sprint("secret ", i), i == 2)
			require.Equal(t, want, taken, i)
			return err
		}))
	}
	require.Equal(t, "https://example.com/2", o.Webhook(1).URL)
}

// TestAChannelThatThereIsNotFindsNothing holds that a writer without a mail server queues no mail.
func TestAChannelThatThereIsNotFindsNothing(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetMail(3, 50)
	require.Empty(t, o.Look(o.Mail(3)))
	o.Open(byWebhook, byMail)
	require.Equal(t, []string{notice.LowBalance}, o.Look(o.Mail(3)))
}

// taker accepts everything, and keeps what it was given.
type taker struct{ got []notice.Notice }

func (c *taker) Carry(_ context.Context, list []notice.Notice) []notice.Outcome {
	c.got = append(c.got, list...)
	outcomes := make([]notice.Outcome, len(list))
	for i := range outcomes {
		outcomes[i] = notice.Outcome{State: notice.Delivered, Result: "sent"}
	}
	return outcomes
}

// TestATargetGetsSoManyADay: what is beyond waits, and is no failed attempt.
func TestATargetGetsSoManyADay(t *testing.T) {
	const perDay = 3
	carrier := &taker{}
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: carrier, PerDay: perDay})
	o.SetMail(1, 0)
	o.SetMail(2, 0)
	began := o.Now
	for range perDay + 1 {
		require.NoError(t, o.Test(o.Mail(1)))
		o.Now = o.Now.Add(time.Minute)
	}
	for i := range perDay {
		require.Equal(t, 1, o.Send(notice.Mail), i)
		o.Now = o.Now.Add(time.Minute)
	}
	require.Zero(t, o.Send(notice.Mail))
	waiting := o.Last(o.Mail(1))
	require.Equal(t, []any{0, "waits: enough were sent today"}, []any{waiting.Attempts, waiting.Last})
	require.Equal(t, began.Add((perDay+1)*time.Minute+24*time.Hour), *waiting.Next, "a day after the first of them")
	require.NoError(t, o.Test(o.Mail(2)))
	require.Equal(t, 1, o.Send(notice.Mail), "each has a day of their own")
	o.Now = *waiting.Next
	require.Equal(t, 1, o.Send(notice.Mail))
	require.NotNil(t, o.Last(o.Mail(1)).Delivered)
	require.Len(t, carrier.got, perDay+2)
}

// TestAFailedAttemptIsNoneOfADay: a message that was not delivered does not count towards an address's limit of a day.
func TestAFailedAttemptIsNoneOfADay(t *testing.T) {
	outcomes := []notice.Outcome{{Result: "busy"}, {Result: "busy"}, {State: notice.Delivered, Result: "sent"}}
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: scripted{&outcomes}, PerDay: 2})
	o.SetMail(1, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	for range 3 {
		require.Equal(t, 1, o.Send(notice.Mail))
		if next := o.Last(o.Mail(1)).Next; next != nil {
			o.Now = *next
		}
	}
	require.NotNil(t, o.Last(o.Mail(1)).Delivered)
}

// TestWhatIsRefusedIsGivenUpAndCounted, in the log and in the metrics.
func TestWhatIsRefusedIsGivenUpAndCounted(t *testing.T) {
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	outcomes := []notice.Outcome{{State: notice.Untried}, {Result: "busy"}, {State: notice.Refused, Result: "nobody there"}}
	carrier := scripted{&outcomes}
	o := noticetest.New(t)
	o.Configure(func(c *notice.Config) { c.Metrics, c.Logger = metrics, slog.New(slog.NewTextHandler(&log, nil)) })
	o.Open(notice.Way{Channel: notice.Mail, Carrier: carrier})
	o.SetWebhook(1, "https://example.com", 0, "")
	o.SetMail(1, 0)
	require.NotEqualValues(t, 1, o.Mail(1).ID, "the account is logged, not the target")
	require.NoError(t, o.Test(o.Mail(1)))
	require.Zero(t, o.Send(notice.Mail), "what was not tried does not count")
	require.Zero(t, o.Last(o.Mail(1)).Attempts)
	require.Equal(t, 1, o.Send(notice.Mail))
	require.Equal(t, "busy", o.Last(o.Mail(1)).Last)
	require.Empty(t, log.String())
	o.Now = *o.Last(o.Mail(1)).Next
	require.Equal(t, 1, o.Send(notice.Mail))
	last := o.Last(o.Mail(1))
	require.Equal(t, []any{2, "nobody there", true}, []any{last.Attempts, last.Last, last.Next == nil && last.Delivered == nil})
	require.Contains(t, log.String(), `msg="gave up a notice to an owner" channel=mail`)
	require.Contains(t, log.String(), `account=1 attempts=2 result="nobody there"`)
	require.NotContains(t, log.String(), "ada@", "addresses of people are not logged")
	require.NoError(t, promtest.GatherAndCompare(metrics, strings.NewReader(`
# HELP regedge_writer_notices_total Attempts to tell an owner something by webhook or mail, by outcome: delivered, failed, given_up.
# TYPE regedge_writer_notices_total counter
regedge_writer_notices_total{channel="mail",outcome="delivered"} 0
regedge_writer_notices_total{channel="mail",outcome="failed"} 1
regedge_writer_notices_total{channel="mail",outcome="given_up"} 1
`)))
}

// scripted gives one outcome after another.
type scripted struct{ left *[]notice.Outcome }

func (c scripted) Carry(context.Context, []notice.Notice) []notice.Outcome {
	next := (*c.left)[:1]
	*c.left = (*c.left)[1:]
	return next
}

// TestMailEndsWithThePerson who is removed, and is for owners alone.
func TestMailEndsWithThePerson(t *testing.T) {
	o := noticetest.New(t, byMail)
	o.SetMail(1, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	require.NoError(t, o.Commit(t.Context(), func(ctx context.Context, tx *sql.Tx, _ int64) error {
		if err := notice.RemoveMail(ctx, tx, 1); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM user WHERE id = 1`)
		return err
	}))
	require.Zero(t, o.Count(`SELECT count(*) FROM notice`)+o.Count(`SELECT count(*) FROM notice_target`))
	o.Exec(`INSERT INTO user (id, email, password, account, operator, created_at) VALUES (9, 'root@example.com', '', NULL, 1, 0)`)
	o.SetMail(9, 0)
	require.Zero(t, o.Count(`SELECT count(*) FROM notice_target`), "an operator has no account")
}

// TestNobodyIsToldTwiceWhileTheLedgerCanNotBeWritten: what was sent, but could not be noted, would be due again
// every two seconds, whatever the bound of a day.
func TestNobodyIsToldTwiceWhileTheLedgerCanNotBeWritten(t *testing.T) {
	full, broken, stored := errors.New("the disk is full"), true, false
	carrier := &taker{}
	o := noticetest.New(t)
	o.Configure(func(c *notice.Config) {
		c.Commit = func(ctx context.Context, change func(context.Context, *sql.Tx, int64) error) error {
			if !broken || stored { // or as after a commit that took too long
				if err := o.Commit(ctx, change); err != nil || !broken {
					return err
				}
			}
			return full
		}
	})
	o.Open(notice.Way{Channel: notice.Mail, Carrier: carrier, PerDay: 2})
	o.SetMail(1, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	for i := range 4 {
		stored = i == 3
		_, err := o.Sender.Send(t.Context(), notice.Mail)
		require.ErrorIs(t, err, full)
	}
	require.Len(t, carrier.got, 1)
	broken = false
	require.Zero(t, o.Send(notice.Mail))
	last := o.Last(o.Mail(1))
	require.Equal(t, []any{1, "sent", true}, []any{last.Attempts, last.Last, last.Delivered != nil && last.Next == nil})
	require.NoError(t, o.Test(o.Mail(1)))
	require.Equal(t, 1, o.Send(notice.Mail))
}

// TestAnOutcomeThatTheLedgerRefusesIsStoredLater, and no notice is sent again for it.
func TestAnOutcomeThatTheLedgerRefusesIsStoredLater(t *testing.T) {
	carrier := &taker{}
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: carrier})
	o.SetMail(1, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	o.Exec(`CREATE TRIGGER refuse BEFORE UPDATE ON notice BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	for range 2 {
		_, err := o.Sender.Send(t.Context(), notice.Mail)
		require.ErrorContains(t, err, "refused")
	}
	o.Exec(`DROP TRIGGER refuse`)
	require.Zero(t, o.Send(notice.Mail))
	require.Len(t, carrier.got, 1)
	require.NotNil(t, o.Last(o.Mail(1)).Delivered)
}

// TestTargetsTakeTurns has so many with old notices that they could have every turn.
func TestTargetsTakeTurns(t *testing.T) {
	o := noticetest.New(t, notice.Way{Channel: notice.Webhook, Carrier: failing{}})
	hook := func(account int64, notices int) {
		o.SetWebhook(account, "https://example.com", 0, "")
		for range notices {
			require.NoError(t, o.Test(o.Webhook(account)))
		}
	}
	for account := int64(100); account < 100+notice.AtOnce; account++ {
		o.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at, bought) VALUES (?, 'x', '', 'starter', 0, 0, 0)`, account)
		hook(account, 3)
	}
	o.Now = o.Now.Add(time.Second)
	hook(1, 1)
	hook(2, 1)
	for range 2 {
		require.Equal(t, notice.AtOnce, o.Send(notice.Webhook))
	}
	require.Equal(t, 1, o.Last(o.Webhook(1)).Attempts)
	require.Equal(t, 1, o.Last(o.Webhook(2)).Attempts)
	require.Equal(t, 1, o.Count(`SELECT min(n) FROM (SELECT sum(attempts) AS n FROM notice GROUP BY target)`), "everyone had a turn")
}

// failing takes nothing.
type failing struct{}

func (failing) Carry(_ context.Context, list []notice.Notice) []notice.Outcome {
	outcomes := make([]notice.Outcome, len(list))
	for i := range outcomes {
		outcomes[i] = notice.Outcome{Result: "busy"}
	}
	return outcomes
}

func TestANoticeIsGivenUpAfterItsLastAttempt(t *testing.T) {
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	o := noticetest.New(t)
	o.Configure(func(c *notice.Config) { c.Metrics, c.Logger = metrics, slog.New(slog.NewTextHandler(&log, nil)) })
	o.Open(notice.Way{Channel: notice.Webhook, Carrier: failing{}})
	o.SetWebhook(1, "https://example.com", 0, "")
	require.NoError(t, o.Test(o.Webhook(1)))
	for i := range notice.MaxAttempts {
		require.Empty(t, log.String(), i)
		require.Equal(t, 1, o.Send(notice.Webhook), i)
		if next := o.Last(o.Webhook(1)).Next; i < notice.MaxAttempts-1 {
			require.NotNil(t, next, i)
			o.Now = *next
		} else {
			require.Nil(t, next)
		}
	}
	require.Contains(t, log.String(), fmt.Sprintf(`account=1 attempts=%d result=busy`, notice.MaxAttempts))
	require.NoError(t, promtest.GatherAndCompare(metrics, strings.NewReader(fmt.Sprintf(`
# HELP regedge_writer_notices_total Attempts to tell an owner something by webhook or mail, by outcome: delivered, failed, given_up.
# TYPE regedge_writer_notices_total counter
regedge_writer_notices_total{channel="webhook",outcome="delivered"} 0
regedge_writer_notices_total{channel="webhook",outcome="failed"} %d
regedge_writer_notices_total{channel="webhook",outcome="given_up"} 1
`, notice.MaxAttempts-1))))
}

// TestAClockThatWasWrongPutsNothingOff: an attempt failed while the clock was a year ahead.
func TestAnAttemptIsMadeAgainAfterEverLongerPauses(t *testing.T) {
	o := noticetest.New(t, notice.Way{Channel: notice.Webhook, Carrier: failing{}})
	o.SetWebhook(1, "https://example.com", 0, "")
	require.NoError(t, o.Test(o.Webhook(1)))
	for _, pause := range []time.Duration{
		30 * time.Second, 2 * time.Minute, 8 * time.Minute, 32 * time.Minute, 128 * time.Minute, 6 * time.Hour, 6 * time.Hour,
	} {
		require.Equal(t, 1, o.Send(notice.Webhook), pause)
		require.Equal(t, o.Now.Add(pause), *o.Last(o.Webhook(1)).Next)
		o.Now = o.Now.Add(pause - time.Millisecond)
		require.Zero(t, o.Send(notice.Webhook), "not yet")
		o.Now = o.Now.Add(time.Millisecond)
	}
}

// TestSwitchingMailOffAndOnBeginsNoNewDay: an owner could send any number of tests to an address that need not be theirs.
func TestSwitchingMailOffAndOnBeginsNoNewDay(t *testing.T) {
	const perDay = 3
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: &taker{}, PerDay: perDay})
	sent := 0
	first := o.Now
	for range 2 * perDay {
		o.SetMail(1, 0)
		require.NoError(t, o.Test(o.Mail(1)))
		sent += o.Send(notice.Mail)
		require.NoError(t, o.Commit(t.Context(), func(ctx context.Context, tx *sql.Tx, _ int64) error { return notice.RemoveMail(ctx, tx, 1) }))
		o.Now = o.Now.Add(time.Minute)
	}
	require.Equal(t, perDay, sent)
	o.SetMail(1, 0)
	o.SetMail(2, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	require.NoError(t, o.Test(o.Mail(2)))
	require.Equal(t, 1, o.Send(notice.Mail), "another person's are others")
	require.Equal(t, first.Add(24*time.Hour), *o.Last(o.Mail(1)).Next)
	o.Now = first.Add(24 * time.Hour)
	require.Equal(t, 1, o.Send(notice.Mail))

	right := o.Now
	for i := range 2 * perDay { // half of them by a clock that is ahead
		o.Now = right.AddDate(0, 1-min(i/perDay, 1), 0)
		require.NoError(t, o.Test(o.Mail(2)))
		require.Equal(t, 1, o.Send(notice.Mail), i)
		require.NoError(t, o.Commit(t.Context(), func(ctx context.Context, tx *sql.Tx, _ int64) error { return notice.RemoveMail(ctx, tx, 2) }))
		o.SetMail(2, 0)
	}
	require.NoError(t, o.Test(o.Mail(2)))
	require.Zero(t, o.Send(notice.Mail))
}

// TestTheDocumentsSayHowOftenItIsTried: in all, the first attempt included.
func TestTheDocumentsSayHowOftenItIsTried(t *testing.T) {
	var whole time.Duration
	for n := 1; n < notice.MaxAttempts; n++ {
		whole += notice.PauseAfter(n)
	}
	require.InDelta(t, 48, whole.Hours(), 4)
	for file, words := range map[string]string{
		"../../docs/operations.md": "is tried %d times in all, in about two days", "../../docs/design.md": "%d times in about two days, always under the\nsame id: delivery is at least once",
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, strings.Contains(string(text), fmt.Sprintf(words, notice.MaxAttempts)), file)
	}
}

func TestAClockThatWasWrongPutsNothingOff(t *testing.T) {
	o := noticetest.New(t, notice.Way{Channel: notice.Webhook, Carrier: failing{}})
	o.SetWebhook(1, "https://example.com", 0, "")
	require.NoError(t, o.Test(o.Webhook(1)))
	right := o.Now
	o.Now = right.AddDate(1, 0, 0)
	require.Equal(t, 1, o.Send(notice.Webhook))
	o.Now = right
	require.Equal(t, 1, o.Send(notice.Webhook))
	require.Equal(t, right.Add(notice.PauseAfter(2)), *o.Last(o.Webhook(1)).Next)
	require.Zero(t, o.Send(notice.Webhook))
}

// TestWhatWasSentByAClockThatWasAheadIsOfNoDay: it would use up a person's messages for as long as the clock was ahead.
func TestWhatWasSentByAClockThatWasAheadIsOfNoDay(t *testing.T) {
	const perDay = 3
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: &taker{}, PerDay: perDay})
	o.SetMail(1, 0)
	right := o.Now
	o.Now = right.AddDate(1, 0, 0)
	for range perDay {
		require.NoError(t, o.Test(o.Mail(1)))
		require.Equal(t, 1, o.Send(notice.Mail))
	}
	o.Now = right
	require.NoError(t, o.Test(o.Mail(1)))
	require.Equal(t, 1, o.Send(notice.Mail))
}

// TestWhatIsFoundIsToldToNobodyElse: the webhook is removed between a look and what came of it, and the next
// one that is made has its number.
func TestWhatIsFoundIsToldToNobodyElse(t *testing.T) {
	o := noticetest.New(t)
	changing := false
	o.Configure(func(c *notice.Config) {
		c.Commit = func(ctx context.Context, change func(context.Context, *sql.Tx, int64) error) error {
			if changing {
				require.NoError(t, o.Commit(ctx, func(ctx context.Context, tx *sql.Tx, _ int64) error { return notice.RemoveWebhook(ctx, tx, 1) }))
				o.SetWebhook(2, "https://example.org", 0, "")
			}
			return o.Commit(ctx, change)
		}
	})
	o.Open(byWebhook)
	o.SetWebhook(1, "https://example.com", 1000, "")
	before := o.Webhook(1).ID
	changing = true
	require.NoError(t, o.Sender.Look(t.Context()))
	require.Equal(t, before, o.Webhook(2).ID)
	require.Empty(t, o.Deliveries(o.Webhook(2)))
}

func TestWhatIsStoredOfATargetIsBounded(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetWebhook(1, "https://example.com", 1000, "")
	hook := o.Webhook(1)
	require.Equal(t, []string{notice.LowBalance}, o.Look(hook))
	for range 2 * notice.TestsKept {
		o.Now = o.Now.Add(time.Second)
		require.NoError(t, o.Test(hook))
		o.Exec(`UPDATE notice SET next_at = NULL, delivered_at = at`)
	}
	require.Equal(t, o.Now, o.Last(hook).At)
	require.Equal(t, notice.TestsKept, o.Count(`SELECT count(*) FROM notice WHERE kind = ? AND at > ?`, notice.Test,
		o.Now.Add(-notice.TestsKept*time.Second).UnixMilli()), "the newest are kept")
	require.Equal(t, notice.TestsKept+1, o.Count(`SELECT count(*) FROM notice`))
	require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE kind = ?`, notice.LowBalance))
	o.Exec(`UPDATE notice SET kind = 'other'`)
	for i := range notice.MaxStored {
		o.Exec(`INSERT INTO notice (id, target, kind, about, at, body) SELECT ?1, ?2, 'other', ?1, 0, '' WHERE (SELECT count(*) FROM notice) < ?3`,
			fmt.Sprint("evt_", i), hook.ID, notice.MaxStored-1)
	}
	require.NoError(t, o.Test(hook))
	require.ErrorIs(t, o.Test(hook), notice.ErrFull)
}

// TestErrorsOfTheLedgerAreReturned, not taken for an answer.
func TestErrorsOfTheLedgerAreReturned(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetWebhook(1, "https://example.com", 50, "")
	hook := o.Webhook(1)
	require.Equal(t, o.Now, hook.Created)
	tx, err := o.DB.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	ended, end := context.WithCancel(t.Context())
	end()
	for what, act := range map[string]func() error{
		"look":       func() error { return o.Sender.Look(ended) },
		"send":       func() error { _, err := o.Sender.Send(ended, notice.Webhook); return err },
		"deliveries": func() error { _, err := notice.Deliveries(ended, o.DB, hook.ID, 1); return err },
		"target":     func() error { _, err := notice.ReadWebhook(ended, o.DB, 1); return err },
		"set":        func() error { _, err := notice.SetWebhook(ended, tx, 0, hook, "", false); return err },
		"remove":     func() error { return notice.RemoveWebhook(ended, tx, 1) },
		"test":       func() error { return notice.PutTest(ended, tx, 0, hook, "") },
	} {
		require.ErrorIs(t, act(), context.Canceled, what)
	}
}

// cutShort carries until the writer ends.
type cutShort struct{ end context.CancelFunc }

func (c cutShort) Carry(_ context.Context, list []notice.Notice) []notice.Outcome {
	c.end()
	return make([]notice.Outcome, len(list))
}

// TestAnAttemptThatIsCutShortIsNone: the writer ends while a notice is on its way.
func TestAnAttemptThatIsCutShortIsNone(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	o := noticetest.New(t)
	o.Configure(func(c *notice.Config) { // as a commit that was begun before
		c.Commit = func(_ context.Context, change func(context.Context, *sql.Tx, int64) error) error {
			return o.Commit(t.Context(), change)
		}
	})
	o.Open(notice.Way{Channel: notice.Mail, Carrier: cutShort{end}})
	o.SetMail(1, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	_, err := o.Sender.Send(ctx, notice.Mail)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, o.Last(o.Mail(1)).Attempts)
}

// halfway carries the first notice of a round, until the writer ends.
type halfway struct{ end context.CancelFunc }

func (h halfway) Carry(_ context.Context, list []notice.Notice) []notice.Outcome {
	h.end()
	outcomes := make([]notice.Outcome, len(list))
	outcomes[0] = notice.Outcome{State: notice.Delivered, Result: "sent"}
	return outcomes
}

// TestWhatWasDeliveredAsTheWriterEndsIsNotSentAgain, while of the rest of its round no attempt counts.
func TestWhatWasDeliveredAsTheWriterEndsIsNotSentAgain(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: halfway{end}, PerDay: 20})
	for _, user := range []int64{1, 2} {
		o.SetMail(user, 0)
		require.NoError(t, o.Test(o.Mail(user)))
	}
	_, err := o.Sender.Send(ctx, notice.Mail)
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, o.Last(o.Mail(1)).Delivered)
	require.Zero(t, o.Last(o.Mail(2)).Attempts)
	again := &taker{}
	o.Open(notice.Way{Channel: notice.Mail, Carrier: again, PerDay: 20})
	require.Equal(t, 1, o.Send(notice.Mail))
	require.Equal(t, "eve@example.com", again.got[0].Address)
}

func TestWhatWasDeliveredLongAgoIsDropped(t *testing.T) {
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: &taker{}})
	o.SetMail(1, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	require.Equal(t, 1, o.Send(notice.Mail))
	o.SetMail(1, 1000)
	require.NoError(t, o.Test(o.Mail(1)))
	for _, c := range []struct {
		pass time.Duration
		want int
	}{{notice.Kept - time.Millisecond, 1}, {time.Millisecond, 0}} {
		o.Now = o.Now.Add(c.pass)
		require.NoError(t, o.Sender.Look(t.Context()))
		require.Equal(t, c.want, o.Count(`SELECT count(*) FROM notice WHERE kind = 'test' AND next_at IS NULL`))
		require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE kind = 'test' AND next_at IS NOT NULL`), "what waits is kept")
	}
}

// TestASenderFindsAndSendsByItself, and says when the ledger can't be written, once each time that it begins.
func TestASenderFindsAndSendsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var broken atomic.Bool
		carrier := &taker{}
		o := noticetest.New(t)
		o.Configure(func(c *notice.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.Commit = func(ctx context.Context, change func(context.Context, *sql.Tx, int64) error) error {
				if broken.Load() {
					return errors.New("the disk is full")
				}
				return o.Commit(ctx, change)
			}
		})
		o.Open(notice.Way{Channel: notice.Mail, Carrier: carrier})
		o.SetMail(1, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Sender.Run(ctx) }()
		pass := func(b bool) {
			broken.Store(b)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}
		pass(false)
		require.Len(t, carrier.got, 1)
		require.Equal(t, notice.LowBalance, carrier.got[0].Kind)
		for said := 1; said <= 2; said++ {
			require.NoError(t, o.Test(o.Mail(1)))
			pass(true)
			require.Equal(t, said, strings.Count(log.String(), "the disk is full"), log.String())
			pass(false)
			require.Len(t, carrier.got, 1+said)
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// untilStop has an attempt under way when the writer is stopped.
type untilStop struct{ begun chan struct{} }

func (u untilStop) Carry(ctx context.Context, list []notice.Notice) []notice.Outcome {
	close(u.begun)
	<-ctx.Done()
	return make([]notice.Outcome, len(list))
}

// TestAStopIsNoFaultOfTheLedger, also in the middle of an attempt.
func TestAStopIsNoFaultOfTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := noticetest.New(t)
		o.Configure(func(c *notice.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		carrier := untilStop{make(chan struct{})}
		o.Open(notice.Way{Channel: notice.Mail, Carrier: carrier})
		o.SetMail(1, 0)
		require.NoError(t, o.Test(o.Mail(1)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Sender.Run(ctx) }()
		<-carrier.begun
		cancel()
		require.NoError(t, <-ended)
		require.Empty(t, log.String())
	})
}

// TestTheTimeOfANoticeIsInUTC, wherever the writer is.
func TestTheTimeOfANoticeIsInUTC(t *testing.T) {
	here := time.Local
	time.Local = time.FixedZone("here", 3600)
	defer func() { time.Local = here }()
	carrier := &taker{}
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: carrier})
	o.SetMail(1, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	require.Equal(t, 1, o.Send(notice.Mail))
	require.Contains(t, carrier.got[0].Body, `"timestamp":"`+o.Now.UTC().Format("2006-01-02T15:04:05")+`Z"`)
}

// TestAKeyWhoseEndIsChangedIsToldOfAgain: its owner was told another day.
func TestAKeyWhoseEndIsChangedIsToldOfAgain(t *testing.T) {
	o, commits := noticetest.New(t), 0
	o.Configure(func(c *notice.Config) {
		c.Commit = func(ctx context.Context, change func(context.Context, *sql.Tx, int64) error) error {
			commits++
			return o.Commit(ctx, change)
		}
	})
	o.Open(byWebhook)
	o.SetWebhook(1, "https://example.com", 0, "")
	hook := o.Webhook(1)
	for days := range 3 {
		o.Exec(`UPDATE api_key SET expires_at = ? WHERE id = 5`, o.Now.Add(time.Duration(days+2)*24*time.Hour).UnixMilli())
		require.Equal(t, []string{notice.KeyEnding}, o.Look(hook), days)
		o.Now = o.Now.Add(time.Second)
		require.Empty(t, o.Look(hook), "once")
		require.Equal(t, days+1, commits, "a look without news leaves the ledger alone")
	}
}

// TestTheMonthOfANoticeIsThatOfUTC, whose calls were counted, until its last minute.
func TestTheMonthOfANoticeIsThatOfUTC(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetWebhook(1, "https://example.com", 0, "")
	hook := o.Webhook(1)
	for _, at := range []time.Time{time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)} {
		o.Now = at
		o.Exec(`INSERT INTO pool (kind, subject, time_window, compensated, spent, lost) VALUES (?, 1, ?, 0, 9999, 0)`,
			syncproto.Volume, syncproto.Month(at.UnixMilli()))
		require.Equal(t, []string{notice.VolumeUsed}, o.Look(hook), at)
		require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE target = ? AND body ->> '$.data.month' = ?`, hook.ID, at.Format("2006-01")))
	}
}
