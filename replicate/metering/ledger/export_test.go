package ledger

import (
	"fmt"
	"reflect"
	"slices"

	"regedge/replicate/metering/syncproto"
)

// Stored describes everything of the ledger that its database holds, for comparisons. A field that only the
// memory holds is named here.
func (l *Ledger) Stored() []string {
	lines := []string{fmt.Sprint("ledger ", l.Generation, l.Restoring)}
	for _, p := range l.plans {
		lines = append(lines, "plan"+values(p))
	}
	for _, a := range l.accounts {
		lines = append(lines, "account"+values(*a))
	}
	for id, p := range l.pools {
		lines = append(lines, fmt.Sprintf("pool %+v", id)+values(*p, "touched"))
	}
	for name, e := range l.edges {
		lines = append(lines, "edge"+values(*e, "Seen", "session", "version", "urgent", "dropped"))
		for number, epoch := range e.epochs {
			lines = append(lines, fmt.Sprint("epoch ", name)+values(*epoch, "greeted"))
			for id, h := range epoch.leases {
				lines = append(lines, fmt.Sprintf("lease %s %d %+v", name, number, id)+
					values(*h, "version", "recall", "toldDry", "toldRecall", "toldBalance"))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// values names the numbers, texts and truths of a struct, but for the fields in omitted.
func values(of any, omitted ...string) (text string) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch field.Type.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Struct:
		default:
			if !slices.Contains(omitted, field.Name) {
				text += fmt.Sprint(" ", field.Name, " ", v.Field(i))
			}
		}
	}
	return text
}

// Spent is what was spent of a pool, 0 for one that is not there.
func (l *Ledger) Spent(id syncproto.Pool) int64 {
	if p := l.pools[id]; p != nil {
		return p.Spent
	}
	return 0
}

// Count is the number of statements that are cached.
func (p *Prepared) Count() int { return len(p.statements) }

// AddedBefore has an edge at its limits of a day, but for a number.
func (l *Ledger) AddedBefore(e *Edge, now int64, left int) {
	l.beginDay(now, e)
	e.excess.doubts = maxStrange - left
	e.excess.strange, e.excess.leases = maxStrange-left, maxStrange+leasesEach*(len(l.keys)+len(l.accounts))-left
	for hour := range int32(maxHours - left) {
		e.excess.hours[hour] = struct{}{}
	}
}

// News is how many news are kept for an edge.
func (e *Edge) News() int { return len(e.news) }

const RetiredEpochs = retiredEpochs

const RowsAtOnce = rowsAtOnce

// Sizes counts what the ledger holds.
type Sizes struct {
	Accounts, Keys, KeyLimits, Leases int
	Leased                            int64
}

func (l *Ledger) Sizes() Sizes {
	s := Sizes{Accounts: len(l.accounts), Keys: len(l.keys), KeyLimits: len(l.keyLimits)}
	for _, e := range l.edges {
		for _, epoch := range e.epochs {
			s.Leases += len(epoch.leases)
		}
	}
	for _, p := range l.pools {
		s.Leased += p.Leased
	}
	return s
}
