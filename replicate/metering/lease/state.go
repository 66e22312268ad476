package lease

import (
	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// Log keeps the records of an EdgeState, in order, and copies them. A crash loses what
// Append took and the shell has not written yet; Charge, Void and Sync say when the shell
// has to wait for that.
type Log interface {
	// Append takes a record. When a droppable one can't be written, EdgeState.Drop takes its
	// effect back.
	Append(record []byte, droppable bool)
	// Batch returns a batch that was sealed before, nil when it is no longer kept. After an
	// error it is asked for again.
	Batch(epoch, seq uint64) (*syncproto.Batch, error)
}

// EdgeState is the state of one edge. It is not safe for concurrent use. The package
// comment lists its parts and invariants.
type EdgeState struct {
	log     Log
	scratch syncproto.Encoder // of the record that is being written
	clock   moment            // by NoteClock

	session     session
	standing    standing
	leases      leases
	usage       usage
	outbox      outbox
	returns     returns
	wants       wants
	rates       rates
	declaration declaration
	doubts      doubts
	recent      recentIDs
	keyed       keyedCharges
	sandbox     sandboxClients
}

// New makes the state of an edge with an empty state directory. Records go to log.
func New(log Log) *EdgeState {
	return &EdgeState{
		log: log, session: session{live: 1}, standing: standing{status: syncproto.OK},
		leases: newLeases(), usage: newUsage(), wants: newWants(), doubts: newDoubts(),
		rates: rates{keys: map[int64]*rate{}}, recent: newRecentIDs(), keyed: newKeyedCharges(), sandbox: newSandboxClients(),
	}
}

// jumpMillis is by how much the clock must be set to be noted. Two readings differ by less.
const jumpMillis = 1000

// NoteClock says what the clock shows, and how many milliseconds, at least 1, have passed in this run by a monotonic
// clock. With it, Idempotency-Keys are remembered for ten minutes even when the clock is set. A jump is journalled,
// since the next run has no other clock.
func (s *EdgeState) NoteClock(now, elapsed int64) {
	was := s.clock
	s.clock = moment{now, elapsed}
	if was.elapsed == 0 {
		s.keyed.follow(s.clock)
		return
	}
	jump := s.clock.at - s.clock.after(was)
	if len(s.keyed.queue) > 0 && max(jump, -jump) > jumpMillis {
		s.logJump(jump)
	}
}

// Boot begins a run of the edge's process, after the records of earlier runs were
// replayed. The number is random: no two runs have the same.
func (s *EdgeState) Boot(number uint64) {
	s.session.boot = number
	s.separate()
	s.append(func(e *syncproto.Encoder) { e.Byte(recordBoot) })
}

// separate carries the usage of earlier runs apart from what this one counts.
func (s *EdgeState) separate() {
	s.usage.separate(s.standing.epoch)
	s.session.id = 0
}

// Accounts is the number of accounts with a lease here.
func (s *EdgeState) Accounts() int { return s.leases.accounts.len() }

// Unreported is the number of the account's charges that the writer may not have.
func (s *EdgeState) Unreported(account int64) int64 {
	if a := s.leases.accounts.get(account); a != nil {
		return a.unreported
	}
	return 0
}

// Unsettled is how many charges of all accounts the writer may not have. It iterates over
// the usage since the last sync, not over the accounts.
func (s *EdgeState) Unsettled() (charges int64) {
	s.eachUnreported(func(u use, n int64) {
		if u.outcome == charge.Found {
			charges += n
		}
	})
	return charges
}

// HasUnreported reports whether there are charges, not-found lookups or voids that the writer may not
// have.
func (s *EdgeState) HasUnreported() (any bool) {
	s.eachUnreported(func(u use, _ int64) { any = any || u.outcome != charge.Failed })
	return any
}

// eachUnreported calls visit for all usage that the writer has not acknowledged.
func (s *EdgeState) eachUnreported(visit func(u use, n int64)) {
	s.usage.each(visit)
	if s.outbox.inflight != nil {
		for i := range s.outbox.inflight.Usage {
			u := &s.outbox.inflight.Usage[i]
			visit(useOf(u), u.Count)
		}
	}
}

// spend counts units of use u from the leases of the current epoch: 1 for a charge, -1
// for its void.
func (s *EdgeState) spend(u use, units int64) {
	switch u.outcome {
	case charge.Found:
		a := s.leases.accounts.ensure(u.account)
		s.take(creditsPool(u.account), &a.credits, units)
		s.takeOfWindow(volumePool(u.account, syncproto.MonthOfHour(u.hour)), units)
		a.unreported += units
	case charge.NotFound:
		s.takeOfWindow(notFoundPool(u.key, syncproto.DayOfHour(u.hour)), units)
	}
	s.usage.current.add(u, units)
}

// takeOfWindow spends units of the lease of a window, which may have been forgotten since they were charged. A void
// then makes the lease again: the writer counts the unit as held here.
func (s *EdgeState) takeOfWindow(p syncproto.Pool, units int64) {
	l := s.leases.find(p)
	if l == nil && units < 0 {
		l = s.leases.ensure(p)
	}
	if l != nil {
		s.take(p, l, units)
	}
}

// take spends units of a lease. Units that a void brings back to a recalled lease are
// returned to the writer.
func (s *EdgeState) take(p syncproto.Pool, l *lease, units int64) {
	l.spent += units
	if units < 0 && l.recalled {
		s.returns.recall(p)
	}
}

// unspend takes the effect of a charge back: in the current epoch its units are held
// again; a charge of an earlier epoch is reported to the writer as one less.
func (s *EdgeState) unspend(e *entry) {
	if e.epoch == s.standing.epoch {
		s.spend(e.use(), -1)
		return
	}
	s.countLate(e.epoch, e.use(), -1)
}

// countLate counts usage of an earlier epoch.
func (s *EdgeState) countLate(epoch uint64, u use, n int64) {
	if epoch == s.standing.dropped {
		return
	}
	tallyOf(s.usage.late, epoch).add(u, n)
	s.addUnreported(u, n)
}

// addUnreported counts usage that is missing from the writer's balance.
func (s *EdgeState) addUnreported(u use, n int64) {
	if u.outcome == charge.Found {
		s.leases.accounts.ensure(u.account).unreported += n
	}
}

// dropUsage forgets everything that was not reported.
func (s *EdgeState) dropUsage() {
	s.usage.clear()
	s.outbox.inflight = nil
	for _, a := range s.leases.accounts.all() {
		a.unreported = 0
	}
}
