package ledger

import (
	"errors"
	"fmt"

	"regedge/replicate/metering/syncproto"
)

// Errors of the operators' changes.
var (
	ErrNoAccount = errors.New("no such account")
	ErrNoPlan    = errors.New("no such plan")
	ErrNoEdge    = errors.New("no such node")
	ErrTaken     = errors.New("the name is taken")
	ErrAmount    = fmt.Errorf("the amount is out of range: it is 1 to %d, or -1 to -%[1]d to take bought credits", int64(maxCredits))
)

// maxCredits bounds what an account can spend, so that sums never overflow.
const maxCredits = 1 << 46

// SetPlan adds or changes a plan. A lower volume recalls what is leased.
func (l *Ledger) SetPlan(now int64, p Plan) {
	l.plans[p.ID] = p
	l.changes.plans[p.ID] = true
	for _, id := range sortedPools(l.pools) {
		pool := l.pools[id]
		if pool.ID.Kind == syncproto.Volume && l.accounts[pool.ID.Subject].Plan == p.ID {
			l.limit(pool, p.MonthlyVolume)
		}
	}
	l.settle(now)
}

// Plan finds a plan.
func (l *Ledger) Plan(id string) (Plan, bool) {
	p, ok := l.plans[id]
	return p, ok
}

func (l *Ledger) limit(p *Pool, units int64) {
	if p.Limit != units {
		p.Limit = units
		l.changes.pool(p)
		l.touch(p)
	}
}

// AddAccount makes an account. Its errors are ErrNoPlan and ErrTaken.
func (l *Ledger) AddAccount(id int64, plan string) error {
	if _, ok := l.plans[plan]; !ok {
		return ErrNoPlan
	}
	if l.accounts[id] != nil {
		return ErrTaken
	}
	l.putAccount(&Account{ID: id, Plan: plan})
	return nil
}

func (l *Ledger) putAccount(a *Account) {
	if a.credits == nil {
		a.credits = &Pool{ID: syncproto.Pool{Kind: syncproto.Credits, Subject: a.ID}}
	}
	l.accounts[a.ID] = a
	l.lastAccount = max(l.lastAccount, a.ID)
	l.pools[a.credits.ID] = a.credits
	l.changes.accounts[a.ID] = true
}

// ChangeAccount changes plan and suspension. The leases of a suspended account are recalled,
// and so is volume beyond that of the new plan. Its errors are ErrNoAccount and ErrNoPlan.
func (l *Ledger) ChangeAccount(now int64, id int64, plan string, suspended bool) error {
	a := l.accounts[id]
	if a == nil {
		return ErrNoAccount
	}
	p, ok := l.plans[plan]
	if !ok {
		return ErrNoPlan
	}
	a.Plan, a.Suspended = plan, suspended
	l.changes.accounts[id] = true
	l.touch(a.credits)
	// In every month that exists by anybody's clock: the writer's own may be wrong by years just now.
	for _, m := range sortedKeys(l.months) {
		if pool := l.pools[syncproto.Pool{Kind: syncproto.Volume, Subject: id, Window: m}]; pool != nil {
			l.limit(pool, p.MonthlyVolume)
		}
	}
	l.settle(now)
	return nil
}

// Balance is the amount that could be taken from an account: left or leased, less what earlier adjustments
// still have to take. Edges may have spent some of it unreported. It is 0 for an unknown account.
func (l *Ledger) Balance(id int64) int64 {
	a := l.accounts[id]
	if a == nil {
		return 0
	}
	return a.credits.Left() + a.credits.Leased - a.credits.Deducting
}

