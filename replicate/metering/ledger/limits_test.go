package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// TestNewsThatDoNotFitAReplyComeWithTheNext: an edge that holds leases of more accounts than a reply
// takes gets all of them, in the order of their versions.
func TestNewsThatDoNotFitAReplyComeWithTheNext(t *testing.T) {
	const accounts = syncproto.MaxRows + 7
	l := newLedger(t, 1, 100, "one")
	for id := int64(2); id <= accounts; id++ {
		require.NoError(t, l.AddAccount(id, "scale"))
		require.NoError(t, l.ChangeCredits(at, id, 100, ledger.EntryBought, ""))
	}
	e := l.Edge("one")
	session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
	s := &syncproto.Sync{Session: session}
	got := map[int64]bool{}
	for from := int64(1); from <= accounts; from += syncproto.MaxWants {
		s.Wants = nil
		for id := from; id < from+syncproto.MaxWants && id <= accounts; id++ {
			s.Wants = append(s.Wants, syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: id}, Target: 1})
		}
		l.Sync(at, e, s) // the reply is lost
	}
	s.Wants = nil
	for range 2 {
		r := l.Sync(at, e, s)
		_, err := syncproto.DecodeReply(r.Encode())
		require.NoError(t, err)
		require.Equal(t, s.Seen, r.Since)
		for _, row := range r.Rows {
			require.LessOrEqual(t, row.Version, r.Upto)
			got[row.Pool.Subject] = true
		}
		s.Seen = r.Upto
	}
	require.Len(t, got, accounts)
	require.Empty(t, l.Sync(at, e, s).Rows)
}

// TestNewsAreToldByWhatAnEdgeCanHaveSeen: one that says it has seen more gets those that follow, and a
// delayed message brings nothing back.
func TestNewsAreToldByWhatAnEdgeCanHaveSeen(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	one := newSpender(t, l, "one", 1)
	one.want(5, creditsOf1)
	one.sync(syncproto.Sync{Seen: 1 << 40})
	r := one.want(7, creditsOf1)
	require.Len(t, r.Rows, 1)
	require.EqualValues(t, 7, r.Rows[0].Granted)
	one.sync(syncproto.Sync{Seen: r.Upto})
	require.Equal(t, r.Upto, one.sync(syncproto.Sync{Seen: r.Since}).Since)
}

// TestRatesThatDoNotFitAReplyComeWithTheNext.
func TestRatesThatDoNotFitAReplyComeWithTheNext(t *testing.T) {
	const accounts = syncproto.MaxRates + 3
	l := newLedger(t, 1, 100, "one", "two")
	one, two := newSpender(t, l, "one", 1), newSpender(t, l, "two", 2)
	var pools []syncproto.Pool
	var rates []syncproto.Rate
	for id := int64(1); id <= accounts; id++ {
		if id > 1 {
			require.NoError(t, l.AddAccount(id, "scale"))
			require.NoError(t, l.ChangeCredits(at, id, 100, ledger.EntryBought, ""))
		}
		pools = append(pools, creditsOf(id))
		rates = append(rates, syncproto.Rate{Subject: id, Minute: syncproto.Minute(at), Count: 1})
	}
	two.want(1, pools...)
	one.sync(syncproto.Sync{Rates: rates})
	require.Len(t, two.sync(syncproto.Sync{}).Others, syncproto.MaxRates)
	require.Len(t, two.sync(syncproto.Sync{}).Others, 3)
}

// TestANewSessionHasNothingUrgent: the writer would answer every held message of it at once, because of
// news that were urgent in the session before.
func TestANewSessionHasNothingUrgent(t *testing.T) {
	f := newFixture(t, 1, "one")
	e, session := f.hello("one", syncproto.Hello{Boot: 1})
	for range 5 {
		say(f.l, at, e, session, syncproto.Want{Pool: creditsOf1, Target: 1, Urgent: true})
	}
	s := &syncproto.Sync{Session: session}
	require.True(t, f.l.HasNews(e, s))
	s.Session = f.l.Hello(at, e, &syncproto.Hello{Boot: 1, Epoch: e.Epoch}).Session
	s.Seen = f.l.Sync(at, e, s).Upto
	require.Less(t, s.Seen, uint64(5))
	require.False(t, f.l.HasNews(e, s))
	require.True(t, f.l.HasNews(e, &syncproto.Sync{Session: session, Seen: 1 << 40}), "of a session that is over")
}

