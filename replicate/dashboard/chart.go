package dashboard

import (
	"fmt"
	"time"

	"regedge/handler/charge"
)

// chartDays is how many days a chart shows; on a phone it shows the last phoneDays.
const chartDays, phoneDays = 30, 14

// dayCalls are the calls of one UTC day, by outcome.
type dayCalls struct {
	Day                     time.Time
	Found, NotFound, Failed int64
}

// Total is every call of the day.
func (c dayCalls) Total() int64 { return c.Found + c.NotFound + c.Failed }

// add counts calls. A call that was voided comes as a negative count of its hour, which
// may be another day's: no bar is below zero.
func (c *dayCalls) add(outcome charge.Outcome, count int64) {
	switch count = max(count, 0); outcome {
	case charge.Found:
		c.Found += count
	case charge.NotFound:
		c.NotFound += count
	case charge.Failed:
		c.Failed += count
	}
}

// emptyDays returns the days of a chart that ends today, without calls.
func emptyDays(today int32) []dayCalls {
	days := make([]dayCalls, chartDays)
	for i := range days {
		days[i].Day = time.Unix(int64(today-chartDays+1+int32(i))*86400, 0).UTC()
	}
	return days
}

// chart has a bar for each day, laid out for a wide and a narrow screen, and the same
// numbers for a table.
type chart struct {
	Days         []dayCalls // oldest first
	Total        dayCalls
	Wide, Narrow drawing
}

func newChart(days []dayCalls) chart {
	c := chart{Days: days}
	for _, d := range days {
		c.Total.Found += d.Found
		c.Total.NotFound += d.NotFound
		c.Total.Failed += d.Failed
	}
	c.Wide = draw(days, 960)
	c.Narrow = draw(days[len(days)-phoneDays:], 360)
	return c
}

// Newest lists the days newest first, without those before the first call.
func (c chart) Newest() []dayCalls {
	var list []dayCalls
	first := len(c.Days)
	for i, d := range c.Days {
		if d.Total() > 0 {
			first = i
			break
		}
	}
	for i := len(c.Days) - 1; i >= first; i-- {
		list = append(list, c.Days[i])
	}
	return list
}

// Dimensions of a drawing, in pixels of the screen it is made for.
const (
	drawingHeight = 220
	plotTop       = 12
	plotBottom    = 192
	plotLeft      = 52
	plotRight     = 8
	gridLines     = 4
	labelHalf     = 24 // half of the widest label
)

// drawing is a chart's layout: rectangles, lines and texts with their positions.
type drawing struct {
	Width, Height     int
	Left, Right, Base int
	Bars              []bar
	Lines             []line
	Labels            []label
	Summary           string
}

type bar struct {
	X, Width float64
	Parts    []part
	Words    string
}

type part struct {
	Class     string
	Y, Height float64
}

type line struct {
	Y     float64
	Words string
}

type label struct {
	X     float64
	Words string
}

// draw lays out days on a drawing of the given width.
func draw(days []dayCalls, width int) drawing {
	d := drawing{Width: width, Height: drawingHeight, Left: plotLeft, Right: width - plotRight, Base: plotBottom}
	most, total := int64(0), int64(0)
	for _, day := range days {
		most = max(most, day.Total())
		total += day.Total()
	}
	top := niceTop(most)
	for i := range gridLines + 1 {
		y := plotBottom - float64(i)*(plotBottom-plotTop)/gridLines
		d.Lines = append(d.Lines, line{y, short(top * int64(i) / gridLines)})
	}
	step := float64(width-plotLeft-plotRight) / float64(len(days))
	for i, day := range days {
		x := plotLeft + float64(i)*step
		d.Bars = append(d.Bars, newBar(day, x+step*0.14, step*0.72, top))
		if (len(days)-1-i)%7 == 0 {
			d.Labels = append(d.Labels, label{min(x+step/2, float64(width-labelHalf)), day.Day.Format("2 Jan")})
		}
	}
	d.Summary = fmt.Sprintf("Calls of the last %d days: %s, at most %s on a day.", len(days), number(total), number(most))
	return d
}

// newBar stacks the outcomes of a day: found at the bottom.
func newBar(day dayCalls, x, width float64, top int64) bar {
	b := bar{X: x, Width: width, Words: fmt.Sprintf("%s: %s found, %s not found, %s failed",
		day.Day.Format("2 Jan"), number(day.Found), number(day.NotFound), number(day.Failed))}
	y := float64(plotBottom)
	for _, p := range []struct {
		class string
		count int64
	}{{"found", day.Found}, {"missed", day.NotFound}, {"failed", day.Failed}} {
		if p.count == 0 {
			continue
		}
		// A count is visible, however small beside the others.
		height := max(float64(p.count)/float64(top)*(plotBottom-plotTop), 1.5)
		y -= height
		b.Parts = append(b.Parts, part{p.class, y, height})
	}
	return b
}

// niceTop returns the smallest 4 times 1, 2 or 5 times a power of ten that is at least most,
// so that every grid line has a round number.
func niceTop(most int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, factor := range []int64{1, 2, 5} {
			if top := gridLines * unit * factor; top >= most {
				return top
			}
		}
	}
}

// short formats a number in few characters.
func short(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%gM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%gk", float64(n)/1e3)
	}
	return number(n)
}
