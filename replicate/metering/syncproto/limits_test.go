package syncproto_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// The largest values that a message may hold.
const (
	mostUnits = math.MaxInt64 >> 16
	mostID    = 1 << 53
)

// requireRead checks that a message is read as it was written.
func requireRead(t *testing.T, m syncproto.Message, why string) {
	t.Helper()
	got, err := syncproto.DecodeMessage(m.Encode())
	require.NoError(t, err, why)
	require.Equal(t, m, got, why)
}

func requireRefused(t *testing.T, m syncproto.Message, why string) {
	t.Helper()
	_, err := syncproto.DecodeMessage(m.Encode())
	require.ErrorIs(t, err, syncproto.ErrMalformed, why)
}

// TestNumbersOfAMessageAreReadUpToTheirLimits puts the lowest and the highest value into every number,
// and then one that is beyond it.
func TestNumbersOfAMessageAreReadUpToTheirLimits(t *testing.T) {
	hello := func(set func(h *syncproto.Hello, n int64)) func(int64) syncproto.Message {
		return func(n int64) syncproto.Message {
			h := &syncproto.Hello{}
			set(h, n)
			return syncproto.Message{Hello: h}
		}
	}
	sync := func(set func(s *syncproto.Sync, n int64)) func(int64) syncproto.Message {
		return func(n int64) syncproto.Message {
			s := &syncproto.Sync{}
			set(s, n)
			return syncproto.Message{Sync: s}
		}
	}
	reported := func(set func(u *syncproto.Usage, n int64)) func(int64) syncproto.Message {
		return sync(func(s *syncproto.Sync, n int64) {
			u := syncproto.Usage{Account: 1, Key: 1, Endpoint: charge.Companies, Outcome: charge.Found, Count: 1}
			set(&u, n)
			s.Batch = &syncproto.Batch{Usage: []syncproto.Usage{u}}
		})
	}
	pool := func(kind syncproto.Kind, set func(p *syncproto.Pool, n int64)) func(int64) syncproto.Message {
		return sync(func(s *syncproto.Sync, n int64) {
			p := syncproto.Pool{Kind: kind, Subject: 1}
			if kind != syncproto.Credits {
				p.Window = 1
			}
			set(&p, n)
			s.Wants = []syncproto.Want{{Pool: p}}
		})
	}
	credits := syncproto.Pool{Kind: syncproto.Credits, Subject: 1}
	for name, c := range map[string]struct {
		low, high int64
		message   func(n int64) syncproto.Message
	}{
		"epoch":         {0, mostUnits, hello(func(h *syncproto.Hello, n int64) { h.Epoch = uint64(n) })},
		"sealed":        {0, mostUnits, hello(func(h *syncproto.Hello, n int64) { h.Sealed = uint64(n) })},
		"acked":         {0, mostUnits, hello(func(h *syncproto.Hello, n int64) { h.Acked = uint64(n) })},
		"generation":    {0, mostUnits, hello(func(h *syncproto.Hello, n int64) { h.Generation = uint64(n) })},
		"grants":        {0, mostUnits, hello(func(h *syncproto.Hello, n int64) { h.Granted = n })},
		"hold":          {0, mostUnits, sync(func(s *syncproto.Sync, n int64) { s.HoldMillis = n })},
		"batch":         {0, mostUnits, sync(func(s *syncproto.Sync, n int64) { s.Batch = &syncproto.Batch{Seq: uint64(n)} })},
		"batch's epoch": {0, mostUnits, sync(func(s *syncproto.Sync, n int64) { s.Batch = &syncproto.Batch{Of: uint64(n)} })},
		"target":        {0, mostUnits, sync(func(s *syncproto.Sync, n int64) { s.Wants = []syncproto.Want{{Pool: credits, Target: n}} })},
		"declared":      {0, mostUnits, sync(func(s *syncproto.Sync, n int64) { s.Declared = []syncproto.Declared{{Pool: credits, Granted: n}} })},
		"returned": {0, mostUnits, sync(func(s *syncproto.Sync, n int64) {
			s.Batch = &syncproto.Batch{Returns: []syncproto.Return{{Pool: credits, Units: n}}}
		})},
		"rate's account": {1, mostID, sync(func(s *syncproto.Sync, n int64) { s.Rates = []syncproto.Rate{{Subject: n}} })},
		"rate's minute":  {0, mostUnits, sync(func(s *syncproto.Sync, n int64) { s.Rates = []syncproto.Rate{{Subject: 1, Minute: n}} })},
		"rate":           {0, mostUnits, sync(func(s *syncproto.Sync, n int64) { s.Rates = []syncproto.Rate{{Subject: 1, Count: n}} })},
		"account":        {1, mostID, reported(func(u *syncproto.Usage, n int64) { u.Account = n })},
		"key":            {1, mostID, reported(func(u *syncproto.Usage, n int64) { u.Key = n })},
		"count":          {-syncproto.MaxCount, syncproto.MaxCount, reported(func(u *syncproto.Usage, n int64) { u.Count = n })},
		"doubted account": {1, mostID, sync(func(s *syncproto.Sync, n int64) {
			s.Batch = &syncproto.Batch{Unresolved: []syncproto.Unresolved{{ID: "r", Account: n, Key: 1}}}
		})},
		"doubted time": {-62167219200000, 253402300799999, sync(func(s *syncproto.Sync, n int64) {
			s.Batch = &syncproto.Batch{Unresolved: []syncproto.Unresolved{{ID: "r", Account: 1, Key: 1, AtMillis: n}}}
		})},
		"clock": {-62167219200000, 253402300799999, sync(func(s *syncproto.Sync, n int64) { s.NowMillis = n })},
		"greeting's clock": {-62167219200000, 253402300799999, func(n int64) syncproto.Message {
			return syncproto.Message{Hello: &syncproto.Hello{NowMillis: n}}
		}},
		"doubted key": {1, mostID, sync(func(s *syncproto.Sync, n int64) {
			s.Batch = &syncproto.Batch{Unresolved: []syncproto.Unresolved{{ID: "r", Account: 1, Key: n}}}
		})},
		"kind": {1, 3, pool(syncproto.Volume, func(p *syncproto.Pool, n int64) {
			if p.Kind = syncproto.Kind(n); p.Kind == syncproto.Credits {
				p.Window = 0
			}
		})},
		"subject":         {1, mostID, pool(syncproto.Credits, func(p *syncproto.Pool, n int64) { p.Subject = n })},
		"credits' window": {0, 0, pool(syncproto.Credits, func(p *syncproto.Pool, n int64) { p.Window = int32(n) })},
		"hour of usage":   {0, 70389527, reported(func(u *syncproto.Usage, n int64) { u.Hour = int32(n) })},
		"month":           {1, math.MaxInt32, pool(syncproto.Volume, func(p *syncproto.Pool, n int64) { p.Window = int32(n) })},
		"day":             {1, math.MaxInt32, pool(syncproto.NotFound, func(p *syncproto.Pool, n int64) { p.Window = int32(n) })},
	} {
		requireRead(t, c.message(c.low), name+" at its least")
		requireRead(t, c.message(c.high), name+" at its most")
		requireRefused(t, c.message(c.low-1), name+" below its least")
		requireRefused(t, c.message(c.high+1), name+" beyond its most")
	}
	requireRefused(t, reported(func(u *syncproto.Usage, n int64) { u.Count = n })(0), "a count of nothing")
	requireRefused(t, reported(func(u *syncproto.Usage, n int64) { u.Endpoint = 99 })(0), "an unknown endpoint")
	requireRefused(t, reported(func(u *syncproto.Usage, n int64) { u.Outcome = 99 })(0), "an unknown outcome")
}

