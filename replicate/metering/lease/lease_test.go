package lease

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

const start = int64(1_790_000_000_000)

// memory is a Log that keeps its records.
type memory struct{ records [][]byte }

func (m *memory) Append(record []byte, _ bool) {
	m.records = append(m.records, append([]byte(nil), record...))
}

func (m *memory) Batch(uint64, uint64) (*syncproto.Batch, error) { return nil, nil }

// granted is a book in touch with a writer that granted units of everything to account
// and key 1.
func granted(t testing.TB, units int64) (*EdgeState, *memory) {
	log := &memory{}
	b := New(log)
	b.Boot(1)
	b.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	b.Sync(start)
	b.Apply(start, news(b, 1, units), true)
	require.NoError(t, b.Check())
	return b, log
}

func news(b *EdgeState, version uint64, units int64) *syncproto.Reply {
	r := &syncproto.Reply{Status: syncproto.OK, Session: b.session.id, Epoch: b.standing.epoch, Generation: 1, Applied: b.outbox.applied, Since: b.session.seen, Live: 1}
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

func asking(id string, outcome charge.Outcome) *charge.Request {
	return &charge.Request{ID: id, Account: 1, Key: 1, PerMinute: 5, Endpoint: charge.Companies, Outcome: outcome}
}

func TestTheRateComesBeforeEverything(t *testing.T) {
	b, _ := granted(t, 100)
	for i := range 5 {
		a := b.Charge(start, asking(fmt.Sprint("r", i), charge.Failed), false)
		require.Equal(t, "", a.Verdict.Code)
		require.EqualValues(t, 4-i, a.Verdict.RateRemaining)
	}
	a := b.Charge(start, asking("over", charge.Found), false)
	require.Equal(t, charge.RateLimitExceeded, a.Verdict.Code)
	require.Equal(t, a.Verdict.RateReset, a.Verdict.RetryAfter)
	require.EqualValues(t, 0, a.Verdict.RateRemaining)
	next := (start/60_000 + 1) * 60_000
	require.Equal(t, "", b.Charge(next, asking("next", charge.Found), false).Verdict.Code, "a new minute")
}

// A request that comes before the writer has said who this edge is waits, and is counted.
func TestTheRateOutlivesTheBeginningOfAnEpoch(t *testing.T) {
	b := New(&memory{})
	b.Boot(1)
	require.True(t, b.Charge(start, asking("early", charge.Found), false).Wait)
	b.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1, NowMillis: start}, false)
	b.Sync(start + 1)
	b.Apply(start+1, news(b, 1, 100), true)
	early := b.Charge(start+2, asking("early", charge.Found), true)
	require.Equal(t, "", early.Verdict.Code)
	require.EqualValues(t, 4, early.Verdict.RateRemaining)
	require.EqualValues(t, 3, b.Charge(start+2, asking("next", charge.Found), false).Verdict.RateRemaining)
}

func TestALeaseEnds(t *testing.T) {
	b, _ := granted(t, 100)
	a := b.Charge(start+leaseMillis, asking("late", charge.Found), false)
	require.True(t, a.Wait)
	require.Equal(t, charge.MeteringUnavailable, a.Verdict.Code)
}

func TestANewSessionHasToSayAgainThatNothingIsLeft(t *testing.T) {
	b, _ := granted(t, 0)
	dry := news(b, 2, 0)
	for i := range dry.Rows {
		dry.Rows[i].Dry = dry.Rows[i].Pool.Kind == syncproto.Credits
	}
	dry.Rows[1].Granted, dry.Rows[2].Granted = 10, 10
	b.Apply(start, dry, false)
	require.Equal(t, charge.InsufficientCredits, b.Charge(start, asking("a", charge.Found), false).Verdict.Code)

	b.Apply(start, &syncproto.Reply{Status: syncproto.Stranger, Session: b.session.id}, false)
	b.Apply(start+1, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 2, Applied: b.outbox.applied, Live: 1}, false)
	require.True(t, b.Connected(start+1))
	require.True(t, b.Charge(start+1, asking("b", charge.Found), false).Wait, "there may have been a top-up")
}

