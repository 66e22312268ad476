package lease

import (
	"iter"

	"regedge/replicate/metering/syncproto"
)

const (
	// floorUnits is the lease that an idle account keeps, so that an occasional request of it need not
	// wait for the writer.
	floorUnits = 16
	// notFoundUnits is the target of a key's not-found lease, of a cap of 100 a day.
	notFoundUnits = 10
	// slotMillis is the time for which leases are meant to last.
	slotMillis = 10 * 60 * 1000
	// idleMillis is how long an unused lease is kept at its floor before it is closed.
	idleMillis = 24 * 60 * 60 * 1000
	// renewMillis is how long before its end a lease in use is renewed.
	renewMillis = 6 * 60 * 60 * 1000
	// mostGranted caps the sum of an epoch's grants, so that the next one can't overflow it.
	mostGranted = 1 << 62
	// sweepParts is the number of syncs in which a sweep visits every account: about ten
	// minutes at one sync a second.
	sweepParts = 600
)

// lease is the right to spend units of one pool. The counts are sums since it was opened.
type lease struct {
	granted, spent, returned int64
	until                    int64 // Unix milliseconds; nothing is spent from then on
	// since is the batch that closed the pool's previous lease, or the newest batch that any writer had at
	// this lease's first row. A row from a writer without that batch is about the previous lease.
	since    uint64
	window   int32
	known    bool // the writer has sent a row of this lease
	dry      bool // the writer has nothing to grant beyond what is held
	recalled bool // the writer wants back all that is held
}

// held is the number of credits that can still be spent or returned.
func (l *lease) held() int64 { return l.granted - l.spent - l.returned }

// open reports whether there is something to close at the writer: the lease, or units that a void brought
// back before there was a lease.
func (l *lease) open() bool { return l.known || l.held() > 0 }

// kept reports whether the lease must not be forgotten before the writer has applied more batches.
func (l *lease) kept(applied uint64) bool { return l.open() || l.since > applied }

// usable reports whether a unit can be spent at now in window. An end that is absurdly far
// away is not believed.
func (l *lease) usable(now int64, window int32) bool {
	return l.window == window && l.held() > 0 && now < l.until && l.until-now <= absurdMillis
}

// apply takes the writer's row and returns the units that it added. Grants are sums, so a repeated or
// overtaken row adds nothing. The sum shrinks only for a windowed lease: by a wrong clock the writer
// took its window for past, and begins again. acked is the newest batch that any writer has.
func (l *lease) apply(r *syncproto.Row, acked uint64) int64 {
	if r.Pool.Window != 0 && r.Granted < l.granted {
		*l = lease{window: l.window, since: l.since}
	}
	if !l.known {
		l.since = max(l.since, acked)
	}
	//mutant:repeated-row-grants-again
	added := max(r.Granted-l.granted, 0)
	l.granted += added
	l.until, l.known, l.dry, l.recalled = r.UntilMillis, true, r.Dry, r.Recall
	return added
}

// account is this edge's state of one account.
type account struct {
	credits, volume lease
	// balance is the last balance from the writer, less the charges of batches that it has
	// acknowledged since; unreported are the charges of no acknowledged batch.
	balance, unreported int64
	lastUsed            int64  // Unix milliseconds
	lastTaken           uint64 // messages of Sync in this run at the newest charge
	rate                rate
	demand              demand
}

// used notes a charge.
func (a *account) used(now int64) {
	a.demand.add(now)
	a.lastUsed = now
}

// target is the size that a lease of an account in use should have: the charges of ten minutes,
// and at least a minute at the full rate.
func (a *account) target() int64 {
	return max(floorUnits, int64(a.rate.limit), int64(a.demand.current), int64(a.demand.previous))
}

// demand counts the charges of a ten-minute slot and of the slot before.
type demand struct {
	slot              int32
	current, previous int32
}

func (d *demand) add(now int64) {
	slot := int32(now / slotMillis)
	switch {
	case slot == d.slot:
	case slot == d.slot+1:
		d.previous, d.current, d.slot = d.current, 0, slot
	default:
		d.previous, d.current, d.slot = 0, 0, slot
	}
	d.current++
}

// recent is the number of charges in ten minutes, 0 when the account is not in use.
func (d *demand) recent(now int64) int32 {
	switch int32(now/slotMillis) - d.slot {
	case 0:
		return max(d.current, d.previous)
	case 1:
		return d.current
	}
	return 0
}

