package ledger

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

// TestTheSumOfAKeyReadsItsAccountsMonths, and not all usage: no other change is made meanwhile.
func TestTheSumOfAKeyReadsItsAccountsMonths(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	for query, args := range map[string][]any{selectLastHour: {7, 2}, selectKeySpent: {7, 2, charge.Found}} {
		rows, err := db.Query("EXPLAIN QUERY PLAN "+query, args...)
		require.NoError(t, err)
		var plan []string
		for rows.Next() {
			var id, parent, unused int64
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			plan = append(plan, detail)
		}
		require.NoError(t, rows.Err())
		require.Regexp(t, `SEARCH (u USING PRIMARY KEY \(account=\? AND hour>\?\)|usage USING PRIMARY KEY \(account=\?\))`, strings.Join(plan, "; "))
	}
}

// TestANewLimitCountsThisMonthAndTheLast: the writer's clock may be ahead, and the month another one.
func TestANewLimitCountsThisMonthAndTheLast(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	const current = 24_317
	_, err = tx.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'scale', 0, 0);
		INSERT INTO api_key (id, account, name, hash, shown, created_at) VALUES (7, 1, '', x'01', '', 0)`)
	require.NoError(t, err)
	_, err = tx.Exec(`INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES (1, 7, ?1, 1, ?2, 50), (1, 7, ?1, 1, ?3, 60)`,
		firstHour(current), charge.NotFound, charge.Failed) // which cost nothing
	require.NoError(t, err)
	for month, count := range map[int32]int64{current - 2: 1, current - 1: 2, current: 3} {
		for _, hour := range []int32{firstHour(month), firstHour(month+1) - 1} {
			_, err := tx.Exec(`INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES (1, 7, ?, 1, ?, ?)`, hour, charge.Found, count)
			require.NoError(t, err)
		}
	}
	k := &keyLimit{spent: map[int32]int64{}}
	require.NoError(t, k.sum(t.Context(), tx, syncproto.EndOfMonth(current)-1, 7))
	require.Equal(t, map[int32]int64{current - 1: 4, current: 6}, k.spent)

	_, err = tx.Exec(`INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES (1, 8, ?, 1, ?, 1)`, firstHour(current+9), charge.Found)
	require.NoError(t, err)
	k = &keyLimit{spent: map[int32]int64{}}
	require.NoError(t, k.sum(t.Context(), tx, syncproto.EndOfMonth(current)-1, 7))
	require.Equal(t, map[int32]int64{current - 1: 4, current: 6}, k.spent, "an edge's clock that is ahead hides no month")
}

// TestTheMonthsOfAKeyAreStored as they are counted: each with its sum, and none that is counted no more.
func TestTheMonthsOfAKeyAreStored(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	_, err = db.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'scale', 0, 0);
		INSERT INTO api_key (id, account, name, hash, shown, created_at, monthly_credits) VALUES (7, 1, '', x'01', '', 0, 5), (8, 1, '', x'02', '', 0, 5)`)
	require.NoError(t, err)
	const current = 24_317
	now := syncproto.EndOfMonth(current) - 1
	l, err := Load(t.Context(), db)
	require.NoError(t, err)
	require.NoError(t, l.LoadKeyLimits(t.Context(), db, now))
	for month := int32(current - keptMonths); month <= current; month++ {
		for range 2 {
			for key := range int64(2) {
				l.countKey(now, &syncproto.Usage{Account: 1, Key: 7 + key, Hour: firstHour(month), Outcome: charge.Found, Count: 1 + key})
			}
			tx, err := db.Begin()
			require.NoError(t, err)
			defer tx.Rollback()
			require.NoError(t, l.Flush(t.Context(), tx, now, nil))
			require.NoError(t, tx.Commit())
		}
	}
	loaded, err := Load(t.Context(), db)
	require.NoError(t, err)
	require.NoError(t, loaded.LoadKeyLimits(t.Context(), db, now))
	for key, k := range l.keyLimits {
		require.Len(t, k.spent, keptMonths)
		require.EqualValues(t, 2*(key-6), k.spent[current])
		require.Equal(t, k, loaded.keyLimits[key])
	}
}

func TestTheFirstHourOfAMonth(t *testing.T) {
	const january1970 = 12 * 1970
	require.EqualValues(t, 0, firstHour(january1970))
	require.EqualValues(t, 31*24, firstHour(january1970+1))
}

func TestTheNewestMonthMayBeTheCurrentOne(t *testing.T) {
	k := &keyLimit{spent: map[int32]int64{5: 1, 6: 2, 8: 3}}
	for upTo, newest := range map[int32]int32{4: 0, 5: 5, 6: 6, 7: 6, 9: 8} {
		require.Equal(t, newest, k.newest(upTo), "up to %d", upTo)
	}
}

