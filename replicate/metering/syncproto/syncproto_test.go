package syncproto_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

func batch() *syncproto.Batch {
	return &syncproto.Batch{
		Seq: 7, Of: 2,
		Usage: []syncproto.Usage{
			{Account: 1, Key: 2, Hour: 500_000, Endpoint: charge.Companies, Outcome: charge.Found, Count: 3},
			{Account: 1, Key: 2, Hour: 500_000, Endpoint: charge.LLPs, Outcome: charge.NotFound, Count: -1},
		},
		Returns:    []syncproto.Return{{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Units: 5, Close: true}},
		Unresolved: []syncproto.Unresolved{{ID: "01J8ZC", Account: 1, Key: 2, AtMillis: 1_790_000_000_000}},
	}
}

func messages() []syncproto.Message {
	return []syncproto.Message{
		{Number: math.MaxUint64, Hello: &syncproto.Hello{Epoch: 1, Boot: math.MaxUint64, Sealed: 9, Acked: 8, Granted: 100, Generation: 3, NowMillis: -5}},
		{Sync: &syncproto.Sync{Session: 1, Seen: 2, HoldMillis: 15_000, NowMillis: 4}},
		{Number: 1, Sync: &syncproto.Sync{
			Session: 1, Seen: 2, NowMillis: 4, Batch: batch(),
			Wants:        []syncproto.Want{{Pool: syncproto.Pool{Kind: syncproto.Volume, Subject: 9, Window: 24_322}, Target: 60, Urgent: true}},
			Rates:        []syncproto.Rate{{Subject: 9, Minute: 29_000_000, Count: 17}},
			Declared:     []syncproto.Declared{{Pool: syncproto.Pool{Kind: syncproto.NotFound, Subject: 9, Window: 20_000}, Granted: 10}},
			DeclaredLast: true,
		}},
	}
}

func reply() *syncproto.Reply {
	return &syncproto.Reply{
		Answers: math.MaxUint64, Status: syncproto.OK, Session: 1, Epoch: 2, Generation: 3, Applied: 4, Since: 5, Upto: 6, Live: 2, NowMillis: 7, Declare: true,
		Rows: []syncproto.Row{
			{Version: 6, Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Granted: 10, UntilMillis: 99, Recall: true, Balance: 12},
			{Version: 5, Pool: syncproto.Pool{Kind: syncproto.Volume, Subject: 1, Window: 24_322}, Granted: 10, Dry: true},
		},
		Others: []syncproto.Rate{{Subject: 1, Minute: 2, Count: 3}},
	}
}

func TestMessagesSurviveEncoding(t *testing.T) {
	for _, m := range messages() {
		got, err := syncproto.DecodeMessage(m.Encode())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	got, err := syncproto.DecodeReply(reply().Encode())
	require.NoError(t, err)
	require.Equal(t, reply(), got)
}

func TestTruncatedMessagesAreRefused(t *testing.T) {
	for _, m := range messages() {
		encoded := m.Encode()
		for n := range encoded {
			_, err := syncproto.DecodeMessage(encoded[:n])
			require.ErrorIs(t, err, syncproto.ErrMalformed)
		}
		_, err := syncproto.DecodeMessage(append(encoded, 0))
		require.ErrorIs(t, err, syncproto.ErrMalformed)
	}
}

// TestNumbersFitADatabase checks that no edge can make the writer store a number that does not
// fit into its ledger: the commit would fail for all edges in the group.
func TestNumbersFitADatabase(t *testing.T) {
	const large = 1 << 63
	for _, m := range []syncproto.Message{
		{Hello: &syncproto.Hello{Epoch: large}},
		{Hello: &syncproto.Hello{Sealed: large}},
		{Hello: &syncproto.Hello{Acked: large}},
		{Hello: &syncproto.Hello{Generation: large}},
		{Sync: &syncproto.Sync{Batch: &syncproto.Batch{Seq: large}}},
		{Sync: &syncproto.Sync{Batch: &syncproto.Batch{Of: large}}},
	} {
		_, err := syncproto.DecodeMessage(m.Encode())
		require.ErrorIs(t, err, syncproto.ErrMalformed)
	}
}

func TestMonthsAndDaysBeginAtMidnightUTC(t *testing.T) {
	at := func(s string) int64 {
		parsed, err := time.Parse(time.RFC3339, s)
		require.NoError(t, err)
		return parsed.UnixMilli()
	}
	last, first := at("2026-12-31T23:59:59Z"), at("2027-01-01T00:00:00Z")
	require.Equal(t, syncproto.Month(last)+1, syncproto.Month(first))
	require.Equal(t, syncproto.Day(last)+1, syncproto.Day(first))
	require.Equal(t, syncproto.Minute(last)+1, syncproto.Minute(first))
	require.Equal(t, first, syncproto.EndOfMonth(syncproto.Month(last)))
	require.Equal(t, first, syncproto.EndOfDay(syncproto.Day(last)))
	require.Equal(t, syncproto.Month(last), syncproto.MonthOfHour(syncproto.Hour(last)))
	require.Equal(t, syncproto.Day(last), syncproto.DayOfHour(syncproto.Hour(last)))
	require.EqualValues(t, -1, syncproto.Minute(-1))
}

func TestTheSubjectOfARateIsAKeyOrAnAccount(t *testing.T) {
	require.EqualValues(t, 7, syncproto.KeyOf(syncproto.OfKey(7)))
	require.Zero(t, syncproto.KeyOf(7))
}

// newer turns a message into one of a later version, with fields that this one does not know.
func newer(encoded []byte, versions byte) []byte {
	b := append([]byte(nil), encoded...)
	b[0] += versions << 4
	return append(b, 0xff, 0, 7)
}

func TestAMessageOfTheNextVersionIsReadWithoutItsNewFields(t *testing.T) {
	for _, m := range messages() {
		got, err := syncproto.DecodeMessage(newer(m.Encode(), 1))
		require.NoError(t, err)
		require.Equal(t, m, got)
		_, err = syncproto.DecodeMessage(newer(m.Encode(), 2))
		require.ErrorIs(t, err, syncproto.ErrVersion)
	}
	got, err := syncproto.DecodeReply(newer(reply().Encode(), 1))
	require.NoError(t, err)
	require.Equal(t, reply(), got)
	_, err = syncproto.DecodeReply(newer(reply().Encode(), 2))
	require.ErrorIs(t, err, syncproto.ErrVersion)
}

func FuzzDecodeMessage(f *testing.F) {
	for _, m := range messages() {
		f.Add(m.Encode())
		f.Add(newer(m.Encode(), 1))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := syncproto.DecodeMessage(b); err == nil {
			requireForm(t, b, m.Encode())
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	f.Add(reply().Encode())
	f.Add(newer(reply().Encode(), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := syncproto.DecodeReply(b); err == nil {
			requireForm(t, b, r.Encode())
		}
	})
}

// requireForm checks that a message has only one encoding. Of a newer message only the known
// fields are compared.
func requireForm(t *testing.T, read, written []byte) {
	if read[0]>>4 > syncproto.Version {
		require.GreaterOrEqual(t, len(read), len(written))
		read = append([]byte{written[0]}, read[1:len(written)]...)
	}
	require.Equal(t, read, written)
}