// TestListsOfAMessageAreReadUpToTheirLimits: what is longer could exhaust the reader's memory.
func TestListsOfAMessageAreReadUpToTheirLimits(t *testing.T) {
	credits := syncproto.Pool{Kind: syncproto.Credits, Subject: 1}
	sync := func(set func(s *syncproto.Sync, n int)) func(int) syncproto.Message {
		return func(n int) syncproto.Message {
			s := &syncproto.Sync{Batch: &syncproto.Batch{}}
			set(s, n)
			return syncproto.Message{Sync: s}
		}
	}
	for name, c := range map[string]struct {
		most    int
		message func(n int) syncproto.Message
	}{
		"usage": {syncproto.MaxUsage, sync(func(s *syncproto.Sync, n int) {
			s.Batch.Usage = slices.Repeat([]syncproto.Usage{{Account: 1, Key: 1, Endpoint: charge.Companies, Outcome: charge.Found, Count: 1}}, n)
		})},
		"returns": {syncproto.MaxReturns, sync(func(s *syncproto.Sync, n int) {
			s.Batch.Returns = slices.Repeat([]syncproto.Return{{Pool: credits, Units: 1}}, n)
		})},
		"doubts": {syncproto.MaxUnresolved, sync(func(s *syncproto.Sync, n int) {
			s.Batch.Unresolved = slices.Repeat([]syncproto.Unresolved{{ID: "r", Account: 1, Key: 1}}, n)
		})},
		"wants": {syncproto.MaxWants, sync(func(s *syncproto.Sync, n int) {
			s.Wants = slices.Repeat([]syncproto.Want{{Pool: credits, Target: 1}}, n)
		})},
		"rates": {syncproto.MaxRates, sync(func(s *syncproto.Sync, n int) {
			s.Rates = slices.Repeat([]syncproto.Rate{{Subject: 1, Count: 1}}, n)
		})},
		"declared leases": {syncproto.MaxDeclared, sync(func(s *syncproto.Sync, n int) {
			s.Declared = slices.Repeat([]syncproto.Declared{{Pool: credits, Granted: 1}}, n)
		})},
	} {
		requireRead(t, c.message(c.most), name)
		requireRefused(t, c.message(c.most+1), name)
	}
	longest := syncproto.Unresolved{ID: strings.Repeat("r", charge.MaxID), Account: 1, Key: 1}
	requireRead(t, syncproto.Message{Sync: &syncproto.Sync{Batch: &syncproto.Batch{Unresolved: []syncproto.Unresolved{longest}}}}, "the longest request id")
	for _, id := range []string{longest.ID + "r", "a b", ""} {
		longest.ID = id
		requireRefused(t, syncproto.Message{Sync: &syncproto.Sync{Batch: &syncproto.Batch{Unresolved: []syncproto.Unresolved{longest}}}}, "request id "+id)
	}
}

