package simulation

import (
	"maps"

	"regedge/handler/charge"
)

// counts are numbers by key, or by account.
type counts map[int64]int64

// Keys name account and edge, so that an edge's usage can be told apart at the writer.
// Not-found lookups are asked with keys that edges share.
const (
	keysOfAccount = 10_000
	sharedKeys    = 9_000
)

func (e *edge) key(account int64) int64 { return account*keysOfAccount + e.number }

func accountOf(key int64) int64 { return key / keysOfAccount }

// outcomeOf is what became of a request, as its client knows it.
type outcomeOf int

const (
	served  outcomeOf = iota // answered, and charged if it was found
	cut                      // no answer: it may be charged
	taken                    // voided
	unclear                  // served, then voided without an answer
)

// request is a request that a client made.
type request struct {
	charge.Request
	state    outcomeOf
	verdict  charge.Verdict
	segments int // of its edge's disk when it was made
	disk     *disk
}

// model counts what clients know, apart from everything that the service counts.
type model struct {
	// got counts by key the charges that clients know of; mayBe those that they can't know.
	got, mayBe counts
	// missing bounds by key the charges that no disk has any more.
	missing counts
	// broken is by key what may have been reported when the edge's epoch, or disk, last
	// ended: what was got, and what was taken back by then.
	broken counts
	// forked counts by account what edges served on an older copy of their disk.
	forked counts
	// voidedLate counts by key the charges that were taken back when they may have been
	// reported: until their voids are too, and for ever if the disk is lost before that.
	voidedLate counts
	// asked counts not-found lookups by key, answered or cut off.
	asked counts
	// bought bounds by account what operators sold.
	bought counts
	// dry is by edge and account when an edge could last be told that nothing is left.
	dry map[[2]int64]int64
	// went says that the ledger came back from a backup. A node that is retired before it
	// declared its leases spends beyond what the ledger knows of.
	went bool
	// restores counts how often it did.
	restores int
	// copied says that an edge ran on an older copy of its disk: it may spend what the
	// original spent already.
	copied bool
	// silent says that this was once not told to the writer: then it gives epochs a second
	// time, and a disk of the first can't come back.
	silent bool
	// granted is the most that was granted of a lease, by account, edge and epoch.
	granted map[[3]int64]int64
	// awaits says that the ledger waits for edges since it came back, held that it did so
	// at the check before: then it may grant nothing.
	awaits, held bool
	// settling says that every edge has spoken since.
	settling bool
}

func newModel() model {
	return model{
		got: counts{}, mayBe: counts{}, missing: counts{}, broken: counts{}, forked: counts{},
		voidedLate: counts{}, asked: counts{}, bought: counts{}, dry: map[[2]int64]int64{}, granted: map[[3]int64]int64{},
	}
}

// of sums counts by key over the keys of an account.
func (c counts) of(account int64) (sum int64) {
	for key, n := range c {
		if accountOf(key) == account {
			sum += n
		}
	}
	return sum
}

// broke notes that an epoch, or a disk, of an edge ended: what it reported can't be sent
// again to a ledger that comes back from a backup.
func (w *world) broke(e *edge) {
	for account := int64(1); account <= accounts; account++ {
		w.broken[e.key(account)] = w.got[e.key(account)] + w.voidedLate[e.key(account)]
	}
}

// diskGone notes that what an edge has not reported is lost.
func (w *world) diskGone(e *edge) {
	w.excuse(e)
	e.unsynced = counts{}
	w.broke(e)
}

func (w *world) excuse(e *edge) {
	usage := w.readUsage()
	for account := int64(1); account <= accounts; account++ {
		key := e.key(account)
		w.missing[key] = max(w.got[key]+w.voidedLate[key]-usage[key], 0) // voids may be on their way
	}
}

// powerLost notes that what was not synced is lost.
func (w *world) powerLost(e *edge) {
	for key, n := range e.unsynced {
		w.missing[key] += n
	}
	e.unsynced = counts{}
}

// ledgerWentBack notes that the ledger holds the usage of a backup: what edges reported
// since they send again, but for epochs and disks that ended.
func (w *world) ledgerWentBack(usage counts) {
	for key, n := range w.broken {
		w.missing[key] += max(n-usage[key], 0)
	}
	w.went = true
	w.restores++
	clear(w.dry)
}

// dropAside gives up the disks that were to come back.
func (w *world) dropAside() {
	w.silent = true
	for _, e := range w.edges {
		if e.aside != nil {
			e.aside = nil
			w.diskGone(e)
		}
	}
}

// forgotten notes, when a process starts in an epoch, what one before it served on an older
// copy and ended before the writer saw that, or before it had written that the writer did:
// it is dropped, once the writer says that the copy is one.
func (w *world) forgotten(d *disk, epoch uint64) {
	if epoch < d.heardEpoch {
		for key, n := range d.heard {
			w.missing[key] += n
		}
	}
	for key, n := range d.doubtful {
		w.missing[key] += n
	}
	d.heard, d.doubtful = counts{}, counts{}
}

// answered notes a verdict that reached the client.
func (w *world) answered(e *edge, r *request) {
	if r.Outcome != charge.Found {
		return
	}
	w.charges++
	w.got[r.Key]++
	e.unsynced[r.Key]++
	if e.disk.copied {
		w.forked[r.Account]++
		e.disk.doubtful[r.Key]++
	}
}

// cutOff notes a request whose answer the client never got.
func (w *world) cutOff(r *request) {
	r.state = cut
	if r.Outcome == charge.Found {
		w.mayBe[r.Key]++
	}
}

// missingOf bounds what was lost of an account.
func (w *world) missingOf(account int64) int64 {
	return w.missing.of(account) + w.forked[account]
}

func (w *world) readUsage() counts {
	usage := counts{}
	rows := w.query(`SELECT key, sum(count) FROM usage WHERE outcome = 1 GROUP BY key`)
	for _, r := range rows {
		usage[r[0]] = r[1]
	}
	return maps.Clone(usage)
}
