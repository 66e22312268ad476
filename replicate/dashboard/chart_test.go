package dashboard

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
)

func TestTheGridHasRoundNumbersAndRoomForAll(t *testing.T) {
	for most, want := range map[int64]int64{0: 4, 1: 4, 4: 4, 5: 8, 8: 8, 9: 20, 21: 40, 41: 80, 124: 200, 999_999: 2_000_000} {
		require.Equal(t, want, niceTop(most), most)
	}
	require.GreaterOrEqual(t, niceTop(1<<60), int64(1<<60))
}

func TestBarsStandOnTheirLineAndStayWithinTheDrawing(t *testing.T) {
	days := emptyDays(20_000)
	days[0].add(charge.Found, 1)
	days[3].add(charge.NotFound, 1_000_000)
	days[29].add(charge.Found, 400)
	days[29].add(charge.Failed, 3)
	days[29].add(charge.Failed, -9)
	c := newChart(days)
	require.Equal(t, int64(401), c.Total.Found)
	require.Equal(t, int64(3), c.Total.Failed, "no count takes from another")
	for _, d := range []drawing{c.Wide, c.Narrow} {
		for _, b := range d.Bars {
			require.GreaterOrEqual(t, b.X, float64(plotLeft))
			require.LessOrEqual(t, b.X+b.Width, float64(d.Width-plotRight))
			at := float64(plotBottom)
			for _, p := range b.Parts {
				require.InDelta(t, at, p.Y+p.Height, 1e-9, "each stands on the one below")
				require.GreaterOrEqual(t, p.Height, 1.5, "what is there is seen")
				require.False(t, math.IsNaN(p.Y))
				at = p.Y
			}
			require.Greater(t, at, 0.0)
		}
	}
	require.Len(t, c.Wide.Bars, chartDays)
	require.Len(t, c.Narrow.Bars, phoneDays)
	require.Len(t, c.Newest(), 30)
	require.Empty(t, newChart(emptyDays(20_000)).Newest())
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "−1,234,567", 100_000: "100,000"} {
		require.Equal(t, want, number(n))
	}
	for n, want := range map[int64]string{0: "0", 9_999: "9,999", 25_000: "25k", 12_500: "12.5k", 20_000_000: "20M"} {
		require.Equal(t, want, short(n))
	}
}