func TestValuesOfAReplyAreReadUpToTheirLimits(t *testing.T) {
	row := syncproto.Row{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}}
	for name, c := range map[string]struct {
		set   func(r *syncproto.Reply)
		valid bool
	}{
		"all at its least":       {func(*syncproto.Reply) {}, true},
		"every status":           {func(r *syncproto.Reply) { r.Status = syncproto.Retired }, true},
		"status 0":               {func(r *syncproto.Reply) { r.Status = 0 }, false},
		"a status beyond them":   {func(r *syncproto.Reply) { r.Status = syncproto.Retired + 1 }, false},
		"no live edge":           {func(r *syncproto.Reply) { r.Live = 0 }, false},
		"most live edges":        {func(r *syncproto.Reply) { r.Live = mostUnits }, true},
		"more live edges":        {func(r *syncproto.Reply) { r.Live = mostUnits + 1 }, false},
		"news of one version":    {func(r *syncproto.Reply) { r.Since, r.Upto = 7, 7 }, true},
		"news that go backwards": {func(r *syncproto.Reply) { r.Since, r.Upto = 8, 7 }, false},
		"most rows":              {func(r *syncproto.Reply) { r.Rows = slices.Repeat([]syncproto.Row{row}, syncproto.MaxRows) }, true},
		"more rows":              {func(r *syncproto.Reply) { r.Rows = slices.Repeat([]syncproto.Row{row}, syncproto.MaxRows+1) }, false},
		"recalled and dry": {func(r *syncproto.Reply) {
			r.Rows = []syncproto.Row{row}
			r.Rows[0].Recall, r.Rows[0].Dry = true, true
		}, true},
		"a debt": {func(r *syncproto.Reply) { r.Rows = []syncproto.Row{row}; r.Rows[0].Balance = -1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			want := &syncproto.Reply{Status: syncproto.OK, Live: 1}
			c.set(want)
			got, err := syncproto.DecodeReply(want.Encode())
			if c.valid {
				require.NoError(t, err)
				require.Equal(t, want, got)
			} else {
				require.ErrorIs(t, err, syncproto.ErrMalformed)
			}
		})
	}
}

