package lease

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
)

// headroom is that of all accounts.
func headroom(b *EdgeState, now int64) Headroom {
	h := NewHeadroom()
	for next := b.AddHeadroom(&h, now, 0); next != 0; next = b.AddHeadroom(&h, now, next) {
	}
	return h
}

func TestHeadroomIsHowLongLeasesLastAtTheirPresentUse(t *testing.T) {
	b, _ := granted(t, 100)
	require.Equal(t, Headroom{Credits: 100, LeastMillis: -1}, headroom(b, start), "nothing is in use")
	spend := func(from, to int) {
		for i := from; i < to; i++ {
			r := asking(fmt.Sprint("r", i), charge.Found)
			r.PerMinute = 1000
			require.Empty(t, b.Charge(start, r, false).Verdict.Code)
		}
	}
	spend(0, 50)
	require.Equal(t, Headroom{Credits: 50, LeastMillis: slotMillis}, headroom(b, start), "as long again")
	spend(50, 95)
	short := headroom(b, start)
	require.Equal(t, 1, short.Short)
	require.EqualValues(t, 5*slotMillis/95, short.LeastMillis)
	require.EqualValues(t, 95, b.Unsettled())
	require.Zero(t, headroom(b, start+2*slotMillis).Short, "it is not in use any more")
	require.Zero(t, headroom(b, start+leaseMillis).Credits, "its lease has ended")

	b.Sync(start)
	require.EqualValues(t, 95, b.Unsettled(), "a batch that was not acknowledged is unsettled")
	settled := news(b, 2, 100)
	settled.Applied = 1
	b.Apply(start, settled, true)
	require.Zero(t, b.Unsettled())
	require.NoError(t, b.Check())
}
