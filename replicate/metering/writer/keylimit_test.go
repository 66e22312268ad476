package writer

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// reporting is an edge that reports what a key spent.
type reporting struct {
	t       *testing.T
	w       *Writer
	session uint64
	epoch   uint64
	seq     uint64
	account int64
}

func newReporting(t *testing.T, w *Writer, client *Client, account int64) *reporting {
	t.Helper()
	_, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	e := &reporting{t: t, w: w, account: account}
	e.hello()
	return e
}

// reportingLimited is an edge of an account that has a key with monthly credits.
func reportingLimited(t *testing.T, monthlyCredits int64) (client *Client, clock *fakeClock, e *reporting, k NewKey) {
	t.Helper()
	w, client, clock := runForRoles(t)
	account, _ := keyFor(t, client)
	k, err := client.AddKeyWith(t.Context(), account, KeySettings{MonthlyCredits: monthlyCredits})
	require.NoError(t, err)
	return client, clock, newReporting(t, w, client, account), k
}

func (e *reporting) hello() {
	e.t.Helper()
	r := e.send(syncproto.Message{Hello: &syncproto.Hello{Boot: 1, Epoch: e.epoch, Sealed: e.seq}})
	e.session, e.epoch = r.Session, r.Epoch
}

// reload has the writer read the ledger again, as after a failed commit and at a start.
func (e *reporting) reload() {
	e.t.Helper()
	again := func(ctx context.Context, _ *sql.Tx, _ int64, _ *ledger.Ledger) error {
		e.w.reload(ctx)
		return nil
	}
	require.NoError(e.t, e.w.submit(e.t.Context(), &operation{change: again, readOnly: true}))
	e.hello()
}

func (e *reporting) send(m syncproto.Message) *syncproto.Reply {
	e.t.Helper()
	op := &operation{edge: "one", step: step(m)}
	require.NoError(e.t, e.w.submit(e.t.Context(), op))
	return op.reply
}

// spend reports charges of a key in the hour of a time.
func (e *reporting) spend(key int64, at time.Time, count int64) {
	e.t.Helper()
	e.seq++
	r := e.send(syncproto.Message{Sync: &syncproto.Sync{Session: e.session, Batch: &syncproto.Batch{Seq: e.seq, Of: e.epoch, Usage: []syncproto.Usage{
		{Account: e.account, Key: key, Hour: syncproto.Hour(at.UnixMilli()), Endpoint: charge.Companies, Outcome: charge.Found, Count: count},
		{Account: e.account, Key: key, Hour: syncproto.Hour(at.UnixMilli()), Endpoint: charge.Companies, Outcome: charge.NotFound, Count: 1000},
	}}}})
	require.Equal(e.t, e.seq, r.Applied)
}

// limitedUntil is what edges know of a key.
func limitedUntil(w *Writer, id int64) (until int64) {
	if w.config.Access.QueryRow(`SELECT limited_until FROM api_key WHERE id = ?`, id).Scan(&until) != nil {
		return -1
	}
	return until
}

func (e *reporting) wantLimit(key, until int64, why string) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return limitedUntil(e.w, key) == until }, time.Minute, 5*time.Millisecond, why)
}

