package dashboard

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// Summing is the turn of an account's sums, for which no page waits long, until the returned function is called.
func (d *Dashboard) Summing(account int64) (end func(), err error) {
	d.turns.wait = time.Millisecond
	return d.turns.enter(context.Background(), account)
}

// TestSumsOfAnAccountWaitForItsTurn, each for ten seconds, and nothing is kept of those that are done.
func TestSumsOfAnAccountWaitForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sums := newTurns()
		first, err := sums.enter(t.Context(), 1)
		require.NoError(t, err)
		other, err := sums.enter(t.Context(), 2)
		require.NoError(t, err, "another account has its own")
		other()
		began := time.Now()
		_, err = sums.enter(t.Context(), 1)
		require.ErrorIs(t, err, writer.ErrTooMany)
		require.Equal(t, sumWait, time.Since(began))
		time.AfterFunc(time.Second, first)
		second, err := sums.enter(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, sumWait+time.Second, time.Since(began))
		second()
		require.Empty(t, sums.of)
		var leave []func()
		for _, ctx := range []context.Context{t.Context(), ofOperator(t.Context())} {
			left, err := sums.enter(ctx, 1)
			require.NoError(t, err, "an operator waits for no owner")
			leave = append(leave, left)
		}
		_, err = sums.enter(t.Context(), 2)
		require.ErrorIs(t, err, writer.ErrTooMany, "two are made at once")
		go func() { _, _ = sums.enter(t.Context(), 2) }() // gives up after ten seconds, and its place with it
		time.Sleep(sumWait / 2)
		time.AfterFunc(sumWait*3/4, leave[0])
		third, err := sums.enter(t.Context(), 2)
		require.NoError(t, err)
		leave[1]()
		third()
		require.Empty(t, sums.of)
		require.Empty(t, sums.all)
	})
}
