package ledger_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

const at = int64(1_790_000_000_000)

// fixture is a ledger with one account of 100 credits, and edges that exchange messages with it
// when told.
type fixture struct {
	t    *testing.T
	l    *ledger.Ledger
	boot uint64
	ids  int
}

func newFixture(t *testing.T, generation uint64, names ...string) *fixture {
	return &fixture{t: t, l: newLedger(t, generation, 100, names...), boot: 100}
}

// newLedger is a ledger with account 1 and edges.
func newLedger(t *testing.T, generation uint64, credits int64, names ...string) *ledger.Ledger {
	l := ledger.New(generation)
	l.SetPlan(at, ledger.Plan{ID: "scale", APIAccess: true, PerMinute: 60, MonthlyVolume: 1000})
	require.NoError(t, l.AddAccount(1, "scale"))
	require.NoError(t, l.ChangeCredits(at, 1, credits, ledger.EntryBought, ""))
	for _, n := range names {
		require.NoError(t, l.AddEdge(n))
	}
	return l
}

// start runs an edge on a disk.
func (f *fixture) start(d *disk) *edge {
	n := &edge{disk: d, state: lease.New(d)}
	for _, r := range d.records {
		require.NoError(f.t, n.state.Replay(r))
	}
	f.boot++
	n.state.Boot(f.boot)
	return n
}

func emptyDisk() *disk { return &disk{archive: map[[2]uint64]*syncproto.Batch{}} }

// exchange delivers messages of an edge and their replies, and returns the last reply.
func (f *fixture) exchange(name string, n *edge, times int) (r *syncproto.Reply) {
	e := f.l.Edge(name)
	for range times {
		sync := !n.state.Greeting()
		if sync {
			r = f.l.Sync(at, e, n.state.Sync(at))
		} else {
			r = f.l.Hello(at, e, n.state.Hello(at))
		}
		if b := n.state.Apply(at, r, sync).Batch; b != nil {
			n.disk.archive[[2]uint64{b.Epoch, b.Batch.Seq}] = b.Batch
		}
		require.NoError(f.t, f.l.Check())
		require.NoError(f.t, n.state.Check())
	}
	return r
}

func (f *fixture) ask(n *edge) (id string, a lease.Answer) {
	f.ids++
	r := charge.Request{ID: fmt.Sprint("id", f.ids), Account: 1, Key: 1, PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
	return r.ID, n.state.Charge(at, &r, false)
}

// serve charges one request, after getting a lease for it, and reports it.
func (f *fixture) serve(name string, n *edge) (id string) {
	id, a := f.ask(n)
	for tries := 0; a.Verdict.Code == charge.MeteringUnavailable && tries < 5; tries++ {
		f.exchange(name, n, 2)
		id, a = f.ask(n)
	}
	require.Equal(f.t, "", a.Verdict.Code)
	f.exchange(name, n, 3)
	return id
}

// supersede gives the edge another epoch, by a delayed Hello of an earlier run.
func (f *fixture) supersede(name string) {
	f.l.Hello(at, f.l.Edge(name), &syncproto.Hello{Boot: 9})
}

// settle exchanges messages until the edge has nothing left of a superseded epoch.
func (f *fixture) settle(name string, n *edge) {
	for range 30 {
		if n.state.Hello(at).Epoch == 0 {
			return
		}
		f.exchange(name, n, 1)
	}
	require.Fail(f.t, "the epoch does not settle")
}

func (f *fixture) credits() *ledger.Pool { return f.l.Account(1).Credits() }

// stale is what is outstanding in ended epochs of an edge.
func (f *fixture) stale(name string) int64 {
	_, stale := f.l.Out(f.l.Edge(name))
	return stale
}

func TestCreditsGrantedInALostReplyAreReturnedWhenTheEpochEnds(t *testing.T) {
	f := newFixture(t, 1, "one")
	n := f.start(emptyDisk())
	f.exchange("one", n, 1)
	_, a := f.ask(n)
	require.True(t, a.Wait)
	f.l.Sync(at, f.l.Edge("one"), n.state.Sync(at))
	n.state.Lost()
	require.Positive(t, f.credits().Leased)
	f.supersede("one")
	f.exchange("one", n, 60)
	require.Zero(t, f.stale("one"))
	require.Equal(t, syncproto.OK, n.state.Standing())
}

func TestAVoidAfterItsEpochWasSettledRestoresTheCredit(t *testing.T) {
	f := newFixture(t, 1, "one")
	n := f.start(emptyDisk())
	id := f.serve("one", n)
	f.supersede("one")
	f.settle("one", n)
	require.Zero(t, f.credits().Leased)
	_, err := n.state.Void(at, id)
	require.NoError(t, err)
	f.exchange("one", n, 30)
	require.Zero(t, f.stale("one"))
	require.EqualValues(t, 100, f.credits().Balance())
}

func TestAVoidAfterItsLeaseWasWrittenOffRestoresTheCredit(t *testing.T) {
	f := newFixture(t, 1, "one")
	n := f.start(emptyDisk())
	id := f.serve("one", n)
	f.supersede("one")
	require.NoError(t, f.l.Retire(at, "one", true))
	require.EqualValues(t, 99, f.credits().Balance())
	_, err := n.state.Void(at, id)
	require.NoError(t, err)
	f.exchange("one", n, 10)
	require.Zero(t, f.credits().Spent)
	require.EqualValues(t, 100, f.credits().Balance())
}

// TestAClosedLeaseThatWasWrittenOffIsNoNews: the edge has forgotten it, and would count its grant again.
func TestAClosedLeaseThatWasWrittenOffIsNoNews(t *testing.T) {
	f := newFixture(t, 1, "one")
	n := f.start(emptyDisk())
	f.serve("one", n)
	f.supersede("one")
	e := f.l.Edge("one")
	session := f.l.Hello(at, e, n.state.Hello(at)).Session
	require.NoError(t, f.l.Retire(at, "one", true))
	reply := f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{
		Seq: n.state.Hello(at).Sealed + 1, Of: n.state.Epoch(), Returns: []syncproto.Return{{Pool: creditsOf1, Units: 1, Close: true}},
	}})
	require.NoError(t, f.l.ChangeCredits(at, 1, 7, ledger.EntryBought, "")) // a new balance is news of the other leases
	for _, r := range []*syncproto.Reply{reply, f.l.Sync(at, e, &syncproto.Sync{Session: session, Seen: reply.Upto})} {
		for _, row := range r.Rows {
			require.NotEqual(t, creditsOf1, row.Pool)
		}
	}
}