// endedEpoch is a book whose epoch 1 is superseded, with all of it reported and returned in
// so many batches.
func endedEpoch(t *testing.T) (b *EdgeState, batches uint64) {
	b, _ = granted(t, 10)
	require.Equal(t, "", b.Charge(start, asking("a", charge.Found), false).Verdict.Code)
	ended := syncproto.Reply{Status: syncproto.Superseded, Session: 1, Epoch: 1, Generation: 1, Live: 1}
	b.Apply(start, &ended, false)
	for ended.Applied < 5 && b.Hello(start).Epoch != 0 {
		if batch := b.Sync(start).Batch; batch != nil {
			ended.Applied = batch.Seq
		}
		b.Apply(start, &ended, true)
	}
	require.Zero(t, b.Hello(start).Epoch)
	return b, ended.Applied
}

// showsItsEpoch holds that a book sends all of epoch 1 to a writer of generation 2 that has
// nothing of it, and answers with a status.
func showsItsEpoch(t *testing.T, b *EdgeState, batches uint64, status syncproto.Status) {
	require.EqualValues(t, 1, b.Epoch(), "that writer has not seen what was reported")
	require.True(t, b.Greeting())
	shown := b.Hello(start)
	require.EqualValues(t, 1, shown.Epoch)
	require.Equal(t, batches, shown.Acked)
	b.Apply(start, &syncproto.Reply{Status: status, Session: 10, Epoch: 1, Generation: 2, Live: 1}, false)
	require.False(t, b.Greeting(), "its batches are sent again first")
	for seq := uint64(1); seq <= batches; seq++ {
		require.Equal(t, seq, b.Sync(start).Batch.Seq)
		b.Apply(start, &syncproto.Reply{Status: status, Session: 10, Epoch: 1, Generation: 2, Applied: seq, Live: 1}, true)
	}
	require.NoError(t, b.Check())
}

// TestAnEndedEpochIsShownToAnotherWriter ends an epoch, and has the ledger come back from a
// backup before the next one is asked for.
func TestAnEndedEpochIsShownToAnotherWriter(t *testing.T) {
	b, batches := endedEpoch(t)
	asked := b.Hello(start)
	require.NotEqual(t, b.session.boot, asked.Boot, "epoch 1 was asked for by that number")
	fresh := syncproto.Reply{Status: syncproto.Fresh, Session: 9, Epoch: 2, Generation: 2, Live: 1}
	b.Apply(start, &fresh, false)
	showsItsEpoch(t, b, batches, syncproto.Superseded)
	require.Equal(t, asked.Boot, b.Hello(start).Boot)
	b.Apply(start, &fresh, false)
	require.EqualValues(t, 2, b.Epoch())
	require.NoError(t, b.Check())
}

// TestAnEndedEpochOfARetiredNodeIsShownToAnotherWriter is the same for a node that gets no
// other epoch.
func TestAnEndedEpochOfARetiredNodeIsShownToAnotherWriter(t *testing.T) {
	b, batches := endedEpoch(t)
	b.Apply(start, &syncproto.Reply{Status: syncproto.Retired, Session: 9, Generation: 2, Live: 1}, false)
	showsItsEpoch(t, b, batches, syncproto.Retired)
	b.Apply(start, &syncproto.Reply{Status: syncproto.Retired, Session: 10, Epoch: 1, Generation: 2, Applied: batches, Live: 1}, true)
	require.EqualValues(t, 1, b.Epoch())
	require.False(t, b.Greeting())
}

// TestWhatWasTakenBackIsReportedFirst holds it for a batch that has not room for all.
func TestWhatWasTakenBackIsReportedFirst(t *testing.T) {
	usage := tally{}
	for hour := range int32(5) {
		usage.add(use{1, 1, hour, charge.Companies, charge.Found}, 1)
	}
	usage.add(use{2, 1, 0, charge.Companies, charge.Found}, -1)
	require.EqualValues(t, -1, usage.rows(1)[0].Count)
}

// TestAnEpochIsNotBegunTwice has the answer that gave an ended epoch come a second time, when
// the next one is asked for.
func TestAnEpochIsNotBegunTwice(t *testing.T) {
	b, batches := endedEpoch(t)
	b.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: b.standing.generation, Live: 1, NowMillis: start}, false)
	require.True(t, b.Greeting(), "it still asks")
	require.Equal(t, batches, b.outbox.sealed, "its batches are not numbered anew")
	require.NoError(t, b.Check())
}

