package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/syncproto"
)

// player has an edge live through a script, with a writer that replies whatever it likes.
type player struct {
	t      *testing.T
	edge   *EdgeState
	log    *recordLog
	now    int64
	ids    int
	old    []*syncproto.Reply // to repeat
	sent   bool               // a message waits for its reply
	told   map[int64]int64    // the most credits that replies granted, by account
	took   map[int64]int64    // charged and not voided
	by     map[string]int64
	sealed *syncproto.Batch // whose returns are counted
}

// FuzzReplies checks that no reply, however wrong, repeated or old, breaks the invariants of an
// edge (G3) or has it spend more than it was told of (G1), and that a restart finds the same.
func FuzzReplies(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(testkit.RandomScript(seed))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		edge, log := granted(t, 100)
		p := &player{t: t, edge: edge, log: log, now: start, told: map[int64]int64{1: 100}, took: map[int64]int64{}, by: map[string]int64{}}
		for s := testkit.NewScript(choices); s.More(); {
			p.step(s)
			require.NoError(t, p.edge.Check())
			for _, account := range []int64{1, 2} {
				require.LessOrEqual(t, p.took[account]+held(p.edge, account), p.told[account], "account %d", account)
			}
		}
		p.restart()
	})
}

func (p *player) step(s *testkit.Script) {
	switch s.Below(8) {
	case 0, 1:
		p.charge(s)
	case 2:
		p.void(s)
	case 3:
		p.send()
	case 4, 5, 6:
		p.reply(s)
	case 7:
		if s.Below(4) == 0 {
			p.restart()
		} else {
			p.now += int64(s.Below(200)-100) * 3_600_000
		}
	}
}

func (p *player) charge(s *testkit.Script) {
	p.ids++
	r := request(fmt.Sprint("id", p.ids), charge.Outcome(1+s.Below(3)))
	r.Account, r.PerMinute = int64(1+s.Below(2)), 1<<30
	r.Key = r.Account
	if a := p.edge.Charge(p.now, r, false); a.Verdict.Code == "" && r.Outcome == charge.Found {
		p.took[r.Account]++
		p.by[r.ID] = r.Account
	}
}

func (p *player) void(s *testkit.Script) {
	id := fmt.Sprint("id", 1+s.Below(p.ids+1))
	if _, err := p.edge.Void(p.now, id); err == nil && p.by[id] != 0 {
		p.took[p.by[id]]--
		delete(p.by, id)
	}
}

func (p *player) send() {
	if p.sent {
		p.edge.Lost()
	}
	if p.sent = !p.edge.Greeting(); p.sent {
		p.giveBack(p.edge.Sync(p.now).Batch)
	}
}

// giveBack counts what a new batch returns: others may spend it from then on.
func (p *player) giveBack(b *syncproto.Batch) {
	if b == nil || p.sealed == b {
		return
	}
	p.sealed = b
	for _, r := range b.Returns {
		if r.Pool.Kind == syncproto.Credits {
			p.told[r.Pool.Subject] -= r.Units
		}
	}
}

// reply gives the edge a reply that a decoder accepts: a right one with some mistakes, or an old
// one again.
func (p *player) reply(s *testkit.Script) {
	r := p.right()
	for range s.Below(3) {
		p.spoil(s, r)
	}
	for range s.Below(4) {
		r.Upto++
		r.Rows = append(r.Rows, p.row(s, r.Upto))
	}
	if len(p.old) > 0 && s.Below(4) == 0 {
		again := *p.old[s.Below(len(p.old))]
		r = &again
	}
	decoded, err := syncproto.DecodeReply(r.Encode())
	require.NoError(p.t, err)
	p.old = append(p.old, decoded)
	p.note(decoded.Rows)
	ofSync := p.sent && s.Below(2) == 0
	p.edge.Apply(p.now, decoded, ofSync)
	p.sent = p.sent && !ofSync
}

