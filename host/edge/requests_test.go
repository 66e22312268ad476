package edge

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/host/server"
	"regedge/replicate/metering/writer"
)

func logged(key int64, n int) server.Served {
	return server.Served{ID: fmt.Sprintf("%026d", n), Key: key, Endpoint: "companies", Status: 200, Credits: 1}
}

func TestTheNewestRequestsOfEachKeyAreSent(t *testing.T) {
	var l requestLog
	require.Empty(t, l.take())
	refused := logged(7, 1)
	refused.Status, refused.Code, refused.Credits = 402, "insufficient_credits", 0
	l.note(refused)
	l.note(server.Served{ID: "short", Key: 7})
	for n := range 3 * keptOfKey {
		l.note(logged(8, 1000+n))
	}
	sent := map[int64][]writer.Served{}
	for _, s := range l.take() {
		sent[s.Key] = append(sent[s.Key], s)
	}
	require.Equal(t, []writer.Served{{ID: refused.ID, Key: 7, Endpoint: "companies", Status: 402, Code: "insufficient_credits"}}, sent[7],
		"a busy key takes no place of a quiet one")
	require.Len(t, sent[8], keptOfKey)
	for _, s := range sent[8] {
		require.GreaterOrEqual(t, s.ID, fmt.Sprintf("%026d", 1000+2*keptOfKey))
	}
	require.Empty(t, l.take(), "they are sent once")

	for key := range int64(2 * keptKeys) {
		for n := range 4 {
			l.note(logged(key+1, n))
		}
	}
	require.Len(t, l.keys, keptKeys)
	taken, keys := l.take(), map[int64]bool{}
	require.Len(t, taken, writer.MaxRequests)
	for _, s := range taken {
		keys[s.Key] = keys[s.Key] || s.ID == logged(s.Key, 3).ID
	}
	require.NotContains(t, slices.Collect(maps.Values(keys)), false, "the newest is sent")
	require.Len(t, keys, keptKeys, "the newest of each come before others")
}

func BenchmarkNoteRequest(b *testing.B) {
	var l requestLog
	s := logged(7, 1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.note(s)
		}
	})
}
