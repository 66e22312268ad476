package ledger

import (
	"fmt"
	"slices"

	"regedge/replicate/metering/syncproto"
)

// Stored describes everything of the ledger that its database holds, for comparisons.
func (l *Ledger) Stored() []string {
	lines := []string{fmt.Sprint("ledger ", l.Generation, l.Restoring)}
	for _, p := range l.plans {
		lines = append(lines, fmt.Sprintf("plan %+v", p))
	}
	for _, a := range l.accounts {
		lines = append(lines, fmt.Sprint("account ", a.ID, a.Plan, a.Suspended, a.posted, a.postedHour))
	}
	for id, p := range l.pools {
		lines = append(lines, fmt.Sprintf("pool %+v limit %d compensated %d spent %d lost %d leased %d deducting %d",
			id, p.Limit, p.Compensated, p.Spent, p.Lost, p.Leased, p.Deducting))
	}
	for name, e := range l.edges {
		lines = append(lines, fmt.Sprint("edge ", name, e.Retired, e.Epoch, e.Declared))
		for number, epoch := range e.epochs {
			lines = append(lines, fmt.Sprint("epoch ", name, number, epoch.Boot, epoch.Applied, epoch.Granted, epoch.Forked, epoch.Ended))
			for id, h := range epoch.leases {
				lines = append(lines, fmt.Sprintf("lease %s %d %+v granted %d spent %d returned %d beyond %d until %d lost %v",
					name, number, id, h.Granted, h.Spent, h.Returned, h.Beyond, h.Until, h.Lost))
			}
		}
	}
	slices.Sort(lines)
	return lines
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
	e.excess.begin(now)
	e.excess.strange, e.excess.leases = maxStrange-left, maxStrange+leasesEach*(len(l.keys)+len(l.accounts))-left
	for hour := range int32(maxHours - left) {
		e.excess.hours[hour] = struct{}{}
	}
}
