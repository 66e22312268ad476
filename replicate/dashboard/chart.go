package dashboard

import (
	"fmt"
	"time"

	"regedge/handler/charge"
)

const (
	// chartDays is how many days the chart of an account shows; on a phone it shows the last phoneDays.
	chartDays, phoneDays = 30, 14
	// maxBars is how many days get a bar each: in a longer range, a bar is a week.
	maxBars = 62
)

// dayCalls are the calls of one UTC day, or of the days up to Last, by outcome.
type dayCalls struct {
	Day, Last               time.Time
	Found, NotFound, Failed int64
}

// Period is the day, or the first and the last one.
func (c dayCalls) Period() string {
	if c.Last.Equal(c.Day) {
		return day(c.Day)
	}
	return day(c.Day) + " – " + day(c.Last)
}

// Total is every call of the day.
func (c dayCalls) Total() int64 { return c.Found + c.NotFound + c.Failed }

// add counts calls. A voided call is a negative count in its hour, which may be on another day, so bars
// are cut at zero.
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
	last := time.Unix(int64(today)*86400, 0).UTC()
	return daysBetween(last.AddDate(0, 0, 1-chartDays), last)
}

// daysBetween returns the days of a range, both ends included, without calls.
func daysBetween(first, last time.Time) (days []dayCalls) {
	for d := first; !d.After(last); d = d.AddDate(0, 0, 1) {
		days = append(days, dayCalls{Day: d, Last: d})
	}
	return days
}

// weeks adds days up to bars of seven, counted from the last day. The first may have fewer.
func weeks(days []dayCalls) (list []dayCalls) {
	for i, d := range days {
		if left := len(days) - i; i == 0 || left%7 == 0 {
			list = append(list, dayCalls{Day: d.Day})
		}
		w := &list[len(list)-1]
		w.Last, w.Found, w.NotFound, w.Failed = d.Day, w.Found+d.Found, w.NotFound+d.NotFound, w.Failed+d.Failed
	}
	return list
}

// chart has a bar for each day, laid out for a wide and a narrow screen, and the same
// numbers for a table.
type chart struct {
	Title, None  string     // None says that there were no calls
	Days         []dayCalls // oldest first
	Total        dayCalls
	Wide, Narrow drawing
}

// newChart is the chart of an account's last days.
func newChart(days []dayCalls) chart {
	c := chart{Title: "Calls a day", None: "There were no calls in the last 30 days. Only found ones cost a credit.", Days: days}
	c.add()
	phone := days[len(days)-phoneDays:]
	c.Wide = draw(days, 960, fmt.Sprintf("Calls of the last %d days", len(days)), "on a day")
	c.Narrow = draw(phone, 360, fmt.Sprintf("Calls of the last %d days", len(phone)), "on a day")
	return c
}

// newRangeChart is the chart of chosen days.
func newRangeChart(days []dayCalls) chart {
	c := chart{Title: "Calls a day", None: "There were no such calls in these days.", Days: days}
	unit := "on a day"
	if len(days) > maxBars {
		c.Title, c.Days, unit = "Calls a week", weeks(days), "in a week"
	}
	c.add()
	what := fmt.Sprintf("%s from %s to %s", c.Title, day(days[0].Day), day(days[len(days)-1].Day))
	c.Wide, c.Narrow = draw(c.Days, 960, what, unit), draw(c.Days, 360, what, unit)
	return c
}

// add adds the days up to the total.
func (c *chart) add() {
	for _, d := range c.Days {
		c.Total.Found += d.Found
		c.Total.NotFound += d.NotFound
		c.Total.Failed += d.Failed
	}
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
	labelRoom     = 60 // from one label to the next
	widestBar     = 56
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

// labelEvery is how many bars have one label between them, when a bar takes step pixels.
func labelEvery(step float64) int {
	if step >= labelRoom {
		return 1
	}
	every := 7
	for float64(every)*step < labelRoom {
		every *= 2
	}
	return every
}

// draw lays out days on a drawing of the given width. what names its subject, and unit the length of a
// bar.
func draw(days []dayCalls, width int, what, unit string) drawing {
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
		wide := min(step*0.72, widestBar)
		d.Bars = append(d.Bars, newBar(day, x+(step-wide)/2, wide, top))
		if (len(days)-1-i)%labelEvery(step) == 0 {
			d.Labels = append(d.Labels, label{min(x+step/2, float64(width-labelHalf)), day.Day.Format("2 Jan")})
		}
	}
	d.Summary = fmt.Sprintf("%s: %s, at most %s %s.", what, number(total), number(most), unit)
	return d
}

// newBar stacks the outcomes of a day: found at the bottom.
func newBar(day dayCalls, x, width float64, top int64) bar {
	when := day.Day.Format("2 Jan")
	if !day.Last.Equal(day.Day) {
		when = day.Period()
	}
	b := bar{X: x, Width: width, Words: fmt.Sprintf("%s: %s found, %s not found, %s failed",
		when, number(day.Found), number(day.NotFound), number(day.Failed))}
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
