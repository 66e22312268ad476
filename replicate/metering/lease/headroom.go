package lease

import "regedge/handler/charge"

const (
	// shortMillis is how long a lease should last at least at its account's present use:
	// less than that, and a writer that is away for a minute is noticed by its clients.
	shortMillis = 60_000
	// headroomPart is how many accounts are looked at in one go.
	headroomPart = 4096
)

// Headroom tells how far the leases of this edge reach without the writer.
type Headroom struct {
	// Credits is what may still be spent, over all accounts.
	Credits int64
	// Short counts the accounts in use whose lease ends within a minute at their present
	// use, though the writer may have more for them.
	Short int
	// LeastMillis is how long the shortest of the leases in use lasts, -1 when none is in
	// use. It is at most the leases' aim of ten minutes.
	LeastMillis int64
}

// NewHeadroom is that of no account.
func NewHeadroom() Headroom { return Headroom{LeastMillis: -1} }

// AddHeadroom adds some accounts, from the one that the call before returned; the first
// is 0. It returns 0 after the last. Accounts that come and go between the calls may be
// missed: it is for metrics.
func (b *EdgeState) AddHeadroom(h *Headroom, now int64, from int) (next int) {
	to := min(from+headroomPart, len(b.order))
	for _, id := range b.order[min(from, to):to] {
		h.add(b.accounts[id], now)
	}
	if to == len(b.order) {
		return 0
	}
	return to
}

func (h *Headroom) add(a *account, now int64) {
	held := a.credits.held()
	if !a.credits.known || now >= a.credits.until || held < 0 {
		held = 0
	}
	h.Credits += held
	use := a.recentUse(now)
	if a.credits.dry || use == 0 {
		return
	}
	lasts := min(held*slotMillis/int64(use), slotMillis)
	if lasts < shortMillis {
		h.Short++
	}
	if h.LeastMillis < 0 || lasts < h.LeastMillis {
		h.LeastMillis = lasts
	}
}

// recentUse is how many charges the account makes in ten minutes, 0 when it is not in use.
func (a *account) recentUse(now int64) int32 {
	switch int32(now/slotMillis) - a.slot {
	case 0:
		return max(a.slotUse, a.lastUse)
	case 1:
		return a.slotUse
	}
	return 0
}

// Unsettled is how many charges the writer may not have. It counts the rows of usage
// since the last sync, not the accounts.
func (b *EdgeState) Unsettled() (charges int64) {
	count := func(t tally) {
		for u, n := range t {
			if u.outcome == charge.Found {
				charges += n
			}
		}
	}
	count(b.pending)
	for _, t := range b.carried {
		count(t)
	}
	for _, t := range b.late {
		count(t)
	}
	if b.inflight != nil {
		for i := range b.inflight.Usage {
			if u := &b.inflight.Usage[i]; u.Outcome == charge.Found {
				charges += u.Count
			}
		}
	}
	return charges
}

// Unresolved is how many charges wait to be reported as unresolved.
func (b *EdgeState) Unresolved() int { return len(b.doubts) + len(b.unresolved) }
