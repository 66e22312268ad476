package lease

const (
	// shortMillis is how long a lease should last at least, at its account's present use.
	// With less than that, clients notice when the writer is away for a minute.
	shortMillis = 60_000
	// headroomPart is how many accounts one call of AddHeadroom visits.
	headroomPart = 4096
)

// Headroom tells how long the leases of this edge last without the writer.
type Headroom struct {
	// Credits is the number of credits that can still be spent, over all accounts.
	Credits int64
	// Short counts the accounts in use whose lease ends within a minute at their present
	// use, though the writer may have more for them.
	Short int
	// LeastMillis is how long the shortest of the leases in use lasts, -1 when none is in
	// use. It is at most ten minutes, the target of a lease.
	LeastMillis int64
}

// NewHeadroom is the Headroom of no accounts.
func NewHeadroom() Headroom { return Headroom{LeastMillis: -1} }

// AddHeadroom adds some accounts, beginning at the index that the call before returned, 0
// at first. It returns 0 after the last account. Accounts that come and go between the
// calls may be missed: it is for metrics.
func (s *EdgeState) AddHeadroom(h *Headroom, now int64, from int) (next int) {
	order := s.leases.accounts.order
	to := min(from+headroomPart, len(order))
	for _, id := range order[min(from, to):to] {
		h.add(s.leases.accounts.get(id), now)
	}
	if to == len(order) {
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
	use := a.demand.recent(now)
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
