package ledger_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// requireStored loads the ledger and compares it with the one in memory.
func (c *cluster) requireStored() {
	c.t.Helper()
	loaded, err := ledger.Load(context.Background(), c.db)
	require.NoError(c.t, err)
	require.NoError(c.t, loaded.Check())
	require.Equal(c.t, c.ledger.Stored(), loaded.Stored())
}

// TestWhatIsInMemoryIsStored: what a commit left out would be known until the writer starts again.
func TestWhatIsInMemoryIsStored(t *testing.T) {
	for seed := uint64(1001); seed <= 1004; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newCluster(t, seed)
			for n := range 500 {
				c.step()
				if n%10 == 0 && !c.ledger.Changed() {
					c.requireStored()
				}
			}
			c.heal()
			c.requireStored()
		})
	}
}

// TestUsageIsAddedToWhatIsStored reports the same row in two transactions, and charges that are voided
// before the commit.
func TestUsageIsAddedToWhatIsStored(t *testing.T) {
	c := newCluster(t, 7)
	c.calm = true
	e := c.ledger.Edge(c.edges[0].name)
	session := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1}).Session
	seq := uint64(0)
	report := func(usage ...syncproto.Usage) {
		seq++
		c.ledger.Sync(c.now, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: seq, Usage: usage}})
	}
	row := func(endpoint charge.Endpoint, outcome charge.Outcome, count int64) syncproto.Usage {
		return syncproto.Usage{Account: 1, Key: 10, Hour: syncproto.Hour(c.now), Endpoint: endpoint, Outcome: outcome, Count: count}
	}
	report(row(charge.Companies, charge.Found, 3), row(charge.LLPs, charge.Failed, 1))
	c.commit()
	report(row(charge.Companies, charge.Found, 4), row(charge.Directors, charge.Found, 2))
	report(row(charge.Directors, charge.Found, -2))
	c.commit()
	report(row(charge.Companies, charge.Found, -1))
	c.commit()
	counts := map[charge.Endpoint]int64{}
	rows, err := c.db.Query(`SELECT endpoint, count FROM usage WHERE account = 1 AND key = 10`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var endpoint charge.Endpoint
		var count int64
		require.NoError(t, rows.Scan(&endpoint, &count))
		counts[endpoint] = count
	}
	require.NoError(t, rows.Err())
	require.Equal(t, map[charge.Endpoint]int64{charge.Companies: 6, charge.LLPs: 1}, counts)
}

// TestUnresolvedChargesAreStoredOnce repeats a report, as after a reply that was lost.
func TestUnresolvedChargesAreStoredOnce(t *testing.T) {
	c := newCluster(t, 7)
	c.calm = true
	name := c.edges[0].name
	e := c.ledger.Edge(name)
	session := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1}).Session
	doubt := syncproto.Unresolved{ID: "r-1", Account: 2, Key: 20, AtMillis: c.now - 5}
	for seq := range uint64(2) {
		c.ledger.Sync(c.now, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: seq + 1, Unresolved: []syncproto.Unresolved{doubt}}})
		c.commit()
	}
	var got syncproto.Unresolved
	var node string
	var rows int
	require.NoError(t, c.db.QueryRow(`SELECT id, account, key, at, node, count(*) FROM unresolved`).
		Scan(&got.ID, &got.Account, &got.Key, &got.AtMillis, &node, &rows))
	require.Equal(t, doubt, got)
	require.Equal(t, name, node)
	require.Equal(t, 1, rows)
}

// TestAChargeThatWasCreditedIsNotInDoubtAgain when its edge, or another, reports it once more.
func TestAChargeThatWasCreditedIsNotInDoubtAgain(t *testing.T) {
	c := newCluster(t, 7)
	c.calm = true
	for _, edge := range c.edges[:2] {
		e := c.ledger.Edge(edge.name)
		session := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1}).Session
		doubt := syncproto.Unresolved{ID: "r-1", Account: 2, Key: 20, AtMillis: c.now}
		for seq := range uint64(2) {
			c.ledger.Sync(c.now, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: seq + 1, Unresolved: []syncproto.Unresolved{doubt}}})
			c.commit()
			c.exec(`UPDATE unresolved SET credited = 1 WHERE node = ?`, c.edges[0].name)
		}
	}
	var node string
	var credited bool
	require.NoError(t, c.db.QueryRow(`SELECT node, credited FROM unresolved`).Scan(&node, &credited))
	require.Equal(t, c.edges[0].name, node)
	require.True(t, credited)
}

// TestAChangedPlanIsStoredWhole: each field has the value that it was last set to.
func TestAChangedPlanIsStoredWhole(t *testing.T) {
	l, db, commit := onFile(t)
	for _, plan := range []ledger.Plan{
		{ID: "starter", APIAccess: true, PerMinute: 1, MonthlyVolume: 2},
		{ID: "starter", Email: true, Phone: true, PerMinute: 3, MonthlyVolume: 4},
		{ID: "starter", APIAccess: true, Phone: true, PerMinute: 5, MonthlyVolume: 6},
		{ID: "starter", APIAccess: true, Email: true, PerMinute: 7, MonthlyVolume: 8},
	} {
		l.SetPlan(at, plan)
		require.NoError(t, commit())
		loaded, err := ledger.Load(t.Context(), db)
		require.NoError(t, err)
		stored, ok := loaded.Plan("starter")
		require.True(t, ok)
		require.Equal(t, plan, stored)
	}
}

