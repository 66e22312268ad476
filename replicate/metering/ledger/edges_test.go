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

// pair is a ledger with one account of 100 credits, and edges that speak to it when told.
type pair struct {
	t    *testing.T
	l    *ledger.Ledger
	boot uint64
	ids  int
}

func newPair(t *testing.T, generation uint64, names ...string) *pair {
	return &pair{t: t, l: newLedger(t, generation, 100, names...), boot: 100}
}

// newLedger is a ledger with an account of so many credits, and edges.
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
func (p *pair) start(d *disk) *node {
	n := &node{disk: d, book: lease.New(d)}
	for _, r := range d.records {
		require.NoError(p.t, n.book.Replay(r))
	}
	p.boot++
	n.book.Boot(p.boot)
	return n
}

func emptyDisk() *disk { return &disk{kept: map[[2]uint64]*syncproto.Batch{}} }

// speak carries messages of an edge and their answers, and returns the last answer.
func (p *pair) speak(name string, n *node, times int) (r *syncproto.Reply) {
	e := p.l.Edge(name)
	for range times {
		sync := !n.book.Greeting()
		if sync {
			r = p.l.Sync(at, e, n.book.Sync(at))
		} else {
			r = p.l.Hello(at, e, n.book.Hello(at))
		}
		if b := n.book.Apply(at, r, sync).Batch; b != nil {
			n.disk.kept[[2]uint64{b.Epoch, b.Batch.Seq}] = b.Batch
		}
		require.NoError(p.t, p.l.Check())
		require.NoError(p.t, n.book.Check())
	}
	return r
}

func (p *pair) ask(n *node) (id string, a lease.Answer) {
	p.ids++
	r := charge.Request{ID: fmt.Sprint("id", p.ids), Account: 1, Key: 1, PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
	return r.ID, n.book.Charge(at, &r, false)
}

// serve charges one request, with a lease got before, and reports it.
func (p *pair) serve(name string, n *node) (id string) {
	id, a := p.ask(n)
	for tries := 0; a.Verdict.Code == charge.MeteringUnavailable && tries < 5; tries++ {
		p.speak(name, n, 2)
		id, a = p.ask(n)
	}
	require.Equal(p.t, "", a.Verdict.Code)
	p.speak(name, n, 3)
	return id
}

// supersede has the writer give another epoch, to a message of an earlier run that was
// under way for long.
func (p *pair) supersede(name string) {
	p.l.Hello(at, p.l.Edge(name), &syncproto.Hello{Boot: 9})
}

// settle speaks until the edge has nothing left of a superseded epoch.
func (p *pair) settle(name string, n *node) {
	for range 30 {
		if n.book.Hello(at).Epoch == 0 {
			return
		}
		p.speak(name, n, 1)
	}
	require.Fail(p.t, "the epoch does not settle")
}

func (p *pair) credits() *ledger.Pool { return p.l.Account(1).Credits() }

// stale is what ended epochs of an edge hold.
func (p *pair) stale(name string) int64 {
	_, stale := p.l.Out(p.l.Edge(name))
	return stale
}

func TestCreditsOfALostAnswerGoBackWhenTheEpochEnds(t *testing.T) {
	p := newPair(t, 1, "one")
	n := p.start(emptyDisk())
	p.speak("one", n, 1)
	_, a := p.ask(n)
	require.True(t, a.Wait)
	p.l.Sync(at, p.l.Edge("one"), n.book.Sync(at))
	n.book.Lost()
	require.Positive(t, p.credits().Leased)
	p.supersede("one")
	p.speak("one", n, 60)
	require.Zero(t, p.stale("one"))
	require.Equal(t, syncproto.OK, n.book.Standing())
}

func TestAVoidAfterItsEpochWasSettledGivesTheCreditBack(t *testing.T) {
	p := newPair(t, 1, "one")
	n := p.start(emptyDisk())
	id := p.serve("one", n)
	p.supersede("one")
	p.settle("one", n)
	require.Zero(t, p.credits().Leased)
	_, err := n.book.Void(at, id)
	require.NoError(t, err)
	p.speak("one", n, 30)
	require.Zero(t, p.stale("one"))
	require.EqualValues(t, 100, p.credits().Balance())
}

func TestAVoidAfterItsLeaseWasGivenUpGivesTheCreditBack(t *testing.T) {
	p := newPair(t, 1, "one")
	n := p.start(emptyDisk())
	id := p.serve("one", n)
	p.supersede("one")
	require.NoError(t, p.l.Retire(at, "one", true))
	require.EqualValues(t, 99, p.credits().Balance())
	_, err := n.book.Void(at, id)
	require.NoError(t, err)
	p.speak("one", n, 10)
	require.Zero(t, p.credits().Spent)
	require.EqualValues(t, 100, p.credits().Balance())
}

// TestAVoidOfAForgottenEpochGoesToThePool is about an epoch that held nothing any more when
// the ledger was last read from its database.
func TestAVoidOfAForgottenEpochGoesToThePool(t *testing.T) {
	p := newPair(t, 1, "one")
	n := p.start(emptyDisk())
	p.serve("one", n)
	e := p.l.Edge("one")
	session := p.l.Hello(at, e, n.book.Hello(at)).Session
	leased := p.credits().Leased
	use := syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.Companies, Outcome: charge.Found, Count: -1}
	p.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: n.book.Hello(at).Sealed + 1, Of: 77, Usage: []syncproto.Usage{use}}})
	require.Zero(t, p.credits().Spent)
	require.Equal(t, leased, p.credits().Leased)
	require.NoError(t, p.l.Check())
}