// ChangeCredits adds credits, as bought or as compensated, or takes bought ones away: what is left at
// once, the rest as leases are returned. The note goes into the entry that is made at once. Its errors are
// ErrNoAccount and ErrAmount.
func (l *Ledger) ChangeCredits(now int64, id, amount int64, kind, note string) error {
	a := l.accounts[id]
	if a == nil {
		return ErrNoAccount
	}
	p := a.credits
	if amount == 0 || amount > maxCredits || amount < -maxCredits || amount > 0 && p.Balance() > maxCredits ||
		amount < 0 && kind != EntryBought {
		return ErrAmount
	}
	switch {
	case amount < 0:
		p.Deducting -= amount
		if note != "" {
			l.note(p, note)
		}
	case kind == EntryBought:
		p.Limit += amount
		l.addEntry(p, kind, amount, note)
	case kind == EntryCompensated:
		p.Compensated += amount
		l.addEntry(p, kind, amount, note)
	default:
		return ErrAmount
	}
	l.changes.pool(p)
	l.touch(p)
	l.settle(now)
	return nil
}

// AddEdge makes an edge. A restored ledger awaits its declaration too: the edge may have been lost with
// the ledger, and hold leases. Its error is ErrTaken.
func (l *Ledger) AddEdge(name string) error {
	if l.edges[name] != nil {
		return ErrTaken
	}
	e := &Edge{Name: name, Declared: !l.Restoring, epochs: map[uint64]*Epoch{}, listed: map[int64]bool{}}
	l.edges[name] = e
	l.changes.edge(e)
	return nil
}

// Retire fences an edge for ever, or with oldEpochs only its epochs before the newest. What
// is outstanding is lost and compensated; a late report moves it to spent. Its error is
// ErrNoEdge.
func (l *Ledger) Retire(now int64, name string, oldEpochs bool) error {
	e := l.edges[name]
	if e == nil {
		return ErrNoEdge
	}
	if !oldEpochs {
		e.Retired = true
		l.changes.edge(e)
	}
	for _, number := range sortedKeys(e.epochs) {
		epoch := e.epochs[number]
		if oldEpochs && number == e.Epoch {
			continue
		}
		for _, id := range sortedPools(epoch.leases) {
			l.writeOff(epoch.leases[id])
		}
	}
	l.liveKnown = false
	l.finishRestore()
	l.settle(now)
	return nil
}

// Out sums the outstanding credits of an edge: of all epochs, and of those before the newest.
func (l *Ledger) Out(e *Edge) (all, stale int64) {
	for number, epoch := range e.epochs {
		for id, h := range epoch.leases {
			if id.Kind != syncproto.Credits || h.Lost {
				continue
			}
			all += h.Outstanding()
			if number != e.Epoch {
				stale += h.Outstanding()
			}
		}
	}
	return all, stale
}

// IsLive reports whether the edge sent a message within the last minute. The time of that message may be
// up to a minute ahead, if the clock was set back since.
func (e *Edge) IsLive(now int64) bool {
	age := now - e.Seen
	return !e.Retired && e.Seen != 0 && age < liveMillis && age > -liveMillis
}

// Applied is the newest batch of the edge's newest epoch.
func (e *Edge) Applied() uint64 {
	if newest := e.epochs[e.Epoch]; newest != nil {
		return newest.Applied
	}
	return 0
}

// sweep drops the pools of past windows, once a day. A window is past only when the clocks of both the
// writer and an edge say so: one wrong clock must not erase what was spent this month.
func (l *Ledger) sweep(now, edges int64) {
	day := syncproto.Day(min(now, edges))
	if l.sweptDay > syncproto.Day(now) {
		l.sweptDay = 0 // the clock was set back
	}
	if day <= l.sweptDay {
		return
	}
	l.sweptDay = day
	for id, p := range l.pools {
		if id.Closed(min(now, edges)) {
			for _, h := range p.leases {
				delete(h.epoch.leases, id)
				h.version = 0
				l.changes.removeLease(h)
			}
			delete(l.pools, id)
			if id.Kind == syncproto.Volume {
				delete(l.months, id.Window)
			}
			delete(l.changes.pools, id)
			l.changes.past[id] = true
		}
	}
	for _, a := range l.accounts {
		if a.credits.Spent != a.posted { // else all accounts would be written, a million in some ten seconds
			l.post(a, syncproto.Hour(now))
		}
	}
	l.reviewKeyLimits(syncproto.Month(now))
}
