package meter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/meter"
)

// replayed answers with the replies of another run first, and then passes messages on. It keeps what it passes on.
type replayed struct {
	to      meter.Transport
	replies [][]byte // still to be given
	given   [][]byte
}

func (r *replayed) Sync(ctx context.Context, message []byte) ([]byte, error) {
	if len(r.replies) > 0 {
		first := r.replies[0]
		r.replies = r.replies[1:]
		return first, nil
	}
	answer, err := r.to.Sync(ctx, message)
	if err == nil {
		r.given = append(r.given, answer)
	}
	return answer, err
}

// checkpoint is a running edge, and a machine that was put back, with its memory, to an earlier moment of the same run.
type checkpoint struct {
	t              *testing.T
	books          *books
	original, back *edge
}

// newCheckpoint runs an edge up to a moment. Another one that reads the same clock, the same random numbers and the same
// replies has the same memory then.
func newCheckpoint(t *testing.T, upTo func(*checkpoint, *edge)) *checkpoint {
	c := &checkpoint{t: t, books: newBooks(t, 1000)}
	at := time.Now()
	open := func(way *replayed) *edge {
		m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: way, WaitLimit: time.Second, Now: func() time.Time { return at },
			Random: func(p []byte) { copy(p, "0123456789abcdefghij") }, Elapsed: func() time.Duration { return 0 }})
		require.NoError(t, err)
		e := &edge{Meter: m, name: "one"}
		upTo(c, e)
		return e
	}
	way := &replayed{to: c.books}
	c.original = open(way)
	c.back = open(&replayed{to: c.books, replies: way.given})
	return c
}

// found charges a found lookup of a key, without waiting for a lease.
func (c *checkpoint) found(e *edge, id string, key int64) string {
	r := charge.Request{ID: id, Account: bookedAccount, Key: key, PerMinute: 1000, Endpoint: charge.Companies, Outcome: charge.Found}
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Millisecond)
	defer cancel()
	return e.Charge(ctx, r).Code
}

// TestAMachineThatIsPutBackWithItsMemoryReportsAgain: it goes on in the session of that moment, and the writer has batches
// that it never made.
func TestAMachineThatIsPutBackWithItsMemoryReportsAgain(t *testing.T) {
	c := newCheckpoint(t, func(c *checkpoint, e *edge) {
		exchanged(t, e, 1)
		c.found(e, "wants", 1)
		exchanged(t, e, 2)
		require.Empty(t, c.found(e, "first", 1))
		exchanged(t, e, 2)
	})
	for n := range 3 {
		require.Empty(t, c.found(c.original, fmt.Sprint("original-", n), 1))
		exchanged(t, c.original, 1)
	}
	require.EqualValues(t, 4, c.books.ledger.Account(bookedAccount).Credits().Spent)
	require.Empty(t, c.found(c.back, "back", 1))
	require.Positive(t, c.back.Stats().Unsettled)
	for n := 0; n < 20 && c.back.Stats().Unsettled > 0; n++ {
		exchanged(t, c.back, 1)
	}
	require.Zero(t, c.back.Stats().Unsettled)
}

// TestAMachineThatIsPutBackWithItsMemoryGetsLeases, where nothing but leases had come since.
func TestAMachineThatIsPutBackWithItsMemoryGetsLeases(t *testing.T) {
	c := newCheckpoint(t, func(c *checkpoint, e *edge) {
		exchanged(t, e, 1)
		c.found(e, "wants", 1)
		exchanged(t, e, 2)
	})
	c.found(c.original, "another", 2) // it has the writer grant a lease of another key
	exchanged(t, c.original, 3)
	code := charge.MeteringUnavailable
	for n := 0; n < 20 && code != ""; n++ {
		code = c.found(c.back, fmt.Sprint("back-", n), 3)
		exchanged(t, c.back, 1)
	}
	require.Empty(t, code)
}