// TestAKeyKeepsTheMonthsNearTheClock, however many others edges with wrong clocks report.
func TestAKeyKeepsTheMonthsNearTheClock(t *testing.T) {
	l := New(1)
	k := &keyLimit{credits: 10, spent: map[int32]int64{}}
	l.keyLimits[7] = k
	now := syncproto.EndOfMonth(24_316) // the first millisecond of the next one
	spend := func(month int32, count int64) {
		l.countKey(now, &syncproto.Usage{Account: 1, Key: 7, Hour: firstHour(month), Outcome: charge.Found, Count: count})
	}
	spend(24_317, 9)
	spend(24_316, 3)
	for n := int32(0); n < 50; n++ {
		spend(24_330+n, 100)
		spend(24_300-n, 100)
	}
	require.Len(t, k.spent, keptMonths)
	require.EqualValues(t, 3, k.spent[24_316])
	require.EqualValues(t, 24_317, k.month)
	require.Zero(t, k.until)
	for of := range l.changes.keyMonths {
		require.Contains(t, k.spent, of.month, "a month is written that is not counted")
		require.NotContains(t, l.changes.pastMonths, of)
	}
	spend(24_317, 1)
	require.Equal(t, syncproto.EndOfMonth(24_317), k.until)
	spend(24_317, -1<<62)
	spend(24_317, -1<<62)
	require.EqualValues(t, -maxSpent, k.spent[24_317])

	again := keyMonth{7, 24_370}
	require.Contains(t, l.changes.pastMonths, again)
	now = syncproto.EndOfMonth(again.month - 1) // the clock was set
	spend(again.month, 5)
	require.EqualValues(t, 5, k.spent[again.month])
	require.EqualValues(t, again.month, k.month)
	require.NotContains(t, l.changes.pastMonths, again)
	now = syncproto.EndOfMonth(24_316) // it was set wrongly, and is right again
	spend(24_317, 1)
	require.EqualValues(t, 24_317, k.month, "the credits of a month to come count")
}

// TestAKeyThatWasIdleKeepsTheMonthAfterTheCurrentOne: an edge whose clock is a little ahead reports it first.
func TestAKeyThatWasIdleKeepsTheMonthAfterTheCurrentOne(t *testing.T) {
	l := New(1)
	const idle, current = 24_300, 24_320
	k := &keyLimit{credits: 5, month: idle, spent: map[int32]int64{}}
	for month := int32(idle); month > idle-keptMonths; month-- {
		k.spent[month] = 1
	}
	l.keyLimits[7] = k
	report := func(now int64) {
		l.countKey(now, &syncproto.Usage{Account: 1, Key: 7, Hour: firstHour(current + 1), Outcome: charge.Found, Count: 3})
	}
	report(syncproto.EndOfMonth(current) - 1)
	require.EqualValues(t, 3, k.spent[current+1])
	require.Zero(t, k.until)
	report(syncproto.EndOfMonth(current))
	require.Equal(t, syncproto.EndOfMonth(current+1), k.until, "all six count")
}

// TestAKeyWithoutALimitLeavesNoMonthsBehind: the next limit would count them, and nothing else drops them.
func TestAKeyWithoutALimitLeavesNoMonthsBehind(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	const current = 24_317
	_, err = db.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'scale', 0, 0);
		INSERT INTO api_key (id, account, name, hash, shown, created_at, monthly_credits) VALUES (7, 1, '', x'01', '', 0, 5), (8, 1, '', x'02', '', 0, 5);
		INSERT INTO key_month (key, month, spent) VALUES (7, 24316, 3), (7, 24317, 4), (8, 24317, 2)`)
	require.NoError(t, err)
	l, err := Load(t.Context(), db)
	require.NoError(t, err)
	now := syncproto.EndOfMonth(current) - 1
	require.NoError(t, l.LoadKeyLimits(t.Context(), db, now))
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	require.NoError(t, l.LimitKey(t.Context(), tx, now, 7, 0))
	require.NoError(t, l.Flush(t.Context(), tx, now, nil))
	require.NoError(t, tx.Commit())
	var keys string
	require.NoError(t, db.QueryRow(`SELECT group_concat(key) FROM key_month`).Scan(&keys))
	require.Equal(t, "8", keys)
}

// TestAnEdgesClockMovesNoLimitOfAKey back to another month: that takes the writer's clock.
func TestAnEdgesClockMovesNoLimitOfAKey(t *testing.T) {
	l := New(1)
	require.NoError(t, l.AddEdge("one"))
	e := l.Edge("one")
	now := syncproto.EndOfMonth(24_316) + 3*24*60*60*1000
	session := l.Hello(now, e, &syncproto.Hello{Boot: 1}).Session
	say := func(now, edges int64) { l.Sync(now, e, &syncproto.Sync{Session: session, NowMillis: edges}) }
	end := syncproto.EndOfMonth(24_317)
	k := &keyLimit{credits: 10, spent: map[int32]int64{24_310: 1, 24_317: 10}, month: 24_317, until: end}
	l.keyLimits[7] = k
	say(now, now)
	for _, edges := range []int64{syncproto.EndOfMonth(24_309), now, end + 1, now, 0} {
		say(now, edges)
		require.EqualValues(t, 24_317, k.month, "while an edge's clock says %d", edges)
		require.Equal(t, end, k.until)
	}
	say(syncproto.EndOfMonth(24_309), syncproto.EndOfMonth(24_309)) // both: the key's month is still to come
	require.EqualValues(t, 24_310, k.month)
	require.Zero(t, k.until)
}