// TestUsageThatIsBeyondAllMeasureIsStored within bounds: an edge that has lost count must not end all commits.
func TestUsageThatIsBeyondAllMeasureIsStored(t *testing.T) {
	l, db, commit := onFile(t)
	e := l.Edge("one")
	session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
	require.NoError(t, commit())
	_, err := db.Exec(`INSERT INTO usage (account, key, hour, endpoint, outcome, count) VALUES (1, 1, 1, 1, 3, 1 << 62), (1, 1, 2, 1, 3, -(1 << 62))`)
	require.NoError(t, err)
	for seq := range uint64(3) {
		var usage []syncproto.Usage
		for hour, count := range map[int32]int64{1: 1 << 40, 2: -1 << 40} {
			usage = append(usage, syncproto.Usage{Account: 1, Key: 1, Hour: hour, Endpoint: charge.Companies, Outcome: charge.Failed, Count: count})
		}
		l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: seq + 1, Usage: usage}})
		require.NoError(t, commit())
	}
	var most, least int64
	require.NoError(t, db.QueryRow(`SELECT max(count), min(count) FROM usage`).Scan(&most, &least))
	require.EqualValues(t, 1<<62, most)
	require.EqualValues(t, -1<<62, least)
}

// TestARestoreGoesOnWhenTheWriterStartsAgain: the edges that have not declared their leases are awaited still.
func TestARestoreGoesOnWhenTheWriterStartsAgain(t *testing.T) {
	_, db, commit := onFile(t)
	require.NoError(t, commit())
	for _, restored := range []bool{true, false} {
		_, err := ledger.TakeGeneration(t.Context(), db, 1, restored, ledger.Holder{})
		require.NoError(t, err)
		l, err := ledger.Load(t.Context(), db)
		require.NoError(t, err)
		require.True(t, l.Restoring)
		require.Equal(t, []string{"one"}, l.Awaited())
	}
}

// TestABackupThatIsRestoredTwiceGivesOtherIDs: edges may name those that were given after the first time.
func TestABackupThatIsRestoredTwiceGivesOtherIDs(t *testing.T) {
	var last [2]int64
	for i := range last {
		_, db, commit := onFile(t)
		require.NoError(t, commit())
		_, err := ledger.TakeGeneration(t.Context(), db, uint64(1000*i), true, ledger.Holder{})
		require.NoError(t, err)
		require.NoError(t, db.QueryRow(`SELECT seq FROM sqlite_sequence WHERE name = 'api_key'`).Scan(&last[i]))
	}
	require.EqualValues(t, 1000, last[1]-last[0])
}

// TestSpentCreditsAreEnteredOnceAnHour checks the credit journal, which is also the account's statement.
func TestSpentCreditsAreEnteredOnceAnHour(t *testing.T) {
	c := newCluster(t, 7)
	c.calm = true
	e := c.ledger.Edge(c.edges[0].name)
	require.NoError(t, c.ledger.ChangeCredits(c.now, 1, 1000, ledger.EntryBought, "top-up"))
	session := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1}).Session
	want := syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Target: 100}
	c.ledger.Sync(c.now, e, &syncproto.Sync{Session: session, Wants: []syncproto.Want{want}})
	c.commit()
	var leased int64
	require.NoError(t, c.db.QueryRow(`SELECT leased FROM account WHERE id = 1`).Scan(&leased))
	require.Equal(t, c.ledger.Account(1).Credits().Leased, leased, "as lists of accounts show it")
	require.Positive(t, leased)
	seq := uint64(0)
	spend := func(n int64) {
		seq++
		usage := syncproto.Usage{Account: 1, Key: 10, Hour: syncproto.Hour(c.now), Endpoint: charge.Companies, Outcome: charge.Found, Count: n}
		c.ledger.Sync(c.now, e, &syncproto.Sync{Session: session, NowMillis: c.now, Batch: &syncproto.Batch{Seq: seq, Usage: []syncproto.Usage{usage}}})
		c.commit()
		c.requireStored()
	}
	entries := func() (list []int64) {
		rows, err := c.db.Query(`SELECT amount FROM credit_entry WHERE account = 1 AND kind = 'spent' ORDER BY rowid`)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var n int64
			require.NoError(t, rows.Scan(&n))
			list = append(list, n)
		}
		return list
	}
	for range 3 {
		spend(2)
	}
	require.Empty(t, entries(), "within the first hour")
	c.now += 60 * 60 * 1000
	spend(1)
	require.Equal(t, []int64{-6}, entries(), "of the hour before")
	spend(1)
	require.Equal(t, []int64{-6}, entries())
	c.now += 60 * 60 * 1000
	spend(5)
	require.Equal(t, []int64{-6, -2}, entries())
	c.now += day
	say(c.ledger, c.now, e, session)
	c.commit()
	require.Equal(t, []int64{-6, -2, -5}, entries(), "a day later at the latest")
	var note string
	require.NoError(t, c.db.QueryRow(`SELECT note FROM credit_entry WHERE account = 1 AND amount = 1000`).Scan(&note))
	require.Equal(t, "top-up", note)
}
