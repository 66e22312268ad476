package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

const start = int64(1_790_000_000_000)

// recordLog is a Log that keeps its records in memory.
type recordLog struct{ records [][]byte }

func (m *recordLog) Append(record []byte, _ bool) {
	m.records = append(m.records, append([]byte(nil), record...))
}

func (m *recordLog) Batch(uint64, uint64) (*syncproto.Batch, error) { return nil, nil }

// granted is an edge in session with a writer that granted units of every kind to account 1
// and key 1.
func granted(t testing.TB, units int64) (*EdgeState, *recordLog) {
	log := &recordLog{}
	edge := New(log)
	edge.Boot(1)
	edge.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	edge.Sync(start)
	edge.Apply(start, news(edge, 1, units), true)
	require.NoError(t, edge.Check())
	return edge, log
}

// news is a reply with grants for account 1 and key 1.
func news(edge *EdgeState, version uint64, units int64) *syncproto.Reply {
	r := &syncproto.Reply{Status: syncproto.OK, Session: edge.session.id, Epoch: edge.standing.epoch, Generation: 1, Applied: edge.outbox.applied, Since: edge.session.seen, Live: 1}
	for i, p := range []syncproto.Pool{
		{Kind: syncproto.Credits, Subject: 1},
		{Kind: syncproto.Volume, Subject: 1, Window: syncproto.Month(start)},
		{Kind: syncproto.NotFound, Subject: 1, Window: syncproto.Day(start)},
	} {
		r.Upto = version*10 + uint64(i)
		r.Rows = append(r.Rows, syncproto.Row{Version: r.Upto, Pool: p, Granted: units, UntilMillis: start + leaseMillis, Balance: units})
	}
	return r
}

const leaseMillis = 24 * 60 * 60 * 1000

func request(id string, outcome charge.Outcome) *charge.Request {
	return &charge.Request{ID: id, Account: 1, Key: 1, PerMinute: 5, Endpoint: charge.Companies, Outcome: outcome}
}

func TestCheckFindsBrokenInvariants(t *testing.T) {
	for want, breakIt := range map[string]func(*EdgeState){
		"lease of account 1: granted 10, spent 11": func(s *EdgeState) { s.leases.accounts.get(1).credits.spent = 11 },
		"not-found lease of key 1":                 func(s *EdgeState) { s.leases.keys.get(1).returned = 11 },
		"leases hold 30 units of grants":           func(s *EdgeState) { s.leases.granted = 29 },
		"leases hold 35 units of grants":           func(s *EdgeState) { s.leases.park(volumePool(1, 7), lease{granted: 5}) },
		"batch 7 is in flight":                     func(s *EdgeState) { s.outbox.inflight = &syncproto.Batch{Seq: 7} },
		"usage of 1 epochs is carried":             func(s *EdgeState) { tallyOf(s.usage.carried, 1) },
		"a name of key 1 is at place 0 of 0":       func(s *EdgeState) { s.keyed.index[keyedName{key: 1}] = 0 },
		"account 1 has 3 unreported charges":       func(s *EdgeState) { s.leases.accounts.get(1).unreported = 3 },
	} {
		edge, _ := granted(t, 10)
		breakIt(edge)
		require.ErrorContains(t, edge.Check(), want)
	}
}
