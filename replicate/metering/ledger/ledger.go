package ledger

import (
	"regedge/replicate/metering/syncproto"
)

// Limits and times of the ledger.
const (
	// NotFoundCap is the number of not-found lookups of a key on a UTC day.
	NotFoundCap = 100
	// leaseMillis is how long a lease may be spent without contact with the writer.
	leaseMillis = 24 * 60 * 60 * 1000
	// extendMillis is the remaining time below which a want extends a lease.
	extendMillis = leaseMillis - 60*60*1000
	// liveMillis is how long after its last message an edge is live.
	liveMillis = 60_000
)

// Plan holds the limits of an account of this plan.
type Plan struct {
	ID                      string
	APIAccess, Email, Phone bool
	PerMinute               int64 // requests per UTC minute
	MonthlyVolume           int64 // charged calls per UTC month
}

// Account is the ledger's part of an account.
type Account struct {
	ID        int64
	Plan      string
	Suspended bool
	credits   *Pool
	// posted is the part of the spending that the credit entries have, as of postedHour.
	posted     int64
	postedHour int32
}

// Pool is the stock that leases are granted from.
type Pool struct {
	ID          syncproto.Pool
	Limit       int64 // bought, or the plan's volume, or the cap
	Compensated int64
	Spent, Lost int64
	Leased      int64
	// Deducting is the amount that a negative adjustment still has to take.
	Deducting int64
	leases    []*Lease
	touched   bool
}

// Left is the amount that can be granted. It is negative after the limit of a quota was lowered below
// what is spent and leased.
func (p *Pool) Left() int64 { return p.Limit + p.Compensated - p.Spent - p.Leased - p.Lost }

// Balance is the number of credits that the account can still spend.
func (p *Pool) Balance() int64 { return p.Left() + p.Leased }

// Lease is the right of one edge, in one epoch, to spend units of a pool.
type Lease struct {
	edge                     *Edge
	epoch                    *Epoch
	pool                     *Pool
	Granted, Spent, Returned int64
	Beyond                   int64 // spent beyond the lease: not debited, and not voided since
	Until                    int64 // Unix milliseconds
	Lost                     bool  // written off: the edge or the epoch was retired

	// Fields of the session, not stored.
	version uint64 // of its last news, 0 for a removed lease
	want    syncproto.Want
	recall  bool
	// What the edge was told last, and the balance as it computes it.
	toldDry     bool
	toldRecall  bool
	toldBalance int64
}

// Outstanding is the amount that the edge may still spend or return.
func (l *Lease) Outstanding() int64 { return l.Granted - l.Spent - l.Returned }

// Epoch is one lifetime of an edge's state directory.
type Epoch struct {
	Number  uint64
	Boot    uint64 // of the process that got it
	Applied uint64 // newest batch
	Granted int64  // sum of all grants
	Forked  bool   // an older copy of the state directory was seen
	Ended   bool   // the state directory continues in a newer epoch
	leases  map[syncproto.Pool]*Lease

	// greeted is the Boot of the last Hello in this epoch; not stored. A repetition of that
	// Hello does not mean that the state directory was copied.
	greeted uint64
}

// Edge is an edge as the ledger knows it.
type Edge struct {
	Name     string
	Retired  bool
	Epoch    uint64 // newest epoch, 0 for none
	Declared bool   // declared its leases since the ledger was restored
	epochs   map[uint64]*Epoch

	// Fields that are not stored.
	Seen    int64 // last message, Unix milliseconds
	session uint64
	current *Epoch // of the session
	version uint64 // of the session's newest news
	urgent  uint64 // newest version that should be sent at once
	dropped uint64 // version up to which the edge has the news
	news    []news
	rates   []int64        // subjects whose counts at other edges changed
	listed  map[int64]bool // the same, as a set
	excess  excess
}

// news says that a lease changed at a version. It is stale when the lease changed again.
type news struct {
	version uint64
	lease   *Lease
}

func (n news) stale() bool { return n.version != n.lease.version }

