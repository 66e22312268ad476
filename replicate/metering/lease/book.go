package lease

import (
	"errors"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// Log keeps the records of a EdgeState, in order, and copies them. What Append took is lost in
// a crash until the shell has written it; where a EdgeState must not go on without, it leaves
// that to its shell: see Charge, Void and Sync.
type Log interface {
	// Append takes a record. When a droppable one can't be written, EdgeState.Drop takes its
	// effect back.
	Append(record []byte, droppable bool)
	// Batch is a batch that was sealed before, nil when it is not kept any more. After an
	// error it is asked for again.
	Batch(epoch, seq uint64) (*syncproto.Batch, error)
}

// contactMillis is how long after the last reply an edge counts as in touch with the
// writer. Twice the longest pause between two syncs, and some.
const contactMillis = 5_000

// ErrForgotten is returned by Void for a request id that is older than those remembered.
var ErrForgotten = errors.New("the request id is too old to be voided")

// EdgeState is the state of one edge. It is not safe for concurrent use.
type EdgeState struct {
	log     Log
	scratch syncproto.Encoder

	boot       uint64
	epoch      uint64 // 0 before the writer gave one
	generation uint64
	standing   syncproto.Status // OK, Superseded or Retired
	session    uint64           // 0 before Hello was answered in this boot
	accepted   bool             // Hello was answered since Boot
	told       bool             // the writer told all leases of the epoch in this session
	unread     bool             // a sealed batch could not be read the last time
	sealed     uint64           // newest batch made
	applied    uint64           // newest batch that the writer has
	acked      uint64           // newest batch that the writer ever had
	dropped    uint64           // an epoch of which nothing is counted any more, 0 for none
	granted    int64            // sum of all grants of the epoch
	seen       uint64           // newest version of news, within the session
	live       int64
	contact    int64 // time of the last reply
	everMet    bool  // a reply came since Boot

	accounts map[int64]*account
	order    []int64 // account ids, for the sweep
	keys     map[int64]*key
	keyOrder []int64
	sweepAt  int
	keyAt    int

	carried  map[uint64]tally // usage from before Boot by epoch, until Hello is answered
	pending  tally            // usage of the epoch since
	late     map[uint64]tally // usage of earlier epochs since
	inflight *syncproto.Batch
	replayed []Reported
	recalls  []syncproto.Pool // leases to give back
	trims    []syncproto.Pool // leases to bring down to their floor
	closing  []int64          // accounts to close

	wants      map[syncproto.Pool]syncproto.Want
	asked      map[syncproto.Pool]syncproto.Want // wants of the message under way
	rates      []int64                           // accounts whose count the writer does not know
	doubts     []doubt
	doubted    map[sum]bool // of doubts, those not asked again or voided
	unresolved []syncproto.Unresolved
	declaring  bool
	declaredTo int // leases declared, in the order of declarable
	declared   int // leases in the message under way

	recent  recent
	clients clients
	idEpoch uint64 // epoch of the records that ReplayID reads
}

// New makes the book of an edge with an empty state directory. Records go to log.
func New(log Log) *EdgeState {
	return &EdgeState{
		log: log, standing: syncproto.OK, live: 1,
		accounts: map[int64]*account{}, keys: map[int64]*key{},
		carried: map[uint64]tally{}, pending: tally{}, late: map[uint64]tally{},
		wants: map[syncproto.Pool]syncproto.Want{}, asked: map[syncproto.Pool]syncproto.Want{},
		recent: newRecent(), clients: newClients(), doubted: map[sum]bool{},
	}
}

// Boot begins a run of the edge's process, after the records of the ones before were
// replayed. The number is random: no two runs have the same.
func (b *EdgeState) Boot(number uint64) {
	b.boot = number
	b.separate()
	b.append(func(e *syncproto.Encoder) { e.Byte(recordBoot) })
}

// separate sets apart the usage of former runs: an older copy of the state directory
// would report it a second time.
func (b *EdgeState) separate() {
	merge(tallyOf(b.carried, b.epoch), b.pending)
	for epoch, t := range b.late {
		merge(tallyOf(b.carried, epoch), t)
	}
	b.pending, b.late, b.accepted, b.session = tally{}, map[uint64]tally{}, false, 0
}

// accept notes that the writer found the state directory current.
func (b *EdgeState) accept() {
	b.join()
	b.accepted = true
}

// join puts the usage together again that separate set apart.
func (b *EdgeState) join() {
	for epoch, t := range b.carried {
		to := b.pending
		if epoch != b.epoch {
			to = tallyOf(b.late, epoch)
		}
		merge(to, t)
	}
	b.carried = map[uint64]tally{}
}

// Connected reports whether the writer was heard of within the last seconds, so that
// what it said of others still holds.
func (b *EdgeState) Connected(now int64) bool {
	return b.everMet && b.session != 0 && now-b.contact <= contactMillis
}

// Serving reports whether this edge may spend leases at all.
func (b *EdgeState) Serving() bool { return b.epoch != 0 && b.standing == syncproto.OK }

// Standing is where the writer says this edge stands: OK, Superseded or Retired.
func (b *EdgeState) Standing() syncproto.Status { return b.standing }

// Epoch is the current epoch, 0 before the first contact.
func (b *EdgeState) Epoch() uint64 { return b.epoch }

// Accounts is the number of accounts with a lease here.
func (b *EdgeState) Accounts() int { return len(b.accounts) }

// Unreported is the number of the account's charges that the writer may not have.
func (b *EdgeState) Unreported(account int64) int64 {
	if a := b.accounts[account]; a != nil {
		return a.unreported
	}
	return 0
}

func (b *EdgeState) account(id int64) *account {
	a := b.accounts[id]
	if a == nil {
		a = &account{index: int32(len(b.order))}
		b.accounts[id] = a
		b.order = append(b.order, id)
	}
	return a
}

func (b *EdgeState) dropAccount(id int64) {
	a := b.accounts[id]
	last := b.order[len(b.order)-1]
	b.order[a.index] = last
	b.accounts[last].index = a.index
	b.order = b.order[:len(b.order)-1]
	delete(b.accounts, id)
}

func (b *EdgeState) key(id int64) *key {
	k := b.keys[id]
	if k == nil {
		k = &key{index: int32(len(b.keyOrder))}
		b.keys[id] = k
		b.keyOrder = append(b.keyOrder, id)
	}
	return k
}

func (b *EdgeState) dropKey(id int64) {
	k := b.keys[id]
	last := b.keyOrder[len(b.keyOrder)-1]
	b.keyOrder[k.index] = last
	b.keys[last].index = k.index
	b.keyOrder = b.keyOrder[:len(b.keyOrder)-1]
	delete(b.keys, id)
}

// holding is the lease of a pool, nil when there is none.
func (b *EdgeState) holding(p syncproto.Pool) *holding {
	if p.Kind == syncproto.NotFound {
		if k := b.keys[p.Subject]; k != nil {
			return &k.notFound
		}
		return nil
	}
	a := b.accounts[p.Subject]
	if a == nil {
		return nil
	}
	if p.Kind == syncproto.Volume {
		return &a.volume
	}
	return &a.credits
}

// spend counts units of use u from the leases of the current epoch: 1 for a charge, -1
// for its void.
func (b *EdgeState) spend(u use, units int64) {
	switch u.outcome {
	case charge.Found:
		a := b.account(u.account)
		b.take(syncproto.Pool{Kind: syncproto.Credits, Subject: u.account}, &a.credits, units)
		if a.volume.window == syncproto.MonthOfHour(u.hour) {
			b.take(syncproto.Pool{Kind: syncproto.Volume, Subject: u.account, Window: a.volume.window}, &a.volume, units)
		}
		a.unreported += units
	case charge.NotFound:
		if k := b.keys[u.key]; k != nil && k.notFound.window == syncproto.DayOfHour(u.hour) {
			b.take(syncproto.Pool{Kind: syncproto.NotFound, Subject: u.key, Window: k.notFound.window}, &k.notFound, units)
		}
	}
	b.pending.add(u, units)
}

// take spends units of a lease. Units that a void brings back to a recalled lease go on
// to the writer.
func (b *EdgeState) take(p syncproto.Pool, h *holding, units int64) {
	h.spent += units
	if units < 0 && h.recalled {
		b.recalls = append(b.recalls, p)
	}
}
