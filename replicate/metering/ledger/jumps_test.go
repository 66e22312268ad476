package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// jumps are by how much a clock is wrong, in milliseconds.
var jumps = []int64{0, 0, 0, day, -day, 3 * day, 4 * day, -4 * day, 31 * day, -31 * day, 100 * day, -100 * day, 400 * day, -400 * day}

// jumping are a writer and two edges whose clocks jump, and an account that they serve.
type jumping struct {
	*fixture
	random    *rand.Rand
	now       int64 // Unix milliseconds
	wrong     int64 // the writer's clock
	edges     []*jumpingEdge
	served    map[syncproto.Pool]int64
	bothAhead bool // the writer may have forgotten what was spent
	calm      bool // nothing is lost or late any more
}

type jumpingEdge struct {
	*edge
	name    string
	wrong   int64
	ids     []string // of what it charged
	charged map[string]syncproto.Pool
	late    []*syncproto.Reply
	sent    []syncproto.Message
}

const jumpingVolume = 300 // of a month

func newJumping(t *testing.T, seed uint64) *jumping {
	l := newLedger(t, 1, 100_000, "one", "two")
	l.SetPlan(at, ledger.Plan{ID: "scale", APIAccess: true, PerMinute: 1 << 20, MonthlyVolume: jumpingVolume})
	j := &jumping{
		fixture: &fixture{t: t, l: l, boot: 100}, random: rand.New(rand.NewPCG(seed, 1)), now: at, served: map[syncproto.Pool]int64{},
	}
	for _, name := range []string{"one", "two"} {
		j.edges = append(j.edges, &jumpingEdge{edge: j.start(emptyDisk()), name: name, charged: map[string]syncproto.Pool{}})
	}
	return j
}

func (j *jumping) oneIn(n int) bool { return !j.calm && j.random.IntN(n) == 0 }

// deliver gives the writer a message.
func (j *jumping) deliver(n *jumpingEdge, m syncproto.Message) *syncproto.Reply {
	m, err := syncproto.DecodeMessage(m.Encode())
	require.NoError(j.t, err)
	var r *syncproto.Reply
	if m.Hello != nil {
		r = j.l.Hello(j.now+j.wrong, j.l.Edge(n.name), m.Hello)
	} else {
		r = j.l.Sync(j.now+j.wrong, j.l.Edge(n.name), m.Sync)
	}
	require.NoError(j.t, j.l.Check())
	require.False(j.t, j.l.Restoring, "the ledger was not restored")
	j.bothAhead = j.bothAhead || min(j.wrong, n.wrong) >= 2*day
	return r
}

func (j *jumping) apply(n *jumpingEdge, r *syncproto.Reply, ofSync bool) {
	n.state.Apply(j.now+n.wrong, r, ofSync)
	require.NoError(j.t, n.state.Check())
}

// meet exchanges a message of either lane, which may get lost or be late.
func (j *jumping) meet(n *jumpingEdge) {
	var m syncproto.Message
	switch now := j.now + n.wrong; {
	case n.state.Greeting():
		m.Hello = n.state.Hello(now)
	case j.oneIn(4):
		m.Sync = n.state.Watch(now, 0)
		if r := j.deliver(n, m); j.oneIn(2) {
			n.late = append(n.late, r)
		} else {
			j.apply(n, r, false)
		}
		return
	default:
		m.Sync = n.state.Sync(now)
		n.sent = append(n.sent, m)
	}
	if j.oneIn(8) {
		n.state.Lost()
		return
	}
	if r := j.deliver(n, m); j.oneIn(8) {
		n.state.Lost()
	} else {
		j.apply(n, r, m.Sync != nil)
	}
}

// request makes one, and waits for the writer some times. It returns the error code.
func (j *jumping) request(n *jumpingEdge, patience int) string {
	j.ids++
	r := charge.Request{
		ID: fmt.Sprint("id", j.ids), Account: 1, Key: 1 + j.random.Int64N(2), PerMinute: 1 << 30,
		Endpoint: charge.Companies, Outcome: charge.Found,
	}
	now := j.now + n.wrong
	pool := volumeOf(syncproto.Month(now))
	if j.random.IntN(2) == 0 {
		r.Outcome = charge.NotFound
		pool = syncproto.Pool{Kind: syncproto.NotFound, Subject: r.Key, Window: syncproto.Day(now)}
	}
	a := n.state.Charge(now, &r, false)
	for ; a.Wait && patience > 0; patience-- {
		j.meet(n)
		for _, other := range j.edges {
			if j.calm && other != n {
				j.meet(other)
			}
		}
		a = n.state.Charge(now, &r, true)
	}
	if a.Verdict.Code == "" {
		j.served[pool]++
		n.ids, n.charged[r.ID] = append(n.ids, r.ID), pool
	}
	return a.Verdict.Code
}

func (j *jumping) step() {
	n := j.edges[j.random.IntN(len(j.edges))]
	j.now += j.random.Int64N(2000)
	switch a := j.random.IntN(100); {
	case a < 45:
		j.request(n, 2)
	case a < 75:
		j.meet(n)
	case a < 80 && len(n.late) > 0:
		j.apply(n, n.late[j.random.IntN(len(n.late))], false)
	case a < 83 && len(n.sent) > 0:
		j.deliver(n, n.sent[j.random.IntN(len(n.sent))])
	case a < 87 && len(n.ids) > 0:
		id := n.ids[j.random.IntN(len(n.ids))]
		if v, err := n.state.Void(j.now+n.wrong, id); err == nil && !v.Repeated {
			j.served[n.charged[id]]--
		}
		require.NoError(j.t, n.state.Check())
	case a < 89: // a kill
		n.edge, n.late = j.start(n.disk), nil
		require.NoError(j.t, n.state.Check())
	case a < 91: // a new segment
		n.state.Snapshot(func(record []byte) { n.disk.Append(record, false) })
	case a < 95:
		n.wrong = jumps[j.random.IntN(len(jumps))]
	case a < 97:
		j.wrong = jumps[j.random.IntN(len(jumps))]
	default:
		j.now += j.random.Int64N(day)
	}
}

// setRight sets all clocks right, and lets a day and some messages pass.
func (j *jumping) setRight() {
	j.calm, j.wrong = true, 0
	j.now += day
	for range 40 {
		for _, n := range j.edges {
			n.wrong = 0
			j.now += 100
			j.meet(n)
		}
	}
}

// TestClocksThatJump has a writer and two edges with clocks that are wrong by days to years, in any order,
// while messages are lost, late and repeated, edges are killed, and charges voided. Nothing is spent twice,
// no ledger takes itself for restored, and everyone is served once the clocks are right.
func TestClocksThatJump(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			j := newJumping(t, seed)
			for range 150 + j.random.IntN(300) {
				j.step()
			}
			j.setRight()
			for _, n := range j.edges {
				for range 10 {
					require.NotEqual(t, charge.MeteringUnavailable, j.request(n, 5), "%s, with right clocks", n.name)
				}
			}
			for pool, served := range j.served {
				most := int64(ledger.NotFoundCap)
				if pool.Kind == syncproto.Volume {
					most = jumpingVolume
				}
				require.True(t, served <= most || j.bothAhead, "%+v: %d served of %d", pool, served, most)
			}
		})
	}
}
