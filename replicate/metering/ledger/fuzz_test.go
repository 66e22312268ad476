package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// liar is an edge that sends whatever it likes, beside an honest one.
type liar struct {
	*fixture
	honest *edge
	now    int64
	last   *syncproto.Reply
	sent   []syncproto.Message // to repeat
	served int64               // by the honest edge
}

// FuzzMessages checks that no message of one edge, however wrong, repeated or old, breaks the
// ledger's invariants (G3), takes units from another edge that it holds, or has that edge
// serve more than was bought and compensated (G1).
func FuzzMessages(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(testkit.RandomScript(seed))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		l := &liar{fixture: newFixture(t, 3, "honest", "liar"), now: at, last: &syncproto.Reply{}}
		l.honest = l.start(emptyDisk())
		l.exchange("honest", l.honest, 2)
		for s := testkit.NewScript(choices); s.More(); {
			l.step(s)
			l.check()
		}
	})
}

func (l *liar) step(s *testkit.Script) {
	e := l.l.Edge("liar")
	switch s.Below(8) {
	case 0:
		l.deliver(syncproto.Message{Hello: l.hello(s)})
	case 1, 2, 3:
		l.deliver(syncproto.Message{Sync: l.sync(s)})
	case 4:
		if len(l.sent) > 0 {
			l.deliver(l.sent[s.Below(len(l.sent))])
		}
	case 5:
		if _, a := l.ask(l.honest); a.Verdict.Code == "" {
			l.served++
		}
	case 6:
		l.talk(1 + s.Below(3))
	case 7:
		switch s.Below(16) {
		case 0:
			require.NoError(l.t, l.l.Retire(l.now, e.Name, s.One(2)))
		case 1:
			l.l.ChangeCredits(l.now, 1, -s.Near(50), ledger.EntryBought, "")
		case 2:
			l.l.Restore()
		}
	}
}

// deliver hands a message to the ledger as a decoder of the writer would.
func (l *liar) deliver(m syncproto.Message) {
	m, err := syncproto.DecodeMessage(m.Encode())
	if err != nil {
		return // refused
	}
	l.sent = append(l.sent, m)
	if e := l.l.Edge("liar"); m.Hello != nil {
		l.last = l.l.Hello(l.now, e, m.Hello)
	} else {
		l.last = l.l.Sync(l.now, e, m.Sync)
	}
}

// talk exchanges messages of the honest edge. What the liar said must not make its replies
// unreadable.
func (l *liar) talk(times int) {
	for range times {
		r := l.exchange("honest", l.honest, 1)
		_, err := syncproto.DecodeReply(r.Encode())
		require.NoError(l.t, err, "the reply to the honest edge: %+v", r)
	}
}

func (l *liar) hello(s *testkit.Script) *syncproto.Hello {
	return &syncproto.Hello{
		Epoch: uint64(s.Near(int64(l.last.Epoch))), Boot: uint64(s.Below(4)), Sealed: uint64(s.Near(int64(l.last.Applied))),
		Acked: uint64(s.Near(int64(l.last.Applied))), Granted: s.Near(0), Generation: uint64(s.Near(3)), NowMillis: l.now,
	}
}

func (l *liar) sync(s *testkit.Script) *syncproto.Sync {
	m := &syncproto.Sync{Session: l.last.Session, Seen: uint64(s.Near(int64(l.last.Upto)))}
	if s.One(2) {
		m.Batch = l.batch(s)
	}
	for range s.Below(3) {
		m.Wants = append(m.Wants, syncproto.Want{Pool: l.pool(s), Target: s.Near(20), Urgent: s.One(2)})
	}
	if s.One(4) {
		m.Rates = []syncproto.Rate{{Subject: 1, Minute: s.Near(syncproto.Minute(l.now)), Count: s.Near(10)}}
	}
	for range s.Below(3) {
		m.Declared = append(m.Declared, syncproto.Declared{Pool: l.pool(s), Granted: s.Near(10)})
	}
	m.DeclaredLast = s.One(4)
	return m
}

func (l *liar) batch(s *testkit.Script) *syncproto.Batch {
	b := &syncproto.Batch{Seq: l.last.Applied + 1, Of: uint64(s.Near(int64(l.last.Epoch)))}
	if s.One(8) {
		b.Seq = uint64(s.Near(int64(b.Seq)))
	}
	for range s.Below(4) {
		usage := syncproto.Usage{
			Account: int64(1 + s.Below(2)), Key: 1, Hour: syncproto.Hour(l.now) + int32(s.Below(3)-1)*24*31,
			Endpoint: charge.Companies, Outcome: charge.Outcome(1 + s.Below(3)), Count: s.Near(10),
		}
		usage.Count = min(max(usage.Count-s.Near(10), -syncproto.MaxCount), syncproto.MaxCount)
		b.Usage = append(b.Usage, usage)
	}
	for range s.Below(3) {
		b.Returns = append(b.Returns, syncproto.Return{Pool: l.pool(s), Units: s.Near(10), Close: s.One(2)})
	}
	return b
}

func (l *liar) pool(s *testkit.Script) syncproto.Pool {
	p := syncproto.Pool{Kind: syncproto.Kind(1 + s.Below(3)), Subject: int64(1 + s.Below(2))}
	switch p.Kind {
	case syncproto.Volume:
		p.Window = syncproto.Month(l.now) + int32(s.Below(3)-1)
	case syncproto.NotFound:
		p.Window = syncproto.Day(l.now) + int32(s.Below(3)-1)
	}
	return p
}

// check compares the ledger with what the honest edge holds and served.
func (l *liar) check() {
	require.NoError(l.t, l.l.Check())
	pool := l.credits()
	require.LessOrEqual(l.t, l.served, 100+pool.Compensated, "served by the honest edge")
	out, _ := l.l.Out(l.l.Edge("honest"))
	require.GreaterOrEqual(l.t, out, l.unspent(), "outstanding of the honest edge")
}

// unspent is what the honest edge may still spend.
func (l *liar) unspent() int64 {
	h := lease.NewHeadroom()
	l.honest.state.AddHeadroom(&h, l.now, 0)
	return h.Credits
}
