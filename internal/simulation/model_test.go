package simulation

import (
	"maps"

	"regedge/handler/charge"
)

// counts are numbers by key, or by account.
type counts map[int64]int64

// A key encodes account and edge, so that the usage of each edge can be told apart at the
// writer. Not-found lookups use keys that edges share.
const (
	keysOfAccount = 10_000
	sharedKeys    = 9_000
)

func (e *edge) key(account int64) int64 { return account*keysOfAccount + e.number }

func accountOf(key int64) int64 { return key / keysOfAccount }

// outcomeOf is the outcome of a request, as its client knows it.
type outcomeOf int

const (
	served  outcomeOf = iota // answered, and charged if found
	cut                      // no answer: it may be charged
	undone                   // voided
	unclear                  // served, then voided without an answer
)

// request is a client's request.
type request struct {
	charge.Request
	state    outcomeOf
	verdict  charge.Verdict
	segments int // of its edge's disk when it was made
	disk     *disk
	at       int64 // by its edge's clock, Unix milliseconds
	setBack  int64 // by how much its edge's clock was set back before, in all
	process  *process
	madeAt   int64 // by the clock that nobody sets
	epoch    uint64
}

// model counts what clients know, independently of what the service counts.
type model struct {
	// got counts by key the charges that clients know of; mayBe those that may exist as well.
	got, mayBe counts
	// missing bounds by key the charges that no disk has any more.
	missing counts
	// reportable is by key what may have been reported when the edge's epoch, or disk, last
	// ended: what was got, and what was voided by then.
	reportable counts
	// forked counts by account what edges served on an older copy of their disk.
	forked counts
	// voidedLate counts by key the charges that were voided when they may have been reported
	// already. The difference ends when the voids are reported, and stays if the disk is lost
	// before that.
	voidedLate counts
	// asked counts not-found lookups by key, answered or cut off.
	asked counts
	// bought bounds by account what operators sold.
	bought counts
	// claimed bounds by account the credits that the rogue said it had, after it claimed a restore, and those of
	// forged grants; claimedVolume is the same of monthly volume. forged says that there were any of the latter.
	claimed, claimedVolume counts
	forged                 bool
	// countedTwice says that an edge believed an earlier reply to be one to its last message, which had it count grants
	// of a window twice.
	countedTwice bool
	// taken bounds by account what operators took.
	taken counts
	// dry is by edge and account the last time at which nothing was left for it.
	dry map[[2]int64]int64
	// restored says that the ledger was restored from a backup. A node that is retired before
	// it declared its leases spends beyond what the ledger knows.
	restored bool
	// restores counts how often.
	restores int
	// copied says that an edge ran on an older copy of its disk: it may spend again what the
	// original spent.
	copied bool
	// restoredSilently says that a restore was once not announced to the writer: it then
	// assigns epoch numbers again, and a disk of the first use can't be put back.
	restoredSilently bool
	// granted is the most that was granted of a lease, by account, edge and epoch.
	granted map[[3]int64]int64
	// rotted says that records of an edge were lost: it may report charges of a lease of which the ledger
	// has less, or none.
	rotted bool
	// awaitsEdges says that the restored ledger waits for its edges, held that it did at the
	// check before as well: then it may grant nothing.
	awaitsEdges, held bool
	// disturbed counts the events after which edges may not resend all that a restored ledger
	// lacks: an epoch, a disk or a node ended.
	disturbed int
	// mayCover is by account the most that a restored ledger, which waits for its edges, may have
	// compensated when all have reported; nil when that is not known. coverDisturbed is
	// disturbed at that time.
	mayCover       counts
	coverDisturbed int
	// accountIDs are the ids of accounts that operators were told of, beside the first few.
	accountIDs map[int64]bool
	// gone are the keys of which operators were told that they are revoked at every edge.
	gone map[int64]bool
	// revoking has by key the writer that revoked it, and said that this is pending.
	revoking map[int64]*writerProcess
	// limitsUnclear says that what a key spent was added up while the writer's clock was ahead.
	limitsUnclear bool
	// settling says that every edge has reported since.
	settling bool
}

func newModel() model {
	return model{
		got: counts{}, mayBe: counts{}, missing: counts{}, reportable: counts{}, forked: counts{},
		voidedLate: counts{}, asked: counts{}, bought: counts{}, claimed: counts{}, claimedVolume: counts{}, taken: counts{}, dry: map[[2]int64]int64{}, granted: map[[3]int64]int64{},
		accountIDs: map[int64]bool{}, gone: map[int64]bool{}, revoking: map[int64]*writerProcess{},
	}
}