// TestEpochsAreNumberedFromTheGeneration: a ledger that was lost may have given lower numbers.
func TestEpochsAreNumberedFromTheGeneration(t *testing.T) {
	f := newFixture(t, 9, "one")
	hello := func(boot uint64) uint64 { return f.l.Hello(at, f.l.Edge("one"), &syncproto.Hello{Boot: boot}).Epoch }
	require.EqualValues(t, 9, hello(1))
	require.EqualValues(t, 10, hello(2))
	require.EqualValues(t, 10, hello(2), "the same process asks again")
}

// TestAnAccountThatARestoreMadeIsSuspended: nobody has looked at it, and it has bought nothing.
func TestAnAccountThatARestoreMadeIsSuspended(t *testing.T) {
	f := newFixture(t, 9, "one")
	f.l.Restore()
	e, session := f.hello("one", syncproto.Hello{Boot: 1, Epoch: 5})
	lost := found(1)
	lost.Account = 7
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Usage: []syncproto.Usage{lost}}})
	require.True(t, f.l.Account(7).Suspended)
	require.EqualValues(t, 1, f.l.Account(7).Credits().Spent)
}

// TestAnAccountIsMadeOnlyByARestore: otherwise a node's nonsense would make accounts.
func TestAnAccountIsMadeOnlyByARestore(t *testing.T) {
	f := newFixture(t, 9, "one")
	e, session := f.hello("one", syncproto.Hello{Boot: 1})
	unknown := found(1)
	unknown.Account = 7
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Usage: []syncproto.Usage{unknown}}})
	require.Nil(t, f.l.Account(7))
}

// TestAmountsOfCreditsAreBounded, so that no sum of them overflows.
func TestAmountsOfCreditsAreBounded(t *testing.T) {
	const most = 1 << 46
	for name, c := range map[string]struct {
		amount int64
		kind   string
		err    error
	}{
		"the most":                    {most, ledger.EntryBought, nil},
		"more":                        {most + 1, ledger.EntryBought, ledger.ErrAmount},
		"the most, away":              {-most, ledger.EntryBought, nil},
		"more, away":                  {-most - 1, ledger.EntryBought, ledger.ErrAmount},
		"none":                        {0, ledger.EntryBought, ledger.ErrAmount},
		"compensated":                 {5, ledger.EntryCompensated, nil},
		"a compensation that is less": {-5, ledger.EntryCompensated, ledger.ErrAmount},
		"another kind":                {5, ledger.EntrySpent, ledger.ErrAmount},
	} {
		l := newLedger(t, 1, 100)
		require.ErrorIs(t, l.ChangeCredits(at, 1, c.amount, c.kind, ""), c.err, name)
		require.NoError(t, l.Check(), name)
		if c.err != nil {
			require.EqualValues(t, 100, l.Account(1).Credits().Left(), name)
		}
	}
	l := newLedger(t, 1, most)
	require.NoError(t, l.ChangeCredits(at, 1, most, ledger.EntryCompensated, ""))
	require.ErrorIs(t, l.ChangeCredits(at, 1, 1, ledger.EntryBought, ""), ledger.ErrAmount, "it has too many already")
	require.ErrorIs(t, l.ChangeCredits(at, 2, 1, ledger.EntryBought, ""), ledger.ErrNoAccount)
}

// TestALieInARestoreLeavesAnAccountOfUse: a node says that the ledger was restored, and reports far more than
// the account has. Once the node is retired, bought credits and a greater volume can be spent.
func TestALieInARestoreLeavesAnAccountOfUse(t *testing.T) {
	l := newLedger(t, 9, 100, "one", "liar")
	one, liar := newSpender(t, l, "one", 1), newSpender(t, l, "liar", 2)
	liar.session = l.Hello(at, liar.e, &syncproto.Hello{Boot: 2, Epoch: liar.epoch, Generation: 10}).Session
	require.True(t, l.Restoring)
	liar.batch([]syncproto.Usage{found(1 << 47)})
	require.NoError(t, l.Retire(at, "liar", false))
	one.sync(syncproto.Sync{DeclaredLast: true})
	require.False(t, l.Restoring)
	require.Zero(t, l.Account(1).Credits().Left())
	require.NoError(t, l.ChangeCredits(at, 1, 50, ledger.EntryBought, ""))
	plan, _ := l.Plan(l.Account(1).Plan)
	plan.MonthlyVolume += 50
	l.SetPlan(at, plan)
	for _, row := range one.want(4, creditsOf1, volumeOf(syncproto.Month(at))).Rows {
		require.EqualValues(t, 4, row.Granted, "%+v", row.Pool)
	}
}

