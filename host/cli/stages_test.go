package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/registry/push"
)

// TestASlowPushNamesTheFasterWay, once, and only before many records.
func TestASlowPushNamesTheFasterWay(t *testing.T) {
	for total, times := range map[int64]int{slowRecords: 1, slowRecords - 1: 0} {
		var out bytes.Buffer
		s := newStages(&out, time.Now, "pushing")
		s.faster = "There is a faster way."
		s.set(push.Progress{Stage: push.Comparing, Done: 1, Total: total})
		for done := range int64(3) {
			s.set(push.Progress{Stage: push.Writing, Done: done, Total: total})
		}
		require.Equal(t, times, strings.Count(out.String(), " records are written one by one. There is a faster way.\n"))
	}
}

func TestAPushWritesLinesWhereNoTerminalIs(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	s := newStages(&out, func() time.Time { return now }, "pushing")
	s.set(push.Progress{Stage: push.Hashing, Done: 0, Total: 9000})
	for range 7 {
		now = now.Add(time.Second)
		s.set(push.Progress{Stage: push.Hashing, Done: s.shown.done + 1000, Total: 9000})
	}
	s.set(push.Progress{Stage: push.Waiting})
	s.set(push.Progress{Stage: push.Writing, Done: 10, Total: 20})
	s.failed(errors.New("gone"), 1, 8, 250*time.Millisecond)
	now = now.Add(2 * time.Second)
	s.set(push.Progress{Stage: push.Writing, Done: 20, Total: 20})
	s.finish()
	s.finish()
	s.set(push.Progress{Stage: push.HandingOver, Done: 1000, Total: 1000})
	s.finish()
	require.Equal(t, `hashing the records: 0 of 9000 records
hashing the records: 5000 of 9000 records, 1000 a second, 4s left
waiting for another push, which makes its snapshot in --releases
a call of the primary failed (attempt 1 of 8, the next in 250ms): gone
pushing: 20 of 20 records, 10 a second, 0s left
handing the file over: 1000 of 1000 B
`, out.String())
}

// TestALongTaskWritesLinesWhereNoTerminalIs, and a short one nothing.
func TestALongTaskWritesLinesWhereNoTerminalIs(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	p := newProgress(&out, func() time.Time { return now }, "importing", "B")
	for second := range int64(11) {
		p.set(3_000_000*second, 60_000_000)
		if second < 4 {
			require.Empty(t, out.String())
		}
		now = now.Add(time.Second)
	}
	p.finish()
	unknown := newProgress(&out, func() time.Time { return now }, "generating", "records")
	now = now.Add(lineEvery)
	unknown.set(500, 0)
	require.Equal(t, `importing: 15 of 60 MB, 3 a second, 15s left
importing: 30 of 60 MB, 3 a second, 10s left
generating: 500 records, 100 a second
`, out.String())
}
