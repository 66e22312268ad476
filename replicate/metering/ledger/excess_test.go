package ledger_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// TestWhatANodeMayAddInADay is bounded for each kind of what leaves rows.
func TestWhatANodeMayAddInADay(t *testing.T) {
	const day, left = 24 * 60 * 60 * 1000, 5
	usage := func(s *spender, key int64, hour int32) {
		s.batch([]syncproto.Usage{{Account: 1, Key: key, Hour: hour, Endpoint: charge.LLPs, Outcome: charge.Failed, Count: 1}})
	}
	now := syncproto.Hour(at)
	for name, send := range map[string]func(s *spender, n int){
		"usage of a key that there is not": func(s *spender, n int) { usage(s, int64(n)+2, now) },
		"an hour of usage":                 func(s *spender, n int) { usage(s, 1, now-int32(n)) },
		"the not-found cap of a key that is none": func(s *spender, n int) {
			s.want(1, syncproto.Pool{Kind: syncproto.NotFound, Subject: int64(n) + 2, Window: syncproto.Day(at)})
		},
		"an epoch": func(s *spender, n int) { s.l.Hello(s.now, s.e, &syncproto.Hello{Boot: uint64(n) + 10}) },
		"a lease": func(s *spender, n int) {
			s.want(1, creditsOf1)
			s.seq++
			s.sync(syncproto.Sync{Batch: &syncproto.Batch{Seq: s.seq, Of: s.epoch, Returns: []syncproto.Return{{Pool: creditsOf1, Close: true}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, 1, 100, "one", "two")
			l.AddKey(1, 1)
			one, two := newSpender(t, l, "one", 1), newSpender(t, l, "two", 2)
			l.AddedBefore(one.e, at, left)
			for n := range left {
				require.NoError(t, l.Excess(one.e))
				send(one, n)
			}
			require.NoError(t, l.Excess(one.e))
			send(one, left)
			require.ErrorIs(t, l.Excess(one.e), ledger.ErrExcess)
			require.NoError(t, l.Excess(two.e), "each node for itself")
			one.now += day
			send(one, left)
			require.NoError(t, l.Excess(one.e), "a day later")
			l.AddedBefore(one.e, one.now, -1)
			one.e.Forgive()
			require.NoError(t, l.Excess(one.e), "with another token")
		})
	}
}

// TestChargesInDoubtBeyondADaysListAreDropped: a node is not fenced for them, since its component may have lost the verdicts.
func TestChargesInDoubtBeyondADaysListAreDropped(t *testing.T) {
	c := newCluster(t, 7)
	c.calm = true
	e := c.ledger.Edge(c.edges[0].name)
	session := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1}).Session
	for seq := range uint64(3) {
		c.ledger.AddedBefore(e, c.now, 2-int(seq))
		require.False(t, e.DropsDoubts())
		b := &syncproto.Batch{Seq: seq + 1, Of: e.Epoch, Unresolved: []syncproto.Unresolved{{ID: fmt.Sprint(seq), Account: 1, Key: 1, AtMillis: c.now}}}
		c.ledger.Sync(c.now, e, &syncproto.Sync{Session: session, Batch: b})
		c.commit()
	}
	require.True(t, e.DropsDoubts())
	require.False(t, e.DropsDoubts(), "it is said once")
	require.NoError(t, c.ledger.Excess(e))
	var kept int
	require.NoError(t, c.db.QueryRow(`SELECT count(*) FROM unresolved`).Scan(&kept))
	require.Equal(t, 2, kept)
}

// TestNothingIsTooMuchAfterARestore, up to the next day: edges report days at once, of keys that the ledger does not know.
func TestNothingIsTooMuchAfterARestore(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	l.Restoring = true
	one.want(1, creditsOf1)
	l.Restoring = false
	for now, wanted := range map[int64]error{at: nil, at + day: nil, at + 2*day: ledger.ErrExcess} {
		one.now = now
		one.want(1, creditsOf1)
		l.AddedBefore(one.e, now, -1)
		require.ErrorIs(t, l.Excess(one.e), wanted, now)
	}
}

// TestUsageOfKnownKeysIsNoExcess, however often it is reported, nor is an unknown key's that is repeated.
func TestUsageOfKnownKeysIsNoExcess(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	for key := range int64(100) {
		l.AddKey(key, 1)
	}
	one := newSpender(t, l, "one", 1)
	l.AddedBefore(one.e, at, 2)
	for range 3 {
		var rows []syncproto.Usage
		for key := int64(1); key <= 100; key++ { // the last one is not known
			rows = append(rows, syncproto.Usage{Account: 1, Key: key, Hour: syncproto.Hour(at), Endpoint: charge.LLPs, Outcome: charge.Found, Count: 1})
		}
		l.Sync(at, one.e, &syncproto.Sync{Session: one.session, Batch: &syncproto.Batch{Seq: one.seq + 1, Of: one.epoch, Usage: rows}})
		one.seq++
	}
	require.NoError(t, l.Excess(one.e))
}
