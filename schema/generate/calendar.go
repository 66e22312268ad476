package generate

import "time"

// calendar holds every day from the first of firstYear to lastDay, so that a date costs
// no arithmetic.
type calendar struct {
	days   []string // YYYY-MM-DD
	starts []int    // index of 1 January of each year from firstYear on
	years  shares[int]
}

func newCalendar() *calendar {
	c := &calendar{}
	for day := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC); ; day = day.AddDate(0, 0, 1) {
		if day.YearDay() == 1 {
			c.starts = append(c.starts, len(c.days))
		}
		c.days = append(c.days, day.Format(time.DateOnly))
		if c.days[len(c.days)-1] == lastDay {
			break
		}
	}
	var list []share[int]
	for i, count := range years {
		list = append(list, share[int]{i, float64(count)})
	}
	c.years = newShares(list)
	return c
}

// incorporation is the day on which the share u of all companies had been incorporated,
// so that it grows with u as registration numbers do. It is an index of days.
func (c *calendar) incorporation(u float64) int {
	i := c.years.index(u)
	low := 0.0
	if i > 0 {
		low = c.years.upTo[i-1]
	}
	first, next := c.starts[i], len(c.days)
	if i+1 < len(c.starts) {
		next = c.starts[i+1]
	}
	within := (u - low) / (c.years.upTo[i] - low)
	return min(first+int(within*float64(next-first)), next-1)
}

// after is a day from the given one on, most often soon after it.
func (c *calendar) after(r *random, day int) int {
	return day + r.skewed(len(c.days)-day)
}