// TestAnotherPlanHoldsForEveryMonthThatIsOpen, also for the next one, in which an edge whose clock is
// ahead spends already.
func TestAnotherPlanHoldsForEveryMonthThatIsOpen(t *testing.T) {
	for months := int32(-1); months <= 1; months++ {
		l := newLedger(t, 1, 10_000, "one")
		l.SetPlan(at, ledger.Plan{ID: "starter", APIAccess: true, PerMinute: 60, MonthlyVolume: 5})
		e := l.Edge("one")
		session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
		pool := volumeOf(syncproto.Month(at) + months)
		say(l, at, e, session, syncproto.Want{Pool: pool, Target: 3})
		require.NoError(t, l.ChangeAccount(at, 1, "starter", false))
		r := say(l, at, e, session, syncproto.Want{Pool: pool, Target: 1000, Urgent: true})
		for _, row := range r.Rows {
			require.LessOrEqual(t, row.Granted, int64(5), "%d months from now", months)
		}
		require.NoError(t, l.Check())
	}
}

// TestAnotherPlanHoldsForTheMonthsOfARightClock: an account's plan is changed while the writer's clock is wrong by
// months, and its edge's is right.
func TestAnotherPlanHoldsForTheMonthsOfARightClock(t *testing.T) {
	for _, wrong := range []int64{0, at + 100*24*3_600_000} { // a machine that begins in 1970, and one that is ahead
		l := newLedger(t, 1, 10_000, "one")
		l.SetPlan(at, ledger.Plan{ID: "starter", APIAccess: true, PerMinute: 60, MonthlyVolume: 100})
		l.SetPlan(at, ledger.Plan{ID: "growth", APIAccess: true, PerMinute: 60, MonthlyVolume: 1000})
		require.NoError(t, l.ChangeAccount(at, 1, "starter", false))
		e := l.Edge("one")
		session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
		pool := volumeOf(syncproto.Month(at))
		say(l, at, e, session, syncproto.Want{Pool: pool, Target: 3})
		require.NoError(t, l.ChangeAccount(wrong, 1, "growth", false))
		r := say(l, at, e, session, syncproto.Want{Pool: pool, Target: 150})
		require.Equal(t, int64(150), r.Rows[len(r.Rows)-1].Granted, "a half of what is left is more")
		require.NoError(t, l.Check())
	}
}

// TestALowerVolumeOfAPlanHoldsForItsAccounts, and not for the accounts of another plan.
func TestALowerVolumeOfAPlanHoldsForItsAccounts(t *testing.T) {
	l := newLedger(t, 1, 100, "one")
	l.SetPlan(at, ledger.Plan{ID: "starter", MonthlyVolume: 50})
	require.NoError(t, l.AddAccount(2, "starter"))
	require.ErrorIs(t, l.AddAccount(2, "starter"), ledger.ErrTaken)
	require.ErrorIs(t, l.AddAccount(3, "none"), ledger.ErrNoPlan)
	require.ErrorIs(t, l.AddEdge("one"), ledger.ErrTaken)
	e := l.Edge("one")
	session := l.Hello(at, e, &syncproto.Hello{Boot: 1}).Session
	other := syncproto.Pool{Kind: syncproto.Volume, Subject: 2, Window: syncproto.Month(at)}
	own := volumeOf(syncproto.Month(at))
	r := say(l, at, e, session, syncproto.Want{Pool: own, Target: 20}, syncproto.Want{Pool: other, Target: 20})
	l.SetPlan(at, ledger.Plan{ID: "scale", MonthlyVolume: 10})
	r = l.Sync(at, e, &syncproto.Sync{Session: session, Seen: r.Upto})
	require.Len(t, r.Rows, 1)
	require.Equal(t, own, r.Rows[0].Pool)
	require.True(t, r.Rows[0].Recall, "more is out than it may be")
}

