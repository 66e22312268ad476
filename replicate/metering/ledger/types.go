package ledger

import (
	"regedge/replicate/metering/syncproto"
)

// Limits and times of the ledger.
const (
	// NotFoundCap is the number of not-found lookups of a key on a UTC day.
	NotFoundCap = 100
	// leaseMillis is how long a lease may be spent without hearing from the writer.
	leaseMillis = 24 * 60 * 60 * 1000
	// extendMillis is the rest of a lease's time below which a want extends it.
	extendMillis = leaseMillis - 60*60*1000
	// liveMillis is how long after its last message an edge counts as live.
	liveMillis = 60_000
	// keepMonths and keepDays are how many past windows stay open for late reports.
	keepMonths, keepDays = 1, 2
)

// Plan is what an account of this plan may do.
type Plan struct {
	ID                      string
	APIAccess, Email, Phone bool
	PerMinute               int64 // requests per UTC minute
	MonthlyVolume           int64 // charged calls per UTC month
}

// Account is the ledger's part of an account: its credits are a pool.
type Account struct {
	ID        int64
	Plan      string
	Suspended bool
	credits   *Pool
	// posted is the part of what was spent that has credit entries, up to postedHour.
	posted     int64
	postedHour int32
}

// Pool is what leases are cut from.
type Pool struct {
	ID          syncproto.Pool
	Limit       int64 // bought, or the plan's volume, or the cap
	Compensated int64
	Spent, Lost int64
	Leased      int64
	// Deducting is what a negative adjustment has still to take.
	Deducting int64
	leases    []*Lease
	touched   bool
}

// Left is what can be granted. It is negative after a quota was lowered below what is
// spent and leased.
func (p *Pool) Left() int64 { return p.Limit + p.Compensated - p.Spent - p.Leased - p.Lost }

// Balance is what the owner can still spend.
func (p *Pool) Balance() int64 { return p.Left() + p.Leased }

// Lease is the right of one edge, in one epoch, to spend units of a pool.
type Lease struct {
	edge                     *Edge
	epoch                    *Epoch
	pool                     *Pool
	Granted, Spent, Returned int64
	Beyond                   int64 // spent by the edge beyond the lease, not debited nor taken back
	Until                    int64 // Unix milliseconds
	Lost                     bool  // given up: the edge, or the epoch, was retired

	// What follows is of the session only.
	version     uint64
	want        syncproto.Want
	recall      bool
	toldDry     bool
	toldRecall  bool
	toldBalance int64 // as the edge computes it
}

// Outstanding is what the edge may still spend or return.
func (l *Lease) Outstanding() int64 { return l.Granted - l.Spent - l.Returned }

// Epoch is one life of an edge's state directory.
type Epoch struct {
	Number  uint64
	Boot    uint64 // the process to which it was given
	Applied uint64 // newest batch
	Granted int64  // sum of all grants
	Forked  bool   // an older copy of the state directory was seen
	Ended   bool   // the state directory goes on in a newer epoch
	leases  map[syncproto.Pool]*Lease

	// greeted is the process that last said Hello in it, of this generation only. It is no
	// copy when that message comes once more.
	greeted uint64
}

// Edge is an edge as the writer knows it.
type Edge struct {
	Name     string
	Retired  bool
	Epoch    uint64 // newest epoch, 0 for none
	Declared bool   // declared its leases since the ledger was restored
	epochs   map[uint64]*Epoch

	// What follows is of this generation only.
	Seen    int64 // last message, Unix milliseconds
	session uint64
	current *Epoch // of the session
	version uint64 // newest of the session's news
	urgent  uint64 // newest that should not wait
	dropped uint64 // news up to here is known to the edge
	news    []news
	rates   []int64 // accounts of which others' counts changed
	listed  map[int64]bool
}

// news names a lease that changed, at a version. A later change makes it stale.
type news struct {
	version uint64
	lease   *Lease
}

// Ledger is the writer's state. It is not safe for concurrent use.
type Ledger struct {
	Generation uint64
	Restoring  bool
	plans      map[string]Plan
	accounts   map[int64]*Account
	pools      map[syncproto.Pool]*Pool
	edges      map[string]*Edge
	touched    []*Pool
	sessions   uint64
	live       int64
	liveAt     int64
	liveKnown  bool
	rates      map[int64]*rate
	rateMinute int64
	sweptDay   int32
	changes    *Changes
}

// New makes a ledger without accounts.
func New(generation uint64) *Ledger {
	return &Ledger{
		Generation: generation, plans: map[string]Plan{}, accounts: map[int64]*Account{},
		pools: map[syncproto.Pool]*Pool{}, edges: map[string]*Edge{}, rates: map[int64]*rate{},
		changes: newChanges(),
	}
}

// Account finds an account, nil for none.
func (l *Ledger) Account(id int64) *Account { return l.accounts[id] }

// Credits is the pool of the account's credits.
func (a *Account) Credits() *Pool { return a.credits }

// Edge finds an edge, nil for none.
func (l *Ledger) Edge(name string) *Edge { return l.edges[name] }

// touch has the pool settled at the end of the step.
func (l *Ledger) touch(p *Pool) {
	if !p.touched {
		p.touched = true
		l.touched = append(l.touched, p)
	}
}

// pool finds the pool of a name, making one for a window that is still open. It is nil
// for an unknown account, and for a window that is past or too far ahead.
func (l *Ledger) pool(now int64, id syncproto.Pool) *Pool {
	if p := l.pools[id]; p != nil {
		return p
	}
	if !windowOpen(now, id) {
		return nil
	}
	p := &Pool{ID: id}
	switch id.Kind {
	case syncproto.Volume:
		a := l.accounts[id.Subject]
		if a == nil {
			return nil
		}
		p.Limit = l.plans[a.Plan].MonthlyVolume
	case syncproto.NotFound:
		p.Limit = NotFoundCap
	default:
		return nil // credits come with their account
	}
	l.pools[id] = p
	delete(l.changes.past, id)
	l.changes.pool(p)
	return p
}

// windowOpen reports whether a pool's window takes reports.
func windowOpen(now int64, id syncproto.Pool) bool {
	switch id.Kind {
	case syncproto.Volume:
		month := syncproto.Month(now)
		return id.Window >= month-keepMonths && id.Window <= month+1
	case syncproto.NotFound:
		day := syncproto.Day(now)
		return id.Window >= day-keepDays && id.Window <= day+1
	}
	return true
}

// lease finds the lease of an edge's epoch on a pool, making an empty one when asked.
func (l *Ledger) lease(e *Edge, epoch *Epoch, p *Pool, make bool) *Lease {
	if found := epoch.leases[p.ID]; found != nil || !make {
		return found
	}
	created := &Lease{edge: e, epoch: epoch, pool: p, Lost: e.Retired}
	epoch.leases[p.ID] = created
	p.leases = append(p.leases, created)
	l.changes.lease(created)
	l.bump(created, false)
	return created
}

// sessionBits is how much of a session's number counts them; the rest is the generation.
const sessionBits = 24

// BeginSessions sets where the sessions' numbers begin: at random, so that those of a
// ledger that was lost and had the same generation do not come again.
func (l *Ledger) BeginSessions(random uint64) { l.sessions = random }

// Succeed carries over what is of the generation and not in the database, when the
// ledger was loaded again after a commit of unknown outcome: no session number comes
// twice.
func (l *Ledger) Succeed(old *Ledger) {
	l.sessions = old.sessions
	for name, e := range l.edges {
		if before := old.edges[name]; before != nil {
			e.Seen = before.Seen
		}
	}
}