// TestAForkGetsAnotherEpoch forks the process to which the newest epoch was given: a clone of
// its disk reported in its place.
func TestAForkGetsAnotherEpoch(t *testing.T) {
	p := newPair(t, 1, "one")
	original := p.start(emptyDisk())
	p.serve("one", original)
	clone := p.start(original.disk.copy())
	p.speak("one", clone, 2)
	p.serve("one", clone)
	before := original.book.Epoch()
	p.speak("one", original, 20)
	require.Greater(t, original.book.Epoch(), before)
	require.False(t, original.book.Greeting())
}

func TestARetiredNodeHearsItWithNothingLeft(t *testing.T) {
	p := newPair(t, 1, "one")
	n := p.start(emptyDisk())
	p.serve("one", n)
	p.supersede("one")
	p.settle("one", n)
	require.NoError(t, p.l.Retire(at, "one", false))
	p.speak("one", n, 10)
	require.Equal(t, syncproto.Retired, n.book.Standing())
	require.False(t, n.book.Greeting())
}

// TestImpliedGrantsAreNotCountedTwice is about the sum by which a ledger that went back is
// recognised: Hello brought it.
func TestImpliedGrantsAreNotCountedTwice(t *testing.T) {
	p := newPair(t, 9, "one")
	p.l.Restore()
	e := p.l.Edge("one")
	hello := syncproto.Hello{Boot: 1, Epoch: 5, Sealed: 1, Acked: 1, Granted: 20}
	session := p.l.Hello(at, e, &hello).Session
	use := syncproto.Usage{Account: 1, Key: 1, Hour: syncproto.Hour(at), Endpoint: charge.Companies, Outcome: charge.Found, Count: 10}
	p.l.Sync(at, e, &syncproto.Sync{Session: session, Batch: &syncproto.Batch{Seq: 1, Of: 5, Usage: []syncproto.Usage{use}}})
	declared := []syncproto.Declared{{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Granted: 20}}
	p.l.Sync(at, e, &syncproto.Sync{Session: session, Declared: declared, DeclaredLast: true})
	require.False(t, p.l.Restoring)
	hello.Granted = 25
	p.l.Hello(at, e, &hello)
	require.True(t, p.l.Restoring, "the edge shows five more than the ledger granted")
}

// TestLeasesAreGoodWhileARestoredLedgerWaits has one edge of two speak to a ledger that
// knows nothing of its lease, or that it ended.
func TestLeasesAreGoodWhileARestoredLedgerWaits(t *testing.T) {
	for name, known := range map[string]bool{"of after the backup": false, "that had ended in the backup": true} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, 1, "one", "away")
			n := p.start(emptyDisk())
			p.serve("one", n)
			back := newPair(t, 900, "one", "away")
			back.ids = p.ids
			back.l.Hello(at, back.l.Edge("away"), &syncproto.Hello{Boot: 55})
			if known {
				const days = 2 * 24 * 60 * 60 * 1000
				e := back.l.Edge("one")
				back.l.Restore()
				session := back.l.Hello(at-days, e, &syncproto.Hello{Epoch: n.book.Epoch(), Boot: 101}).Session
				back.l.Sync(at-days, e, &syncproto.Sync{Session: session, DeclaredLast: true})
			}
			back.l.Restore()
			back.speak("one", n, 12)
			require.Equal(t, []string{"away"}, back.l.Awaited())
			_, a := back.ask(n)
			require.Equal(t, "", a.Verdict.Code)
		})
	}
}

// TestASilentRestoreIsSeenAfterOneRestart restores a backup from before the writer's last
// start, without saying so: the generation that it then has is not the one before.
func TestASilentRestoreIsSeenAfterOneRestart(t *testing.T) {
	w := newWorld(t, 3)
	w.calm = true
	n := w.nodes[0]
	for got := 0; got < 5; {
		w.exchange(n)
		r := charge.Request{ID: fmt.Sprint("x", w.now), Account: 1, Key: 10, PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
		if w.now++; n.book.Charge(w.now, &r, false).Verdict.Code == "" {
			got++
		}
	}
	w.saved = "file:/silent-restore?vfs=memdb&_txlock=immediate"
	require.NoError(t, w.open(w.saved).Ping())
	w.exec(`VACUUM INTO ?`, w.saved)
	w.openWriter(false)
	for range 6 {
		w.exchange(n)
	}
	require.EqualValues(t, 5, w.ledger.Account(1).Credits().Spent)
	w.ledger.Hello(w.now, w.ledger.Edge(n.name), &syncproto.Hello{Boot: 9}) // ends the epoch
	w.commit()
	for i := 0; i < 40 && n.book.Hello(w.now).Epoch != 0; i++ {
		w.exchange(n)
	}
	require.Zero(t, n.book.Hello(w.now).Epoch)
	w.db, w.ledger = w.open(w.saved), nil
	w.openWriter(false)
	for range 60 {
		w.now += 1000
		w.exchange(n)
	}
	require.EqualValues(t, 5, w.ledger.Account(1).Credits().Spent)
}