// right is what a good writer replies, without news.
func (p *player) right() *syncproto.Reply {
	e := p.edge
	r := &syncproto.Reply{
		Status: e.standing.status, Session: e.session.id, Epoch: e.standing.epoch, Generation: e.standing.generation,
		Applied: e.outbox.sealed, Since: e.session.seen, Upto: e.session.seen, Live: 1, NowMillis: start,
	}
	if !e.session.open() {
		r.Session, r.Since, r.Upto = uint64(p.ids)+1, 0, 0
	}
	return r
}

func (p *player) spoil(s *testkit.Script, r *syncproto.Reply) {
	switch s.Below(8) {
	case 0:
		r.Status = syncproto.Status(1 + s.Below(int(syncproto.Retired)))
	case 1:
		r.Session = uint64(s.Near(int64(r.Session)))
	case 2:
		r.Epoch = uint64(s.Near(int64(r.Epoch)))
	case 3:
		r.Generation = uint64(s.Near(int64(r.Generation)))
	case 4:
		r.Applied = uint64(s.Near(int64(r.Applied)))
	case 5:
		r.Since = min(uint64(s.Near(int64(r.Since))), r.Upto)
	case 6:
		r.Declare, r.Live = true, 1+s.Near(0)/2
	case 7:
		r.Others = []syncproto.Rate{{Subject: 1, Minute: s.Near(syncproto.Minute(p.now)), Count: s.Near(5)}}
	}
}

// note counts what rows grant beyond the grants that the edge has. They are sums.
func (p *player) note(rows []syncproto.Row) {
	most := map[int64]int64{}
	for _, r := range rows {
		if r.Pool.Kind == syncproto.Credits {
			most[r.Pool.Subject] = max(most[r.Pool.Subject], r.Granted)
		}
	}
	for account, granted := range most {
		if a := p.edge.leases.accounts.get(account); a != nil {
			granted = max(granted-a.credits.granted, 0)
		}
		p.told[account] += granted
	}
}

func (p *player) row(s *testkit.Script, version uint64) syncproto.Row {
	pool := syncproto.Pool{Kind: syncproto.Kind(1 + s.Below(3)), Subject: int64(1 + s.Below(2))}
	switch pool.Kind {
	case syncproto.Volume:
		pool.Window = syncproto.Month(p.now) + int32(s.Below(3)) - 1
	case syncproto.NotFound:
		pool.Window = syncproto.Day(p.now) + int32(s.Below(3)) - 1
	}
	flags := s.Byte()
	return syncproto.Row{
		Version: version, Pool: pool, Granted: s.Near(100), UntilMillis: p.now + s.Near(leaseMillis) - s.Near(0),
		Recall: flags&1 != 0, Dry: flags&2 != 0, Balance: s.Near(100) - s.Near(0),
	}
}

// restart continues with an edge that the records rebuild.
func (p *player) restart() {
	again := New(p.log)
	for _, r := range p.log.records {
		require.NoError(p.t, again.Replay(r))
	}
	require.NoError(p.t, again.Check())
	// A row of a window behind the lease's, after the clock was set back, is taken at replay alone.
	require.GreaterOrEqual(p.t, again.leases.granted, p.edge.leases.granted)
	require.Equal(p.t, p.edge.outbox.sealed, again.outbox.sealed)
	require.Equal(p.t, p.edge.standing, again.standing)
	for _, account := range []int64{1, 2} {
		require.Equal(p.t, held(p.edge, account), held(again, account), "account %d", account)
		require.Equal(p.t, p.edge.Unreported(account), again.Unreported(account), "account %d", account)
	}
	p.edge, p.sent, p.sealed = again, false, again.outbox.inflight
	p.edge.Boot(uint64(len(p.log.records)))
}

// held is what an account's lease of credits has left.
func held(edge *EdgeState, account int64) int64 {
	if a := edge.leases.accounts.get(account); a != nil {
		return a.credits.held()
	}
	return 0
}