// of sums the counts of an account's keys.
func (c counts) of(account int64) (sum int64) {
	for key, n := range c {
		if accountOf(key) == account {
			sum += n
		}
	}
	return sum
}

// noteEpochEnd records that an epoch or a disk of an edge ended: what it reported can't be
// resent to a ledger that is restored from a backup.
func (s *sim) noteEpochEnd(e *edge) {
	s.disturbed++
	s.noteReported(e)
}

// noteReported records that what an edge may have reported by now can't be resent.
func (s *sim) noteReported(e *edge) {
	for account := int64(1); account <= accounts; account++ {
		s.reportable[e.key(account)] = s.got[e.key(account)] + s.voidedLate[e.key(account)]
	}
}

// diskGone records that what an edge has not reported is lost.
func (s *sim) diskGone(e *edge) {
	s.excuseUnreported(e)
	e.unsynced = counts{}
	s.noteEpochEnd(e)
}

func (s *sim) excuseUnreported(e *edge) {
	usage := s.readUsage()
	for account := int64(1); account <= accounts; account++ {
		key := e.key(account)
		s.missing[key] = max(s.got[key]+s.voidedLate[key]-usage[key], 0) // voids may still be reported
	}
}

// powerLost records that what was not synced may be lost.
func (s *sim) powerLost(e *edge) {
	for key, n := range e.unsynced {
		s.missing[key] += n
	}
	e.unsynced = counts{}
}

// recordsLost records that any of the records of an edge's journal may be lost: its charges, and its
// voids, so that what was voided is reported.
func (s *sim) recordsLost(e *edge) {
	s.note("%s lost records", e.name)
	e.disk.recordsLost = true
	e.snapshot = nil // it may give the numbers of batches that were lost to others
	for key, n := range e.voids {
		s.voidedLate[key] += n
	}
	clear(e.voids)
	e.mayExceed, s.rotted = true, true
	s.diskGone(e)
}

// ledgerWentBack records that the ledger has the usage of a backup: edges resend what they
// reported since, except for epochs and disks that ended.
func (s *sim) ledgerWentBack(usage counts) {
	for _, e := range s.edges {
		if e.disk.archiveRotten || e.aside != nil && e.aside.archiveRotten {
			s.noteReported(e) // some of it may be gone
		}
	}
	for key, n := range s.reportable {
		s.missing[key] += max(n-usage[key], 0)
	}
	s.restored = true
	s.restores++
	clear(s.dry)
	clear(s.gone) // operators revoke them again
}

// dropAside discards the disks that were taken aside.
func (s *sim) dropAside() {
	s.restoredSilently = true
	for _, e := range s.edges {
		if e.aside != nil {
			e.aside = nil
			s.diskGone(e)
		}
	}
}

// forgetDoubtful excuses, when a process starts in an epoch, what the process before served on
// an older copy of the disk, if that ended before the writer saw the copy or before the
// writer's reply was on disk: it is dropped once the writer recognizes the copy.
func (s *sim) forgetDoubtful(d *disk, epoch uint64) {
	if epoch < d.learnedEpoch {
		for key, n := range d.learned {
			s.missing[key] += n
		}
	}
	for key, n := range d.doubtful {
		s.missing[key] += n
	}
	d.learned, d.doubtful = counts{}, counts{}
}

// answered counts a verdict that reached the client.
func (s *sim) answered(e *edge, r *request) {
	if r.Outcome != charge.Found {
		return
	}
	s.charges++
	s.got[r.Key]++
	e.unsynced[r.Key]++
	if e.disk.copied {
		s.forked[r.Account]++
		e.disk.doubtful[r.Key]++
	}
}

// cutOff counts a request whose answer the client never got.
func (s *sim) cutOff(r *request) {
	r.state = cut
	if r.Outcome == charge.Found {
		s.mayBe[r.Key]++
	}
}

// learned notes that a client has learned now of a charge that was made before. In an epoch that has ended it
// may have been reported, which a restored ledger is not told again.
func (s *sim) learned(e *edge, r *request) {
	r.state = served
	if r.Outcome != charge.Found {
		return
	}
	s.mayBe[r.Key]--
	s.answered(e, r)
	if r.epoch != e.epoch {
		s.reportable[r.Key]++
		if s.restored {
			s.missing[r.Key]++
		}
	}
}

// missingOf bounds the charges of an account that were lost.
func (s *sim) missingOf(account int64) int64 {
	return s.missing.of(account) + s.forked[account]
}

func (s *sim) readUsage() counts {
	usage := counts{}
	rows := s.query(`SELECT key, sum(count) FROM usage WHERE outcome = 1 GROUP BY key`)
	for _, r := range rows {
		usage[r[0]] = r[1]
	}
	return maps.Clone(usage)
}
