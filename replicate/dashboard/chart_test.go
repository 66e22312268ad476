package dashboard

import (
	"math"
	"testing"
	"time"

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

func TestALongRangeHasABarForEachWeek(t *testing.T) {
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for count, want := range map[int]int{1: 1, 62: 62, 63: 9, 400: 58} {
		days := daysBetween(first, first.AddDate(0, 0, count-1))
		require.Len(t, days, count)
		for i := range days {
			days[i].add(charge.Found, int64(i+1))
		}
		c := newRangeChart(days)
		require.Len(t, c.Wide.Bars, want)
		require.Equal(t, int64(count*(count+1)/2), c.Total.Found, "no day is left out")
		require.Equal(t, days[count-1].Day, c.Days[want-1].Last)
		for i := 1; i < want; i++ {
			require.Equal(t, c.Days[i-1].Last.AddDate(0, 0, 1), c.Days[i].Day)
		}
		for _, d := range []drawing{c.Wide, c.Narrow} {
			require.NotEmpty(t, d.Labels)
			for i := 1; i < len(d.Labels); i++ {
				require.Greater(t, d.Labels[i].X-d.Labels[i-1].X, 40.0, "%d days on %d pixels: labels do not overlap", count, d.Width)
			}
			for _, b := range d.Bars {
				require.LessOrEqual(t, b.X+b.Width, float64(d.Width-plotRight))
			}
		}
	}
	require.Equal(t, "Calls a week", newRangeChart(daysBetween(first, first.AddDate(0, 0, 62))).Title)
	require.Equal(t, "1 Jan 2025 – 7 Jan 2025", weeks(daysBetween(first, first.AddDate(0, 0, 6)))[0].Period())
	var periods []string
	for _, week := range weeks(daysBetween(first, first.AddDate(0, 0, 15))) {
		periods = append(periods, week.Period())
	}
	require.Equal(t, []string{"1 Jan 2025 – 2 Jan 2025", "3 Jan 2025 – 9 Jan 2025", "10 Jan 2025 – 16 Jan 2025"}, periods, "the last one is whole")
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "−1,234,567", 100_000: "100,000"} {
		require.Equal(t, want, number(n))
	}
	for n, want := range map[int64]string{0: "0", 9_999: "9,999", 10_000: "10k", 25_000: "25k", 12_500: "12.5k", 10_000_000: "10M", 20_000_000: "20M"} {
		require.Equal(t, want, short(n))
	}
}