// TestRatesOfOtherMinutesAreNotTold: an edge would count requests of the past against the present.
func TestRatesOfOtherMinutesAreNotTold(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	n := f.start(emptyDisk())
	f.serve("two", n)
	one, session := f.hello("one", syncproto.Hello{Boot: 1})
	minute := syncproto.Minute(at)
	tell := func(now, minute, count int64) {
		f.l.Sync(now, one, &syncproto.Sync{Session: session, Rates: []syncproto.Rate{{Subject: 1, Minute: minute, Count: count}}})
	}
	others := func(times int) []syncproto.Rate { return f.exchange("two", n, times).Others }
	tell(at, minute-2, 5)
	tell(at, minute+2, 6)
	require.Empty(t, others(1))
	tell(at, minute-1, 7)
	require.Equal(t, []syncproto.Rate{{Subject: 1, Minute: minute - 1, Count: 7}}, others(1))
	tell(at, minute, 3)
	tell(at, minute, 2) // an older message
	tell(at, minute-1, 9)
	require.Equal(t, []syncproto.Rate{{Subject: 1, Minute: minute, Count: 3}}, others(1))
	require.Empty(t, others(1), "told once")
	unknown := f.l.Edge("one")
	f.l.Sync(at, unknown, &syncproto.Sync{Session: session, Rates: []syncproto.Rate{{Subject: 99, Minute: minute, Count: 5}}})
	require.Empty(t, others(1))
}

// TestARetiredEdgesRatesDoNotCount: whoever has its machine could use up the rate of every account, for ever.
func TestARetiredEdgesRatesDoNotCount(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	n := f.start(emptyDisk())
	f.serve("two", n)
	one, session := f.hello("one", syncproto.Hello{Boot: 1})
	tell := func(count int64) {
		for _, subject := range []int64{1, syncproto.OfKey(1)} {
			f.l.Sync(at, one, &syncproto.Sync{Session: session, Rates: []syncproto.Rate{{Subject: subject, Minute: syncproto.Minute(at), Count: count}}})
		}
	}
	tell(3)
	require.Len(t, f.exchange("two", n, 1).Others, 2)
	require.NoError(t, f.l.Retire(at, "one", false))
	tell(1 << 30)
	require.Empty(t, f.exchange("two", n, 1).Others)
}

// TestRatesAreOfTheSession: an edge that has a new session does not hold the credits of the one before,
// and gets no list of the accounts whose counts changed then.
func TestRatesAreOfTheSession(t *testing.T) {
	f := newFixture(t, 1, "one", "two")
	n := f.start(emptyDisk())
	f.serve("two", n)
	one, session := f.hello("one", syncproto.Hello{Boot: 1})
	f.l.Sync(at, one, &syncproto.Sync{Session: session, Rates: []syncproto.Rate{{Subject: 1, Minute: syncproto.Minute(at), Count: 5}}})
	two := f.l.Edge("two")
	fresh := f.l.Hello(at, two, &syncproto.Hello{Boot: 77}).Session // an empty state directory
	require.Empty(t, say(f.l, at, two, fresh).Others)
	f.l.Sync(at, one, &syncproto.Sync{Session: session, Rates: []syncproto.Rate{{Subject: 1, Minute: syncproto.Minute(at), Count: 6}}})
	require.Empty(t, say(f.l, at, two, fresh).Others)
	counted := func(count int64) []syncproto.Rate {
		return []syncproto.Rate{{Subject: 1, Minute: syncproto.Minute(at), Count: count}}
	}
	require.Equal(t, counted(6), say(f.l, at, two, fresh, syncproto.Want{Pool: creditsOf1, Target: 1}).Others, "it hears of them with its lease")
	require.Empty(t, say(f.l, at, two, fresh, syncproto.Want{Pool: creditsOf1, Target: 2}).Others, "and once")
	f.l.Sync(at, one, &syncproto.Sync{Session: session, Rates: counted(7)})
	require.Equal(t, counted(7), say(f.l, at, two, fresh).Others)
	again := f.l.Hello(at, two, &syncproto.Hello{Boot: 77, Epoch: two.Epoch}).Session
	require.Equal(t, counted(7), say(f.l, at, two, again).Others, "a process that starts again has forgotten them")
	session = f.l.Hello(at, one, &syncproto.Hello{Boot: 1, Epoch: one.Epoch}).Session
	require.Empty(t, say(f.l, at, one, session).Others, "its own are no others'")
}