func TestARepliedRowAddsNothingTwice(t *testing.T) {
	b, _ := granted(t, 10)
	first := news(b, 2, 20)
	b.Apply(start, first, false)
	b.Apply(start, first, false)
	older := news(b, 1, 15)
	older.Since = 0
	b.Apply(start, older, false)
	require.EqualValues(t, 20, b.leases.accounts.get(1).credits.held())
	require.NoError(t, b.Check())
}

func TestReplayGivesTheSameBook(t *testing.T) {
	b, log := granted(t, 100)
	work := func(from int) {
		for i := range 3 {
			b.Charge(start+int64(from)*60_000, asking(fmt.Sprintf("f%d%d", from, i), charge.Found), false)
		}
		b.Charge(start+int64(from)*60_000, asking(fmt.Sprint("n", from), charge.NotFound), false)
		_, err := b.Void(start, fmt.Sprintf("f%d0", from))
		require.NoError(t, err)
	}
	work(1)
	s := b.Sync(start)
	require.NotNil(t, s.Batch)
	reply := news(b, 3, 100)
	reply.Applied = s.Batch.Seq
	require.NotNil(t, b.Apply(start, reply, true).Batch)
	work(2)
	b.Sync(start)
	work(3)

	again := New(&memory{})
	for _, r := range log.records {
		require.NoError(t, again.Replay(r))
	}
	same(t, b, again)

	t.Run("and so does its snapshot, with the ids of the records before", func(t *testing.T) {
		third := New(&memory{})
		for _, r := range log.records {
			require.NoError(t, third.ReplayID(r))
		}
		b.Snapshot(func(r []byte) { require.NoError(t, third.Replay(r)) })
		same(t, b, third)
		repeated := third.Charge(start, asking("f32", charge.Found), false)
		require.True(t, repeated.Repeated)
		require.Equal(t, b.Charge(start, asking("f32", charge.Found), false).Verdict, repeated.Verdict)
		require.Equal(t, charge.MeteringUnavailable, third.Charge(start, asking("f30", charge.Found), false).Verdict.Code)
	})
}

// TestAnOldCopyOfARetiredEdge has the writer know of more than a copy ever made. The copy
// reports nothing. With a ledger from before the edge was retired it goes on as with an empty
// directory: of its old leases nobody knows what the original spent.
func TestAnOldCopyOfARetiredEdge(t *testing.T) {
	b, log := granted(t, 100)
	b.Charge(start, asking("reported", charge.Found), false)
	require.NotNil(t, b.Sync(start).Batch)
	b.Charge(start, asking("dropped", charge.Found), false)
	b.Boot(2)
	r := &syncproto.Reply{Status: syncproto.Retired, Session: 2, Epoch: 1, Generation: 1, Applied: b.outbox.sealed + 5, Live: 1}
	require.True(t, b.Apply(start, r, false).Abandoned, "the writer has more than this copy ever made")
	b.Charge(start, asking("after", charge.Failed), false)
	require.Nil(t, b.Sync(start).Batch)
	require.False(t, b.Greeting(), "it does not ask again and again")
	require.NoError(t, b.Check())

	again := New(&memory{})
	for _, r := range log.records {
		require.NoError(t, again.Replay(r))
	}
	require.NoError(t, again.Check())
	require.Zero(t, again.Unreported(1))
	require.Equal(t, b.outbox.inflight, again.outbox.inflight)

	for _, status := range []syncproto.Status{syncproto.OK, syncproto.Superseded} {
		older := New(&memory{})
		for _, r := range log.records {
			require.NoError(t, older.Replay(r))
		}
		older.Boot(3)
		require.EqualValues(t, 1, older.Hello(start).Epoch)
		older.Apply(start, &syncproto.Reply{Status: status, Session: 3, Epoch: 1, Generation: 2, Applied: 1, Live: 1}, false)
		require.Zero(t, older.Hello(start).Epoch)
		older.Void(start, "dropped")
		require.NoError(t, older.Check())
		older.Apply(start, &syncproto.Reply{Status: syncproto.Fresh, Session: 4, Epoch: 9, Generation: 2, Live: 1}, false)
		require.EqualValues(t, 9, older.Epoch())
		require.NoError(t, older.Check())
	}
}