func TestAKeyIsLimitedOnceItSpentItsMonth(t *testing.T) {
	w, client, clock := runForRoles(t)
	account, free := keyFor(t, client)
	k, err := client.AddKeyWith(t.Context(), account, KeySettings{Name: "partner", MonthlyCredits: 10})
	require.NoError(t, err)
	require.EqualValues(t, 10, k.MonthlyCredits)
	require.Nil(t, k.LimitedUntil)
	e := newReporting(t, w, client, account)
	now := clock.now()
	end := syncproto.EndOfMonth(syncproto.Month(now.UnixMilli()))

	e.spend(free.ID, now, 500)
	e.spend(k.ID, now, 9)
	e.spend(k.ID, now.AddDate(0, -2, 0), 50) // of another month
	require.Zero(t, limitedUntil(w, k.ID))
	e.spend(k.ID, now, 1)
	e.wantLimit(k.ID, end, "the tenth of ten was spent")
	read, err := client.Key(t.Context(), k.ID)
	require.NoError(t, err)
	require.Equal(t, end, read.LimitedUntil.UnixMilli())
	require.Zero(t, limitedUntil(w, free.ID))

	e.spend(k.ID, now, -1)
	e.wantLimit(k.ID, 0, "one was taken back")
	e.spend(k.ID, now, 3)
	e.wantLimit(k.ID, end, "and more spent")

	more := int64(13)
	changed, err := client.ChangeKey(t.Context(), k.ID, KeyChange{MonthlyCredits: &more})
	require.NoError(t, err)
	require.Nil(t, changed.LimitedUntil, "12 of 13 are spent")
	e.wantLimit(k.ID, 0, "the limit was raised")
	less := int64(12)
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{MonthlyCredits: &less})
	require.NoError(t, err)
	require.NotNil(t, changed.LimitedUntil, "what was spent before counts")
	require.Equal(t, end, limitedUntil(w, k.ID))
	none := int64(0)
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{MonthlyCredits: &none})
	require.NoError(t, err)
	require.Nil(t, changed.LimitedUntil)
	require.Zero(t, storedMonths(t, w))
	e.spend(k.ID, now, 100)
	require.Zero(t, limitedUntil(w, k.ID))

	for _, wrong := range []int64{-1, ledger.MaxKeyCredits + 1} {
		_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{MonthlyCredits: &wrong})
		require.ErrorIs(t, err, ErrMalformed)
		_, err = client.AddKeyWith(t.Context(), account, KeySettings{MonthlyCredits: wrong})
		require.ErrorIs(t, err, ErrMalformed)
	}
}