// TestALeaseDeclaredAfterItWasWrittenOffIsCompensated: a restored ledger knows less of a lease than its edge,
// and an operator retires the edge's old epochs before it has declared them.
func TestALeaseDeclaredAfterItWasWrittenOffIsCompensated(t *testing.T) {
	f := newFixture(t, 1, "one")
	n := f.start(emptyDisk())
	f.serve("one", n)
	f.supersede("one")
	session := f.l.Hello(at, f.l.Edge("one"), n.state.Hello(at)).Session
	f.l.Restore()
	require.NoError(t, f.l.Retire(at, "one", true))
	lost := f.credits().Lost
	f.l.Sync(at, f.l.Edge("one"), &syncproto.Sync{
		Session: session, Declared: []syncproto.Declared{{Pool: creditsOf1, Granted: lost + f.credits().Spent + 7}}, DeclaredLast: true,
	})
	require.NoError(t, f.l.Check())
	require.Equal(t, lost+7, f.credits().Lost)
	require.Equal(t, lost+7, f.credits().Compensated)
	require.EqualValues(t, 99, f.credits().Balance())
}

// TestAVoidOfAnUnknownEpochReturnsToThePool voids a charge of an epoch that the ledger does not
// have.
func TestAVoidOfAnUnknownEpochReturnsToThePool(t *testing.T) {
	f := newFixture(t, 1, "one")
	n := f.start(emptyDisk())
	f.serve("one", n)
	e := f.l.Edge("one")
	session := f.l.Hello(at, e, n.state.Hello(at)).Session
	leased := f.credits().Leased
	use := syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.Companies, Outcome: charge.Found, Count: -1}
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: n.state.Hello(at).Sealed + 1, Of: 77, Usage: []syncproto.Usage{use}}})
	require.Zero(t, f.credits().Spent)
	require.Equal(t, leased, f.credits().Leased)
	require.NoError(t, f.l.Check())
}

// TestAForkGetsAnotherEpoch clones the disk of the process that got the newest epoch. The clone
// reports first.
func TestAForkGetsAnotherEpoch(t *testing.T) {
	f := newFixture(t, 1, "one")
	original := f.start(emptyDisk())
	f.serve("one", original)
	clone := f.start(original.disk.copy())
	f.exchange("one", clone, 2)
	f.serve("one", clone)
	before := original.state.Epoch()
	f.exchange("one", original, 20)
	require.Greater(t, original.state.Epoch(), before)
	require.False(t, original.state.Greeting())
}