// TestAnOlderCopyDropsUsageOfEarlierEpochs copies the journal of an edge that has charges of
// epoch 1 to report in epoch 2. What the copy finds there the original may have reported.
func TestAnOlderCopyDropsUsageOfEarlierEpochs(t *testing.T) {
	b, log := granted(t, 10)
	b.Charge(start, asking("of epoch 1", charge.Found), false)
	b.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
	require.EqualValues(t, 1, b.Unreported(1))

	open := func(records [][]byte, boot uint64) (*EdgeState, *memory) {
		disk := &memory{slices.Clone(records)}
		copied := New(disk)
		for _, r := range records {
			require.NoError(t, copied.Replay(r))
		}
		copied.Boot(boot)
		return copied, disk
	}
	current, _ := open(log.records, 2)
	require.EqualValues(t, 1, current.Unreported(1))
	current.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 3, Epoch: 2, Generation: 1, Live: 1}, false)
	require.Len(t, current.Sync(start).Batch.Usage, 1, "it reports it when it is the original")

	older, disk := open(log.records, 3)
	older.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 4, Epoch: 3, Generation: 1, Live: 1}, false)
	require.Zero(t, older.Unreported(1))
	require.Nil(t, older.Sync(start).Batch)
	require.NoError(t, older.Check())
	again, _ := open(disk.records, 4)
	require.Zero(t, again.Unreported(1), "nor does its next run")
}

// TestUnitsGoBackWithAllUsageReported has usage of an epoch before to report, and a lease that
// is recalled: the writer could not tell units that a void brought back from spent ones.
func TestUnitsGoBackWithAllUsageReported(t *testing.T) {
	b, _ := granted(t, 10)
	b.Charge(start, asking("of epoch 1", charge.Found), false)
	b.Apply(start, &syncproto.Reply{Status: syncproto.Forked, Session: 2, Epoch: 2, Generation: 1, Live: 1}, false)
	recall := news(b, 1, 5)
	for i := range recall.Rows {
		recall.Rows[i].Recall = true
	}
	b.Apply(start, recall, false)
	late := b.Sync(start).Batch
	require.EqualValues(t, 1, late.Of)
	require.Empty(t, late.Returns)
	b.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 2, Generation: 1, Applied: late.Seq, Live: 1}, true)
	require.Len(t, b.Sync(start).Batch.Returns, 3)
}

// unreadable is a Log whose kept batches can't be read.
type unreadable struct{ memory }

func (*unreadable) Batch(uint64, uint64) (*syncproto.Batch, error) { return nil, io.ErrUnexpectedEOF }

func TestABatchThatCannotBeReadWaits(t *testing.T) {
	b, log := granted(t, 10)
	b.Charge(start, asking("a", charge.Found), false)
	sealed := b.Sync(start).Batch.Seq
	b.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: sealed, Live: 1}, true)
	broken := &unreadable{}
	for _, readable := range []bool{false, true} {
		var of Log = broken
		if readable {
			of = &memory{}
		}
		again := New(of)
		for _, r := range log.records {
			require.NoError(t, again.Replay(r))
		}
		again.Boot(2)
		again.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 2, Epoch: 1, Generation: 2, Live: 1}, false)
		require.True(t, again.Behind())
		batch := again.Sync(start).Batch
		require.Equal(t, readable, batch != nil, "without content only when it is not kept any more")
		require.Equal(t, readable, again.Behind(), "it is not asked for in a rush")
	}
}

// TestAVoidAfterItsLeaseWasClosedGoesBack has days pass, so that the account would be
// dropped, before the writer's row tells of the unit that the void brought back.
func TestAVoidAfterItsLeaseWasClosedGoesBack(t *testing.T) {
	b, _ := granted(t, 10)
	returned := int64(0)
	sync := func(now int64) {
		batch := b.Sync(now).Batch
		if batch == nil {
			return
		}
		for _, r := range batch.Returns {
			if r.Pool.Kind == syncproto.Credits {
				returned += r.Units
			}
		}
		b.Apply(now, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: batch.Seq, Live: 1}, true)
	}
	b.Charge(start, asking("a", charge.Found), false)
	idle := start + idleMillis + 1
	for range 3 {
		sync(idle)
	}
	require.EqualValues(t, 9, returned)
	_, err := b.Void(idle, "a")
	require.NoError(t, err)
	for n := range int64(5) {
		sync(idle + n*idleMillis)
	}
	require.EqualValues(t, 10, returned)
	require.NoError(t, b.Check())
}