// TestCompensationsAreEntered in the account's journal.
func TestCompensationsAreEntered(t *testing.T) {
	c := newCluster(t, 7)
	c.calm = true
	name := c.edges[0].name
	e := c.ledger.Edge(name)
	session := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1}).Session
	say(c.ledger, c.now, e, session, syncproto.Want{Pool: creditsOf1, Target: 6})
	leased := c.ledger.Account(1).Credits().Leased
	require.Positive(t, leased)
	require.NoError(t, c.ledger.Retire(c.now, name, false))
	c.commit()
	sums := map[string]int64{}
	rows, err := c.db.Query(`SELECT kind, sum(amount) FROM credit_entry WHERE account = 1 AND kind <> 'bought' GROUP BY kind`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var kind string
		var sum int64
		require.NoError(t, rows.Scan(&kind, &sum))
		sums[kind] = sum
	}
	require.Equal(t, map[string]int64{ledger.EntryLost: -leased, ledger.EntryCompensated: leased}, sums)
	c.checkJournal(1)
	// A late report turns the loss into a charge, and the compensation stays.
	usage := syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(c.now), Endpoint: charge.Companies, Outcome: charge.Found, Count: 1}
	late := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1, Epoch: e.Epoch}).Session
	c.ledger.Sync(c.now, e, &syncproto.Sync{Session: late, Batch: &syncproto.Batch{Seq: 1, Of: e.Epoch, Usage: []syncproto.Usage{usage}}})
	c.commit()
	require.EqualValues(t, 1, c.ledger.Account(1).Credits().Spent)
	c.checkJournal(1)
}

// TestARetiredEdgeHasFewEpochs: each is a row, which stays. A restored ledger lacks some.
func TestARetiredEdgeHasFewEpochs(t *testing.T) {
	c := newCluster(t, 7)
	c.calm = true
	name := c.edges[0].name
	e := c.ledger.Edge(name)
	require.NoError(t, c.ledger.Retire(c.now, name, false))
	for n := range uint64(300) {
		r := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: n, Epoch: 1000 + n})
		require.Equal(t, syncproto.Retired, r.Status)
		require.Equal(t, 1000+min(n, ledger.RetiredEpochs-1), r.Epoch)
	}
	c.commit()
	var kept int
	require.NoError(t, c.db.QueryRow(`SELECT count(*) FROM node_epoch WHERE node = ?`, name).Scan(&kept))
	require.Equal(t, ledger.RetiredEpochs, kept)
	e.Epoch++ // as where its epoch was superseded before
	r := c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1, Epoch: 7})
	require.EqualValues(t, 1000+ledger.RetiredEpochs-1, r.Epoch, "the newest that there is")
	const day = 24 * 60 * 60 * 1000
	c.now += day
	r = c.ledger.Hello(c.now, e, &syncproto.Hello{Boot: 1, Epoch: 7})
	require.EqualValues(t, 7, r.Epoch, "one of a lost ledger is taken on another day")
}

// TestRatesOfAKeyAreToldWhereItIsServed, and to no edge that has never seen it.
func TestRatesOfAKeyAreToldWhereItIsServed(t *testing.T) {
	f := newFixture(t, 1, "one", "two", "three")
	n := f.start(emptyDisk())
	f.serve("two", n) // with key 1
	one, session := f.hello("one", syncproto.Hello{Boot: 1})
	three, idle := f.hello("three", syncproto.Hello{Boot: 1})
	rate := syncproto.Rate{Subject: syncproto.OfKey(1), Minute: syncproto.Minute(at), Count: 5}
	f.l.Sync(at, one, &syncproto.Sync{Session: session, Rates: []syncproto.Rate{rate, {Subject: syncproto.OfKey(2), Minute: rate.Minute, Count: 5}}})
	require.Equal(t, []syncproto.Rate{rate}, f.exchange("two", n, 1).Others)
	require.Empty(t, f.exchange("two", n, 1).Others, "told once")
	require.Empty(t, say(f.l, at, three, idle).Others)
	ofKey := syncproto.Pool{Kind: syncproto.NotFound, Subject: 1, Window: syncproto.Day(at)}
	require.Equal(t, []syncproto.Rate{rate}, say(f.l, at, three, idle, syncproto.Want{Pool: ofKey, Target: 1}).Others, "now it serves it")
	for _, minute := range []int64{1 << 46, -1 << 46} { // a broken edge's
		f.l.Sync(at, one, &syncproto.Sync{Session: session, Rates: []syncproto.Rate{{Subject: rate.Subject, Minute: minute, Count: 9}}})
	}
	require.Empty(t, f.exchange("two", n, 1).Others)
}
