package generate

import (
	"slices"
	"strconv"
)

const (
	directorsHeader    = "din,name,disqualified,designation,appointment_date"
	appointmentsHeader = "cin,din,designation,appointment_date,cessation_date,cessation_reason"
	contactsHeader     = "cin,email,phone,website"
)

// Directors get DINs from firstDIN on, in an order that looks random: stride and dins have no
// common divisor. No DIN from 90000000 on was issued.
const (
	firstDIN = 90_000_000
	dins     = 10_000_000
	stride   = 6_180_339
)

// din of director number i, 0 <= i < dins.
func din(i int64) string { return strconv.FormatInt(firstDIN+i*stride%dins, 10) }

// boardSizes is the number of appointments of a company, 2.4 on average.
var boardSizes = newShares([]share[int]{
	{0, 1.5}, {1, 10}, {2, 60}, {3, 14}, {4, 6}, {5, 3}, {6, 1.5}, {7, 1}, {8, 0.8}, {10, 0.6}, {12, 0.4}, {15, 0.3}, {20, 0.1},
	{35, 0.01}, {70, 0.004},
})

var designations = newShares([]share[string]{
	{"Director", 72}, {"Managing Director", 9}, {"Additional Director", 6}, {"Whole-time director", 5}, {"Independent Director", 3},
	{"", 3}, {"Nominee Director", 1}, {"Manager", 0.5}, {"Alternate Director", 0.5},
})

// freshShare is the share of seats taken by a new director, so that there are 1.08 directors
// per company.
const freshShare = 0.45

// boards appoints directors to companies in one pass: a director is written on first appointment.
type boards struct {
	seed                    uint64
	names                   *namer
	calendar                *calendar
	directors, appointments *output
	count                   int64   // directors so far
	seated                  []int64 // directors of the current company
	name                    []byte
}

// seat writes the appointments of company number i, which was incorporated on day.
func (b *boards) seat(i int64, cin string, form form, day int) {
	r := stream(b.seed, ofBoard, i)
	size := boardSizes.draw(&r)
	if form == onePerson {
		size = 1
	}
	b.seated = b.seated[:0]
	for range size {
		director := b.choose(&r)
		b.seated = append(b.seated, director)
		b.appoint(&r, cin, din(director), day)
	}
	if r.chance(0.0005) { // a DIN that is in no file of directors
		b.appoint(&r, cin, din(dins-1-i%1000), day)
	}
}

// choose returns a director for a seat: a new one, one of the companies just before (families
// and groups found several), any, or one of the few with many seats.
func (b *boards) choose(r *random) int64 {
	u := r.unit()
	if b.count == 0 || u < freshShare {
		return b.newDirector()
	}
	var director int64
	switch {
	case u < 0.75:
		director = b.count - 1 - int64(r.skewed(int(min(b.count, 60))))
	case u < 0.97:
		director = int64(r.unit() * float64(b.count))
	default:
		director = int64(r.skewed(int(b.count)))
	}
	if slices.Contains(b.seated, director) {
		return b.newDirector()
	}
	return director
}

func (b *boards) newDirector() int64 {
	i := b.count
	b.count++
	r := stream(b.seed, ofDirector, i)
	b.name = b.names.person(b.name[:0], &r)
	flag, general, since := "false", "", ""
	switch u := r.unit(); {
	case u < 0.015:
		flag = "true"
	case u < 0.1:
		flag = ""
	}
	if r.chance(0.3) {
		general = designations.draw(&r)
		since = b.calendar.days[r.below(len(b.calendar.days))]
	}
	b.directors.fields(din(i), string(b.name), flag, general, since)
	b.directors.finish()
	return i
}

var reasons = []string{"resigned", "resigned", "resigned", "", "", "removed"}

func (b *boards) appoint(r *random, cin, din string, incorporated int) {
	day, from, until, reason := incorporated, "", "", ""
	if r.chance(0.4) {
		day = b.calendar.after(r, incorporated)
	}
	if !r.chance(0.02) {
		from = b.calendar.days[day]
	}
	if r.chance(0.12) {
		until, reason = b.calendar.days[b.calendar.after(r, day)], pick(r, reasons)
	}
	b.appointments.fields(cin, din, designations.draw(r), from, until, reason)
	b.appointments.finish()
}