func same(t *testing.T, want, got *EdgeState) {
	t.Helper()
	require.NoError(t, got.Check())
	require.Equal(t, want.leases.accounts.get(1).credits, got.leases.accounts.get(1).credits)
	require.Equal(t, want.leases.accounts.get(1).volume, got.leases.accounts.get(1).volume)
	require.Equal(t, want.leases.accounts.get(1).balance, got.leases.accounts.get(1).balance)
	require.Equal(t, want.leases.accounts.get(1).unreported, got.leases.accounts.get(1).unreported)
	require.Equal(t, want.leases.keys.get(1), got.leases.keys.get(1))
	require.Equal(t, want.usage.current, got.usage.current)
	require.Equal(t, want.outbox.inflight, got.outbox.inflight)
	require.Equal(t, want.outbox.sealed, got.outbox.sealed)
	require.Equal(t, want.outbox.applied, got.outbox.applied)
}

func TestDropTakesBackWhatWasNotWritten(t *testing.T) {
	b, log := granted(t, 10)
	require.Equal(t, "", b.Charge(start, asking("kept", charge.Found), false).Verdict.Code)
	require.Equal(t, "", b.Charge(start, asking("dropped", charge.Found), false).Verdict.Code)
	record := log.records[len(log.records)-1]
	b.Drop(record)
	require.NoError(t, b.Check())
	require.EqualValues(t, 9, b.leases.accounts.get(1).credits.held())
	a := b.Charge(start, asking("dropped", charge.Found), false)
	require.False(t, a.Repeated)

	_, err := b.Void(start, "kept")
	require.NoError(t, err)
	b.Drop(log.records[len(log.records)-1])
	require.NoError(t, b.Check())
	require.EqualValues(t, 8, b.leases.accounts.get(1).credits.held())
	require.Equal(t, "", b.Charge(start, asking("kept", charge.Found), false).Verdict.Code, "its charge stands again")
}

func TestRememberedIDsAreBounded(t *testing.T) {
	r := newRecentIDs()
	for i := range recentLimit + 10 {
		r.put(entry{high: uint64(i), low: 1, at: start + int64(i)})
	}
	require.Len(t, r.pages, recentLimit/pageEntries)
	require.Nil(t, r.find(sum{9, 1}))
	require.NotNil(t, r.find(sum{10, 1}))
	require.Nil(t, r.find(sum{10, 2}))
	require.Equal(t, start+9, r.forgotten)
	require.True(t, r.tooOld("00000000000000000000000000"))
	require.False(t, r.tooOld("7ZZZZZZZZZ0000000000000000"))
	require.False(t, r.tooOld("another-form"))
}

func TestAnEntryIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(entry{}), uintptr(64), "an edge keeps 131,072 of them")
}

// TestRememberedIDsAreFound holds the index against a map, with sums that meet in it.
func TestRememberedIDsAreFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	r, want := newRecentIDs(), map[sum]int64{}
	var order []sum
	for n := range int64(3 * recentLimit) {
		s := sum{random.Uint64() % (2 * recentLimit), uint32(random.IntN(4))}
		if n > 2*recentLimit { // far apart again
			s.high = random.Uint64()
		}
		if random.IntN(5) == 0 && len(order) > 0 {
			gone := order[random.IntN(len(order))]
			r.forget(gone)
			delete(want, gone)
		}
		r.put(entry{key: n}.named(s))
		want[s], order = n, append(order, s)
		if len(order) > recentLimit {
			oldest := order[0]
			if want[oldest] == n-recentLimit {
				delete(want, oldest)
			}
			order = order[1:]
		}
	}
	for _, s := range order {
		if key, ok := want[s]; ok {
			require.Equal(t, key, r.find(s).key)
		} else {
			require.Nil(t, r.find(s))
		}
	}
}