// TestFlagsOfANewerRowAreRefused: a reader that ignored them would take a lease for another.
func TestFlagsOfANewerRowAreRefused(t *testing.T) {
	reply := &syncproto.Reply{Status: syncproto.OK, Live: 1, Rows: []syncproto.Row{{
		Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Recall: true, Dry: true, Balance: 1,
	}}}
	encoded := reply.Encode()
	at := slices.Index(encoded, 3) // both flags
	require.Equal(t, 1, strings.Count(string(encoded), "\x03"), "%x", encoded[:at])
	encoded[at]++
	_, err := syncproto.DecodeReply(encoded)
	require.ErrorIs(t, err, syncproto.ErrMalformed)
}

// TestAMessageIsBoundedInBytes sends one of a newer version, whose end would be skipped.
func TestAMessageIsBoundedInBytes(t *testing.T) {
	padded := func(encoded []byte, size int) []byte {
		b := append(newer(encoded, 1), make([]byte, size)...)
		return b[:size]
	}
	hello := syncproto.Message{Hello: &syncproto.Hello{}}.Encode()
	_, err := syncproto.DecodeMessage(padded(hello, syncproto.MaxMessage))
	require.NoError(t, err)
	_, err = syncproto.DecodeMessage(padded(hello, syncproto.MaxMessage+1))
	require.ErrorIs(t, err, syncproto.ErrMalformed)
	_, err = syncproto.DecodeReply(padded(reply().Encode(), syncproto.MaxMessage))
	require.NoError(t, err)
	_, err = syncproto.DecodeReply(padded(reply().Encode(), syncproto.MaxMessage+1))
	require.ErrorIs(t, err, syncproto.ErrMalformed)
}

func TestAMessageOfAnotherKindIsRefused(t *testing.T) {
	_, err := syncproto.DecodeMessage(reply().Encode())
	require.ErrorIs(t, err, syncproto.ErrMalformed)
	_, err = syncproto.DecodeReply(messages()[0].Encode())
	require.ErrorIs(t, err, syncproto.ErrMalformed)
	for _, first := range []byte{0x00, 0x01, 0x10, 0x14, 0x1f, 0x20} { // no version, or an unknown kind
		_, err = syncproto.DecodeMessage([]byte{first, 0})
		require.ErrorIs(t, err, syncproto.ErrMalformed, "%x", first)
	}
	for _, m := range messages() {
		encoded := m.Encode()
		encoded[0] &= 0x0f
		_, err = syncproto.DecodeMessage(encoded)
		require.ErrorIs(t, err, syncproto.ErrMalformed, "of version 0")
	}
}

// TestNumbersHaveOneEncoding: of two encodings of a message, one would not be recognised as repeated.
func TestNumbersHaveOneEncoding(t *testing.T) {
	for encoded, valid := range map[string]bool{"\x00": true, "\x7f": true, "\x80\x01": true, "\x80\x00": false, "\xff\x00": false, "\x80": false} {
		d := syncproto.NewDecoder([]byte(encoded))
		d.Uint()
		require.Equal(t, valid, d.Err() == nil, "%x", encoded)
	}
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		var e syncproto.Encoder
		e.Int(n)
		d := syncproto.NewDecoder(e.Bytes)
		require.Equal(t, n, d.Int())
		require.NoError(t, d.Err())
	}
	d := syncproto.NewDecoder([]byte{2})
	d.Bool()
	require.ErrorIs(t, d.Err(), syncproto.ErrMalformed, "a truth value of 2")
}

func TestADecoderReadsNothingAfterAFailure(t *testing.T) {
	d := syncproto.NewDecoder([]byte{5, 'a', 'b', 1, 2})
	require.Empty(t, d.Text(100), "longer than what follows")
	require.True(t, d.Failed())
	require.Zero(t, d.Uint())
	require.Zero(t, d.Byte())
	require.Zero(t, d.Count(10))
	require.ErrorIs(t, d.Err(), syncproto.ErrMalformed)
}

func TestATextOrAListMayEndAMessage(t *testing.T) {
	d := syncproto.NewDecoder([]byte{2, 'a', 'b'})
	require.Equal(t, "ab", d.Text(2))
	require.NoError(t, d.Err())
	d = syncproto.NewDecoder([]byte{2, 0, 0})
	require.Equal(t, 2, d.Count(2))
	require.False(t, d.Failed())
	d = syncproto.NewDecoder([]byte{3, 0, 0})
	require.Zero(t, d.Count(3), "more elements than bytes that follow")
	require.True(t, d.Failed())
}

