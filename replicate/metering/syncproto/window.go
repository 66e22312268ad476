package syncproto

import "time"

// The windows of leases are months and days in UTC. Usage is counted by hour, rates by minute.

// Hour is the hour since 1970 of a time in Unix milliseconds.
func Hour(millis int64) int32 { return int32(floorDiv(millis, time.Hour.Milliseconds())) }

// Day is the day since 1970 of a time in Unix milliseconds.
func Day(millis int64) int32 { return int32(floorDiv(millis, 24*time.Hour.Milliseconds())) }

// Minute is the minute since 1970 of a time in Unix milliseconds.
func Minute(millis int64) int64 { return floorDiv(millis, time.Minute.Milliseconds()) }

// Month is 12 × year + month - 1 of a time in Unix milliseconds.
func Month(millis int64) int32 {
	t := time.UnixMilli(millis).UTC()
	return int32(t.Year()*12 + int(t.Month()) - 1)
}

// MonthOfHour is the month of an hour since 1970.
func MonthOfHour(hour int32) int32 { return Month(int64(hour) * time.Hour.Milliseconds()) }

// DayOfHour is the day of an hour since 1970.
func DayOfHour(hour int32) int32 { return hour / 24 }

// EndOfMonth is the first millisecond after a month.
func EndOfMonth(month int32) int64 {
	year, index := int(month)/12, int(month)%12
	return time.Date(year, time.Month(index+2), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// EndOfDay is the first millisecond after a day.
func EndOfDay(day int32) int64 { return (int64(day) + 1) * 24 * time.Hour.Milliseconds() }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