// leases are all leases of this edge: of credits and volume in their account, of not-found
// lookups by key, and parked ones by the windowless pool of an account or key that is known.
// granted is the sum of all grants of the epoch, to closed leases too.
type leases struct {
	accounts roster[account]
	keys     roster[lease]
	parked   map[syncproto.Pool][]*lease
	granted  int64
}

func newLeases() leases {
	return leases{accounts: newRoster[account](), keys: newRoster[lease](), parked: map[syncproto.Pool][]*lease{}}
}

// clear ends all leases, as a new epoch does. Accounts keep this minute's request counts.
func (l *leases) clear() {
	for _, a := range l.accounts.all() {
		*a = account{rate: a.rate, lastUsed: a.lastUsed} // lastUsed: or a sweep would drop the rate
	}
	l.keys, l.parked, l.granted = newRoster[lease](), map[syncproto.Pool][]*lease{}, 0
}

// find returns the lease of a pool, nil when there is none.
func (l *leases) find(p syncproto.Pool) *lease {
	found := l.atHand(p)
	if found != nil && found.window != p.Window {
		return l.findParked(p)
	}
	return found
}

// atHand returns the lease at hand of a pool's account or key, of any window.
func (l *leases) atHand(p syncproto.Pool) *lease {
	if p.Kind == syncproto.NotFound {
		return l.keys.get(p.Subject)
	}
	a := l.accounts.get(p.Subject)
	switch {
	case a == nil:
		return nil
	case p.Kind == syncproto.Volume:
		return &a.volume
	}
	return &a.credits
}

// ensure returns the lease of a pool, and makes it when there is none: at hand when that
// place is free, else parked.
func (l *leases) ensure(p syncproto.Pool) *lease {
	if p.Kind == syncproto.NotFound {
		l.keys.ensure(p.Subject)
	} else {
		l.accounts.ensure(p.Subject)
	}
	if found := l.find(p); found != nil {
		return found
	}
	if free := l.atHand(p); !free.inUse() {
		*free = lease{window: p.Window}
		return free
	}
	return l.park(p, lease{window: p.Window})
}

// forgetDry forgets which accounts were exhausted: an earlier session said so, and it may have changed
// before this one's first news.
func (l *leases) forgetDry() {
	for _, a := range l.accounts.all() {
		a.credits.dry, a.volume.dry = false, false
	}
	for _, parked := range l.parked {
		for _, p := range parked {
			p.dry = false
		}
	}
}

func creditsPool(account int64) syncproto.Pool {
	return syncproto.Pool{Kind: syncproto.Credits, Subject: account}
}

func volumePool(account int64, month int32) syncproto.Pool {
	return syncproto.Pool{Kind: syncproto.Volume, Subject: account, Window: month}
}

func notFoundPool(key int64, day int32) syncproto.Pool {
	return syncproto.Pool{Kind: syncproto.NotFound, Subject: key, Window: day}
}

// roster holds values by id, in an order in which a sweep visits a few at a time.
type roster[T any] struct {
	members map[int64]*member[T]
	order   []int64
	swept   int // index in order at which the next sweep begins
}

type member[T any] struct {
	value T
	index int32 // in order
}

func newRoster[T any]() roster[T] { return roster[T]{members: map[int64]*member[T]{}} }

func (r *roster[T]) len() int { return len(r.order) }

// get returns the value of an id, nil for none.
func (r *roster[T]) get(id int64) *T {
	if m := r.members[id]; m != nil {
		return &m.value
	}
	return nil
}

// ensure returns the value of an id, and makes it when there is none.
func (r *roster[T]) ensure(id int64) *T {
	m := r.members[id]
	if m == nil {
		m = &member[T]{index: int32(len(r.order))}
		r.members[id] = m
		r.order = append(r.order, id)
	}
	return &m.value
}

func (r *roster[T]) drop(id int64) {
	m := r.members[id]
	last := r.order[len(r.order)-1]
	r.order[m.index] = last
	r.members[last].index = m.index
	r.order = r.order[:len(r.order)-1]
	delete(r.members, id)
}

func (r *roster[T]) all() iter.Seq2[int64, *T] {
	return func(yield func(int64, *T) bool) {
		for _, id := range r.order {
			if !yield(id, &r.members[id].value) {
				return
			}
		}
	}
}

// sweep calls visit for the next few members. visit may drop the one that it is given.
func (r *roster[T]) sweep(visit func(id int64, value *T)) {
	for range min(len(r.order)/sweepParts+8, len(r.order)) {
		if r.swept >= len(r.order) {
			r.swept = 0
		}
		id := r.order[r.swept]
		visit(id, &r.members[id].value)
		r.swept++
	}
}