func TestSandbox(t *testing.T) {
	b := New(&memory{})
	from := func(client, id string, outcome charge.Outcome) charge.Verdict {
		r := &charge.Request{ID: id, Sandbox: true, Client: client, PerMinute: 3, Endpoint: charge.LLPs, Outcome: outcome}
		return b.Charge(start, r, false).Verdict
	}
	t.Run("counts an IPv6 network as one client", func(t *testing.T) {
		for i := range 3 {
			require.Equal(t, "", from(fmt.Sprintf("2001:db8::%d", i), fmt.Sprint("six", i), charge.Found).Code)
		}
		require.Equal(t, charge.RateLimitExceeded, from("2001:db8::ffff:1", "six", charge.Found).Code)
		require.Equal(t, "", from("2001:db8:0:1::1", "seven", charge.Found).Code)
		require.Equal(t, "", from("::ffff:192.0.2.1", "mapped", charge.Found).Code)
		require.EqualValues(t, 1, from("192.0.2.1", "four", charge.Found).RateRemaining)
	})
	t.Run("refuses a client past its not-found cap", func(t *testing.T) {
		for i := range sandboxNotFoundCap {
			r := &charge.Request{ID: fmt.Sprint("n", i), Sandbox: true, Client: "192.0.2.9", PerMinute: 1000, Endpoint: charge.LLPs, Outcome: charge.NotFound}
			require.Equal(t, "", b.Charge(start, r, false).Verdict.Code)
		}
		r := &charge.Request{ID: "n", Sandbox: true, Client: "192.0.2.9", PerMinute: 1000, Endpoint: charge.LLPs, Outcome: charge.Found}
		require.Equal(t, charge.NotFoundCapExceeded, b.Charge(start, r, false).Verdict.Code)
	})
	t.Run("remembers a bounded number of clients", func(t *testing.T) {
		for i := range 3 * sandboxClientsLimit {
			from(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), fmt.Sprint("c", i), charge.Failed)
		}
		require.LessOrEqual(t, len(b.sandbox.newer)+len(b.sandbox.older), 2*sandboxClientsLimit)
	})
}

func TestUnresolvedChargesAreReported(t *testing.T) {
	b, _ := granted(t, 10)
	b.Charge(start, asking("answered", charge.Found), false)
	b.Charge(start, asking("doubtful", charge.Found), false)
	b.Doubt(start, "answered")
	b.Doubt(start, "doubtful")
	b.Charge(start, asking("answered", charge.Found), false) // asked again: it arrived
	require.Empty(t, b.Sync(start).Batch.Unresolved)
	b.Apply(start, &syncproto.Reply{Status: syncproto.OK, Session: 1, Epoch: 1, Generation: 1, Applied: 1, Live: 1}, true)
	s := b.Sync(start + doubtMillis)
	require.Len(t, s.Batch.Unresolved, 1)
	require.Equal(t, "doubtful", s.Batch.Unresolved[0].ID)
}

func FuzzReplay(f *testing.F) {
	b, log := granted(f, 100)
	b.Charge(start, asking("f", charge.Found), false)
	b.Void(start, "f")
	b.Sync(start)
	for _, r := range log.records {
		f.Add(r)
	}
	b.Snapshot(func(r []byte) { f.Add(append([]byte(nil), r...)) })
	f.Fuzz(func(t *testing.T, record []byte) {
		fresh := New(&memory{})
		if fresh.Replay(record) == nil {
			fresh.Snapshot(func([]byte) {})
		}
		fresh.ReplayID(record)
	})
}

func TestARepeatedVerdictIsTheSame(t *testing.T) {
	b := New(&memory{})
	now := start + 123
	rated := charge.Verdict{
		RateLimit: 60, RateRemaining: 5, RateReset: secondsUntil(now, endOfMinute(now)),
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent,
	}
	unrated := rated
	unrated.RateRemaining, unrated.RateReset, unrated.CreditsRemaining = charge.Unsent, charge.Unsent, 7
	volume, notFound, credits := rated, rated, rated
	volume.Code, volume.RetryAfter = charge.MonthlyVolumeExceeded, secondsUntil(now, syncproto.EndOfMonth(syncproto.Month(now)))
	notFound.Code, notFound.RetryAfter = charge.NotFoundCapExceeded, secondsUntil(now, syncproto.EndOfDay(syncproto.Day(now)))
	credits.Code = charge.InsufficientCredits
	for i, v := range []charge.Verdict{rated, unrated, volume, notFound, credits} {
		r := &charge.Request{ID: fmt.Sprint(i), Account: 1, Key: 1, PerMinute: 60, Endpoint: charge.LLPs, Outcome: charge.Found}
		b.answer(now, r, b.recent.sum(r.ID), v, answered)
		again := b.Charge(now+40_000, r, false)
		require.True(t, again.Repeated)
		require.Equal(t, v, again.Verdict)
	}
}