func TestABatchIsEmptyWithoutContent(t *testing.T) {
	require.True(t, (&syncproto.Batch{Seq: 1, Of: 2}).Empty())
	full := batch()
	for _, b := range []syncproto.Batch{{Usage: full.Usage}, {Returns: full.Returns}, {Unresolved: full.Unresolved}} {
		require.False(t, b.Empty())
	}
}

func TestAPoolIsClosedSomeTimeAfterItsWindow(t *testing.T) {
	march := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC).UnixMilli()
	for name, c := range map[string]struct {
		pool   syncproto.Pool
		closed bool
	}{
		"credits":              {syncproto.Pool{Kind: syncproto.Credits}, false},
		"this month":           {syncproto.Pool{Kind: syncproto.Volume, Window: syncproto.Month(march)}, false},
		"the month before":     {syncproto.Pool{Kind: syncproto.Volume, Window: syncproto.Month(march) - 1}, false},
		"two months ago":       {syncproto.Pool{Kind: syncproto.Volume, Window: syncproto.Month(march) - 2}, true},
		"the day before":       {syncproto.Pool{Kind: syncproto.NotFound, Window: syncproto.Day(march) - 1}, false},
		"two days ago":         {syncproto.Pool{Kind: syncproto.NotFound, Window: syncproto.Day(march) - 2}, false},
		"three days ago":       {syncproto.Pool{Kind: syncproto.NotFound, Window: syncproto.Day(march) - 3}, true},
		"tomorrow, by a clock": {syncproto.Pool{Kind: syncproto.NotFound, Window: syncproto.Day(march) + 1}, false},
	} {
		require.Equal(t, c.closed, c.pool.Closed(march), name)
	}
}

func TestPoolsAreOrderedByKindSubjectAndWindow(t *testing.T) {
	var pools []syncproto.Pool
	for kind := syncproto.Credits; kind <= syncproto.NotFound; kind++ {
		for subject := range int64(3) {
			for window := range int32(3) {
				pools = append(pools, syncproto.Pool{Kind: kind, Subject: subject, Window: window})
			}
		}
	}
	sorted := slices.Clone(pools)
	slices.Reverse(sorted)
	slices.SortFunc(sorted, syncproto.Pool.Compare)
	require.Equal(t, pools, sorted)
}

// TestTimesBefore1970: a clock that was never set may show such times.
func TestTimesBefore1970(t *testing.T) {
	hour := time.Hour.Milliseconds()
	for millis, want := range map[int64][2]int32{0: {0, 0}, -1: {-1, -1}, -hour: {-1, -1}, -hour - 1: {-2, -1}, -24 * hour: {-24, -1}, -24*hour - 1: {-25, -2}} {
		require.Equal(t, want, [2]int32{syncproto.Hour(millis), syncproto.Day(millis)}, fmt.Sprint(millis))
	}
	require.EqualValues(t, 1970*12, syncproto.Month(0))
	require.EqualValues(t, 1970*12-1, syncproto.Month(-1))
}

// TestRepliesAreBoundedAsMessages holds that an edge takes no number from a reply that the writer would
// refuse in the edge's next message.
func TestRepliesAreBoundedAsMessages(t *testing.T) {
	const beyond = 1 << 47
	for name, change := range map[string]func(*syncproto.Reply){
		"epoch":      func(r *syncproto.Reply) { r.Epoch = beyond },
		"generation": func(r *syncproto.Reply) { r.Generation = beyond },
		"applied":    func(r *syncproto.Reply) { r.Applied = beyond },
		"time":       func(r *syncproto.Reply) { r.NowMillis = beyond },
	} {
		t.Run(name, func(t *testing.T) {
			r := syncproto.Reply{Status: syncproto.OK, Live: 1}
			_, err := syncproto.DecodeReply(r.Encode())
			require.NoError(t, err)
			change(&r)
			_, err = syncproto.DecodeReply(r.Encode())
			require.ErrorIs(t, err, syncproto.ErrMalformed)
		})
	}
}