// Ledger is the state of the writer. It is not safe for concurrent use.
type Ledger struct {
	Generation uint64
	Restoring  bool
	plans      map[string]Plan
	accounts   map[int64]*Account
	keys       map[int64]int64 // their accounts
	pools      map[syncproto.Pool]*Pool
	months     map[int32]bool // in which there may be pools of volume
	edges      map[string]*Edge
	touched    []*Pool
	// restoredDay is the last day on which the ledger was restoring, as far as this process knows.
	restoredDay int32
	// strangers counts the pools of keys that are not known.
	strangers int
	// lastAccount is the greatest id of an account.
	lastAccount int64
	sessions    uint64
	live        int64
	liveAt      int64
	liveKnown   bool
	rates       map[int64]*rate
	keyLimits   map[int64]*keyLimit // of keys that have one
	rateMinute  int64
	sweptDay    int32
	changes     *Changes
	covered     Covered
}

// New makes a ledger without accounts.
func New(generation uint64) *Ledger {
	return &Ledger{
		Generation: generation, plans: map[string]Plan{}, accounts: map[int64]*Account{}, keys: map[int64]int64{},
		pools: map[syncproto.Pool]*Pool{}, months: map[int32]bool{}, edges: map[string]*Edge{}, rates: map[int64]*rate{}, keyLimits: map[int64]*keyLimit{},
		changes: newChanges(),
	}
}

// Account finds an account, nil for none.
func (l *Ledger) Account(id int64) *Account { return l.accounts[id] }

// Credits is the pool of the account's credits.
func (a *Account) Credits() *Pool { return a.credits }

// Edge finds an edge, nil for none.
func (l *Ledger) Edge(name string) *Edge { return l.edges[name] }

// touch marks the pool to be settled at the end of the step.
func (l *Ledger) touch(p *Pool) {
	if !p.touched {
		p.touched = true
		l.touched = append(l.touched, p)
	}
}

// pool finds a pool, and makes it when its window is open. It returns nil for an unknown
// account, and for a window that is past or too far ahead.
func (l *Ledger) pool(now int64, id syncproto.Pool) *Pool {
	if p := l.pools[id]; p != nil {
		return p
	}
	if !id.Open(now) {
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
		if l.keys[id.Subject] == 0 {
			l.strangers++
		}
	default:
		return nil // credits come with their account
	}
	l.keepPool(p)
	delete(l.changes.past, id)
	l.changes.pool(p)
	return p
}

// keepPool adds a pool, and notes its month.
func (l *Ledger) keepPool(p *Pool) {
	l.pools[p.ID] = p
	if p.ID.Kind == syncproto.Volume {
		l.months[p.ID.Window] = true
	}
}

// lease finds the lease of an epoch on a pool, and makes an empty one when there is none.
func (l *Ledger) lease(e *Edge, epoch *Epoch, p *Pool) *Lease {
	if found := epoch.leases[p.ID]; found != nil {
		return found
	}
	created := &Lease{edge: e, epoch: epoch, pool: p, Lost: e.Retired}
	epoch.leases[p.ID] = created
	p.leases = append(p.leases, created)
	e.excess.leases++
	l.changes.lease(created)
	l.addNews(created, false)
	if epoch == e.current {
		l.tellRate(e, p.ID)
	}
	return created
}

// sessionBits is the width of the counter in a session's number; above it is the generation.
const sessionBits = 24

// BeginSessions sets the counter of sessions to a random start: a ledger that was lost may
// have had the same generation, and its session numbers must not come again.
func (l *Ledger) BeginSessions(random uint64) { l.sessions = random }

// Resume continues the sessions of old, whose last steps are certain not to be committed. Every lease
// is news, as it was before those steps, and the wants of edges stay.
func (l *Ledger) Resume(old *Ledger) {
	for name, e := range l.edges {
		before := old.edges[name]
		if before == nil || before.current == nil || e.Retired || e.epochs[before.current.Number] == nil {
			continue
		}
		e.session, e.current = before.session, e.epochs[before.current.Number]
		e.version, e.urgent, e.dropped = before.version, before.urgent, before.dropped
		e.current.greeted = before.current.greeted
		for _, id := range sortedPools(e.current.leases) {
			h, was := e.current.leases[id], before.current.leases[id]
			if was != nil {
				h.want = was.want
				l.touch(h.pool)
			}
		}
		l.announceLeases(e, e.current)
	}
}

// CarryOver takes from old what is not in the database. The same writer calls it when it loads the
// ledger again after a commit of unknown outcome, so that no session number is used twice.
func (l *Ledger) CarryOver(old *Ledger) {
	l.sessions = old.sessions
	for name, e := range l.edges {
		if before := old.edges[name]; before != nil {
			e.Seen, e.excess = before.Seen, before.excess
		}
	}
}
