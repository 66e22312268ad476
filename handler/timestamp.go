package handler

// The first and last second that a timestamp can stand for: of the years 0 and 9999.
const (
	firstSecond = -62167219200
	lastSecond  = 253402300799
)

// timestamp writes a column of Unix seconds as "YYYY-MM-DDTHH:MM:SSZ" (RFC 3339), or
// null. It is done here because SQLite's strftime takes longer than the rest of a row.
func (w *writer) timestamp(v Value) {
	switch {
	case v.Kind == Null:
		w.raw("null")
		return
	case v.Kind != Integer || v.Int < firstSecond || v.Int > lastSecond:
		w.damaged = true
		return
	}
	const secondsOfDay = 24 * 60 * 60
	since := v.Int - firstSecond
	year, month, day := date(int(since / secondsOfDay))
	second := int(since % secondsOfDay)
	b := w.room(len(`"YYYY-MM-DDTHH:MM:SSZ"`))
	copy(b, `"YYYY-MM-DDTHH:MM:SSZ"`)
	putPair(b, 1, year/100)
	putPair(b, 3, year%100)
	putPair(b, 6, month)
	putPair(b, 9, day)
	putPair(b, 12, second/3600)
	putPair(b, 15, second/60%60)
	putPair(b, 18, second%60)
}

// putPair writes a number below 100 as two digits.
func putPair(b []byte, at, n int) { b[at], b[at+1] = byte('0'+n/10), byte('0'+n%10) }

// date is the day that comes a number of days after 1 January of the year 0, in the
// Gregorian calendar.
func date(days int) (year, month, day int) {
	const daysOf400Years = 146097
	// By the mean length of a year this is at most one off.
	for year = days * 400 / daysOf400Years; daysBefore(year) > days; {
		year--
	}
	for daysBefore(year+1) <= days {
		year++
	}
	day = days - daysBefore(year) + 1
	lengths := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if daysBefore(year+1)-daysBefore(year) == 366 {
		lengths[1] = 29
	}
	for month = 1; day > lengths[month-1]; month++ {
		day -= lengths[month-1]
	}
	return year, month, day
}

// daysBefore is the number of days from the year 0, a leap year, to the start of a year.
func daysBefore(year int) int {
	return year*365 + (year+3)/4 - (year+99)/100 + (year+399)/400
}