func TestAnEdgeWithNothingLeftLearnsThatItIsRetired(t *testing.T) {
	f := newFixture(t, 1, "one")
	n := f.start(emptyDisk())
	f.serve("one", n)
	f.supersede("one")
	f.settle("one", n)
	require.NoError(t, f.l.Retire(at, "one", false))
	f.exchange("one", n, 10)
	require.Equal(t, syncproto.Retired, n.state.Standing())
	require.False(t, n.state.Greeting())
}

// TestRetroactiveGrantsAreNotCountedTwice checks the sum of grants by which an edge shows that
// the ledger is older than it was. Hello brings the sum, the declaration its parts.
func TestRetroactiveGrantsAreNotCountedTwice(t *testing.T) {
	f := newFixture(t, 9, "one")
	f.l.Restore()
	e := f.l.Edge("one")
	hello := syncproto.Hello{Boot: 1, Epoch: 5, Sealed: 1, Acked: 1, Granted: 20}
	session := f.l.Hello(at, e, &hello).Session
	use := syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.Companies, Outcome: charge.Found, Count: 10}
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Of: 5, Usage: []syncproto.Usage{use}}})
	declared := []syncproto.Declared{{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Granted: 20}}
	f.l.Sync(at, e, &syncproto.Sync{Session: session, Declared: declared, DeclaredLast: true})
	require.False(t, f.l.Restoring)
	hello.Granted = 25
	f.l.Hello(at, e, &hello)
	require.True(t, f.l.Restoring, "the edge shows five units more than the ledger granted")
}

// TestLeasesCanBeSpentDuringARestore has one edge of two sync with a restored ledger that does
// not have its lease, or has it as ended.
func TestLeasesCanBeSpentDuringARestore(t *testing.T) {
	for name, known := range map[string]bool{"granted after the backup": false, "ended in the backup": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, "one", "away")
			n := f.start(emptyDisk())
			f.serve("one", n)
			back := newFixture(t, 900, "one", "away")
			back.ids = f.ids
			back.l.Hello(at, back.l.Edge("away"), &syncproto.Hello{Boot: 55})
			if known {
				const days = 2 * 24 * 60 * 60 * 1000
				e := back.l.Edge("one")
				back.l.Restore()
				session := back.l.Hello(at-days, e, &syncproto.Hello{Epoch: n.state.Epoch(), Boot: 101}).Session
				back.l.Sync(at-days, e, &syncproto.Sync{Session: session, DeclaredLast: true})
			}
			back.l.Restore()
			back.exchange("one", n, 12)
			require.Equal(t, []string{"away"}, back.l.Awaited())
			_, a := back.ask(n)
			require.Equal(t, "", a.Verdict.Code)
		})
	}
}

// TestAnUnannouncedRestoreIsNoticed restores a backup from before the writer's last start,
// without telling the writer. The generation then differs from the one that the edges know.
func TestAnUnannouncedRestoreIsNoticed(t *testing.T) {
	c := newCluster(t, 3)
	c.calm = true
	n := c.edges[0]
	for got := 0; got < 5; {
		c.exchange(n)
		r := charge.Request{ID: fmt.Sprint("x", c.now), Account: 1, Key: 10, PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
		if c.now++; n.state.Charge(c.now, &r, false).Verdict.Code == "" {
			got++
		}
	}
	c.saved = "file:/unannounced-restore?vfs=memdb&_txlock=immediate"
	require.NoError(t, c.open(c.saved).Ping())
	c.exec(`VACUUM INTO ?`, c.saved)
	c.openWriter(false)
	for range 6 {
		c.exchange(n)
	}
	require.EqualValues(t, 5, c.ledger.Account(1).Credits().Spent)
	c.ledger.Hello(c.now, c.ledger.Edge(n.name), &syncproto.Hello{Boot: 9}) // ends the epoch
	c.commit()
	for i := 0; i < 40 && n.state.Hello(c.now).Epoch != 0; i++ {
		c.exchange(n)
	}
	require.Zero(t, n.state.Hello(c.now).Epoch)
	c.db, c.ledger = c.open(c.saved), nil
	c.openWriter(false)
	for range 60 {
		c.now += 1000
		c.exchange(n)
	}
	require.EqualValues(t, 5, c.ledger.Account(1).Credits().Spent)
}