// storedMonths is how many months of keys the ledger has.
func storedMonths(t *testing.T, w *Writer) (n int) {
	t.Helper()
	require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM key_month`).Scan(&n))
	return n
}

// TestTheMonthsOfAKeyAreBounded in the ledger's database too, whatever an edge with a wrong clock reports.
func TestTheMonthsOfAKeyAreBounded(t *testing.T) {
	_, clock, e, k := reportingLimited(t, 10)
	for n := range 12 {
		e.spend(k.ID, clock.now().AddDate(0, n-11, 0), 1) // nearer and nearer
	}
	require.Equal(t, 6, storedMonths(t, e.w))
	e.reload()
	e.spend(k.ID, clock.now(), 9)
	e.wantLimit(k.ID, syncproto.EndOfMonth(syncproto.Month(clock.now().UnixMilli())), "10 of 10 are spent")
}

// TestTheLimitOfAKeyBeginsAnewWithAMonth, by the writer's clock.
func TestTheLimitOfAKeyBeginsAnewWithAMonth(t *testing.T) {
	client, clock, e, k := reportingLimited(t, 5)
	end := syncproto.EndOfMonth(syncproto.Month(clock.now().UnixMilli()))
	e.spend(k.ID, clock.now(), 5)
	e.wantLimit(k.ID, end, "spent")
	clock.pass(time.UnixMilli(end).Sub(clock.now()))
	read, err := client.Key(t.Context(), k.ID)
	require.NoError(t, err)
	require.Nil(t, read.LimitedUntil)
	e.spend(k.ID, clock.now(), 4)
	e.wantLimit(k.ID, 0, "4 of the new month's 5")
	e.spend(k.ID, time.UnixMilli(end-1), 7) // late
	e.spend(k.ID, clock.now(), 1)
	e.wantLimit(k.ID, syncproto.EndOfMonth(syncproto.Month(end)), "the fifth")
}

// TestAClockThatIsAheadForAWhileGivesAKeyNoOtherMonth: neither the writer's alone nor an edge's alone.
func TestAClockThatIsAheadForAWhileGivesAKeyNoOtherMonth(t *testing.T) {
	_, clock, e, k := reportingLimited(t, 5)
	right := clock.now()
	end := syncproto.EndOfMonth(syncproto.Month(right.UnixMilli()))
	e.spend(k.ID, right, 4)
	e.spend(k.ID, time.UnixMilli(end), 9) // an edge's
	clock.pass(time.UnixMilli(end).Sub(right))
	e.spend(k.ID, right, 1)
	e.wantLimit(k.ID, end, "5 of this month's 5, while the writer's clock was ahead")
	clock.pass(-time.UnixMilli(end).Sub(right))
	e.spend(k.ID, right, 1)
	e.wantLimit(k.ID, end, "and when it is right again")
}

// TestAClockThatWasAheadAtBothIsForgotten, once the writer's is right again: what the key spent in the true
// month counts, and it is not refused for the month to come.
func TestAClockThatWasAheadAtBothIsForgotten(t *testing.T) {
	_, clock, e, k := reportingLimited(t, 5)
	right := clock.now()
	end := syncproto.EndOfMonth(syncproto.Month(right.UnixMilli()))
	e.spend(k.ID, right, 2)
	ahead := time.UnixMilli(end).AddDate(1, 0, 0)
	clock.pass(ahead.Sub(right))
	e.spend(k.ID, ahead, 6)
	e.wantLimit(k.ID, syncproto.EndOfMonth(syncproto.Month(ahead.UnixMilli())), "both say that it is next year")
	clock.pass(-ahead.Sub(right))
	e.send(syncproto.Message{Sync: &syncproto.Sync{Session: e.session, NowMillis: right.UnixMilli()}})
	e.wantLimit(k.ID, 0, "2 of 5 are spent")
	e.spend(k.ID, right, 3)
	e.wantLimit(k.ID, end, "5 of 5 are spent")
}

// TestAWriterWithAWrongClockCounts what a key spends, when it starts or when a limit is set.
func TestAWriterWithAWrongClockCounts(t *testing.T) {
	for _, months := range []int{-14, 1, 14} {
		w, client, clock := runForRoles(t)
		account, _ := keyFor(t, client)
		e := newReporting(t, w, client, account)
		right := clock.now()
		k, err := client.AddKeyWith(t.Context(), account, KeySettings{})
		require.NoError(t, err)
		e.spend(k.ID, right, 4)
		wrong := right.AddDate(0, months, 0).Sub(right)
		clock.pass(wrong)
		limit := int64(6)
		_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{MonthlyCredits: &limit})
		require.NoError(t, err)
		e.spend(k.ID, right, 1)
		require.Zero(t, limitedUntil(w, k.ID))
		e.reload()
		clock.pass(-wrong)
		e.send(syncproto.Message{Sync: &syncproto.Sync{Session: e.session, NowMillis: right.UnixMilli()}})
		e.spend(k.ID, right, 1)
		e.wantLimit(k.ID, syncproto.EndOfMonth(syncproto.Month(right.UnixMilli())), "6 of 6 are spent")
	}
}

// TestANewLimitCountsWhatEveryEndpointSpent in an hour.
func TestANewLimitCountsWhatEveryEndpointSpent(t *testing.T) {
	client, clock, e, k := reportingLimited(t, 100)
	e.spend(k.ID, clock.now(), 4)
	_, err := e.w.config.Ledger.Exec(`INSERT INTO usage (account, key, endpoint, outcome, hour, count) SELECT account, key, ?, outcome, hour, 3 FROM usage WHERE outcome = ?`,
		charge.Directors, charge.Found)
	require.NoError(t, err)
	for limit, limited := range map[int64]bool{7: true, 8: false} {
		changed, err := client.ChangeKey(t.Context(), k.ID, KeyChange{MonthlyCredits: &limit})
		require.NoError(t, err)
		require.Equal(t, limited, changed.LimitedUntil != nil, limit)
	}
}

// TestAWriterThatStartsKnowsWhatKeysSpent, and one that reads the ledger again after a failed commit.
func TestAWriterThatStartsKnowsWhatKeysSpent(t *testing.T) {
	_, clock, e, k := reportingLimited(t, 5)
	e.spend(k.ID, clock.now(), 4)
	end := syncproto.EndOfMonth(syncproto.Month(clock.now().UnixMilli()))
	e.reload()
	e.spend(k.ID, clock.now(), 1)
	e.wantLimit(k.ID, end, "4 before it was read again, and 1 since")
}
