package simulation

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

func (s *sim) fail(format string, args ...any) {
	require.Failf(s.t, "the guarantees do not hold", format, args...)
}

// must fails the run after an error. Most of the time there is none, and testify looks up its caller
// first.
func (s *sim) must(err error, act string) {
	if err != nil {
		require.NoError(s.t, err, act)
	}
}

// query reads rows of integers from the ledger's database, without faults.
func (s *sim) query(query string) (all [][]int64) {
	err := s.centre.ledger.ask(query, func(row *sqlite3.Stmt) {
		numbers := make([]int64, row.ColumnCount())
		for i := range numbers {
			numbers[i] = row.ColumnInt64(i)
		}
		all = append(all, numbers)
	})
	s.must(err, "read the ledger")
	return all
}

const (
	selectAccounts = `SELECT id, bought, compensated, spent, lost, leased, deducting, posted FROM account ORDER BY id`
	selectLeases   = `SELECT subject, CAST(substr(node, 6) AS INTEGER), epoch, lost, granted - spent - returned, granted, beyond
		FROM lease WHERE kind = 1`
	selectUsage   = `SELECT key, outcome, count FROM usage WHERE outcome < 3`
	selectEntries = `SELECT id, account, amount, CASE WHEN length(note) = 10 THEN CAST(note AS INTEGER) END, kind = 'bought' AND amount < 0,
		kind = 'compensated' AND amount > 0 OR kind = 'lost' AND amount < 0 FROM credit_entry WHERE id > ? ORDER BY id`
	selectStale = `SELECT CAST(substr(lease.node, 6) AS INTEGER), lease.epoch, granted - spent - returned FROM lease JOIN node ON name = node
		WHERE retired = 0 AND kind = 1 AND lost = 0 AND lease.epoch < node.epoch AND granted > spent + returned`
	selectWriter = `SELECT restoring FROM writer`
)

// balance is an account as the database has it.
type balance struct {
	bought, compensated, spent, lost, leased, deducting, posted int64
	out, given                                                  int64 // sums over its leases: outstanding, and written off
	held                                                        map[int64]int64
	used, beyond, entries                                       int64 // not of the rogue
}

// entries are the sums of an account's credit entries, up to the entry last. A trigger keeps the
// database from changing or deleting any, so only new ones are read.
type entries struct {
	last int64
	sums counts
	// taken are by account the credits that operators took; noted counts by number the entries of
	// operators' changes.
	taken counts
	// covered are by account the credits that were compensated, less those written off: grants that the ledger did
	// not know.
	covered counts
	noted   map[int64]int
	read    bool // before
}

func (s *sim) readEntries() counts {
	known := &s.centre.ledger.entries
	if known.sums == nil {
		known.sums, known.taken, known.covered, known.noted = counts{}, counts{}, counts{}, map[int64]int{}
		defer func() { known.read = true }()
	}
	s.must(s.centre.ledger.ask(selectEntries, func(row *sqlite3.Stmt) {
		known.last = row.ColumnInt64(0)
		known.sums[row.ColumnInt64(1)] += row.ColumnInt64(2)
		if row.ColumnBool(4) {
			known.taken[row.ColumnInt64(1)] -= row.ColumnInt64(2)
		}
		if row.ColumnBool(5) {
			known.covered[row.ColumnInt64(1)] += row.ColumnInt64(2)
		}
		s.noteEntry(known, row.ColumnInt64(3))
	}, known.last), "read credit entries")
	return known.sums
}

func (s *sim) readBalances() map[int64]*balance {
	all := map[int64]*balance{}
	for _, r := range s.query(selectAccounts) {
		all[r[0]] = &balance{bought: r[1], compensated: r[2], spent: r[3], lost: r[4], leased: r[5], deducting: r[6], posted: r[7], held: map[int64]int64{}}
	}
	for account, sum := range s.readEntries() {
		if b := all[account]; b != nil {
			b.entries = sum
		}
	}
	for _, r := range s.query(selectLeases) {
		b := all[r[0]]
		switch out := r[4]; {
		case b == nil:
			s.fail("a lease of account %d, which does not exist", r[0])
		case out < 0:
			s.fail("edge-%d holds %d of account %d", r[1], out, r[0])
		case r[3] == 1:
			b.given += out
		default:
			b.out += out
			b.held[r[1]] += out
		}
		if r[1] < 0 {
			continue
		}
		b.beyond += r[6]
		s.checkGrant([3]int64{r[0], r[1], r[2]}, r[5])
	}
	return all
}

// check compares the guarantees with the database and with what clients got.
func (s *sim) check() {
	if s.checked == s.commits {
		return
	}
	s.checked = s.commits
	restoring := s.query(selectWriter)[0][0] == 1
	s.held, s.awaitsEdges = restoring && s.awaitsEdges, restoring
	if restoring && !s.restored && !s.mayAwait() {
		s.fail("the ledger waits for its edges, and was never restored from a backup")
	}
	all := s.readBalances()
	s.checkCovered(all, restoring)
	used := s.checkUsage()
	s.checkLimits()
	for id := int64(1); id <= accounts; id++ {
		b := all[id]
		if b == nil {
			continue // it is being added
		}
		b.used = used[id]
		s.checkAccount(id, b)
		if !restoring && (!s.restored || s.settling) { // else an edge may have more to report
			s.checkGot(id, b)
			s.trackDry(id, b)
		}
	}
}

// mayAwait reports whether the ledger may wait for its edges though it was never restored: an edge, or somebody who
// passes for the writer, had it seem that it lacks grants. What a hostile edge declares then, or reports, is believed.
func (s *sim) mayAwait() bool {
	return s.forged || s.countedTwice || s.rogue != nil && s.rogue.claimed
}

// checkGrant checks that a ledger which waits for its edges grants nothing: all of a lease
// was granted before, or spent by two copies of one disk, or by an edge that lost records.
func (s *sim) checkGrant(lease [3]int64, granted int64) {
	if s.held && granted > s.granted[lease] && !s.edges[lease[1]-1].mayExceed {
		s.fail("account %d, edge-%d, epoch %d: %d were granted, and %d before the ledger was restored",
			lease[0], lease[1], lease[2], granted, s.granted[lease])
	}
	s.granted[lease] = max(s.granted[lease], granted)
}

// checkAccount checks the invariants of an account.
func (s *sim) checkAccount(id int64, b *balance) {
	left := b.bought + b.compensated - b.spent - b.leased - b.lost
	for name, n := range map[string]int64{
		"bought": b.bought, "compensated": b.compensated, "spent": b.spent, "lost": b.lost, "leased": b.leased, "left": left,
	} {
		if n < 0 && !(name == "left" && s.awaitsEdges) { // returns may be reported after the grants they paid for
			s.fail("account %d: %s is %d", id, name, n)
		}
	}
	switch {
	case b.out != b.leased:
		s.fail("account %d: leased is %d, the leases come to %d", id, b.leased, b.out)
	case b.given != b.lost:
		s.fail("account %d: lost is %d, the leases that were written off come to %d", id, b.lost, b.given)
	case b.spent < b.used-b.beyond || s.rogue == nil && b.spent > b.used-b.beyond+s.notTakenBack(id):
		s.fail("account %d: spent is %d, the usage %d, of which %d beyond leases", id, b.spent, b.used, b.beyond)
	case b.entries != b.bought+b.compensated-b.lost-b.posted:
		s.fail("account %d: the entries come to %d, the balance is %+v", id, b.entries, *b)
	case b.bought > s.bought[id]:
		s.fail("account %d: %d bought, operators sold at most %d", id, b.bought, s.bought[id])
	case s.centre.ledger.entries.taken[id] > s.taken[id]:
		s.fail("account %d: %d taken, operators took at most %d", id, s.centre.ledger.entries.taken[id], s.taken[id])
	case s.centre.ledger.entries.covered[id] > s.claimed[id] && !s.copied && !s.restored && !s.rotted:
		s.fail("account %d: %d compensated for grants that the ledger did not know, %d were claimed", id, s.centre.ledger.entries.covered[id], s.claimed[id])
	case b.beyond != 0 && !s.copied && !s.restored && !s.rotted && !s.forged:
		s.fail("account %d: %d charges beyond leases", id, b.beyond)
	}
}

// checkCovered checks, when a restored ledger has heard all edges, that it compensated no more
// than what operators gave since the backup: else no edge holds more than was bought.
func (s *sim) checkCovered(all map[int64]*balance, restoring bool) {
	if s.mayCover == nil || restoring {
		return
	}
	if s.disturbed == s.coverDisturbed {
		for id, most := range s.mayCover {
			if b := all[id]; b != nil && b.compensated > most {
				s.fail("account %d: %d compensated after the ledger was restored, at most %d were missing", id, b.compensated, most)
			}
		}
	}
	s.mayCover = nil
}

// notTakenBack bounds the voids of an account that undid no debit, because their charges were
// lost when the ledger was restored from a backup, or by flipped bits.
func (s *sim) notTakenBack(id int64) int64 {
	if s.restored || s.rotted || s.forged {
		return s.voidedLate.of(id)
	}
	return 0
}

// checkUsage checks that no edge reports more than its clients were charged. It returns the
// usage by account.
func (s *sim) checkUsage() counts {
	used, notFound := counts{}, counts{}
	for _, r := range s.query(selectUsage) {
		if charge.Outcome(r[1]) == charge.Found {
			used[r[0]] += r[2]
		} else {
			notFound[r[0]] += r[2]
		}
	}
	all := counts{}
	for key, n := range used {
		if ofRogue(key) {
			continue
		}
		all[accountOf(key)] += n
		more := s.mayBe[key] + s.voidedLate[key]
		if s.settling && !s.wild {
			more = s.mayBe[key]
		}
		if n > s.got[key]+more {
			s.fail("key %d: %d charges reported, clients got %d and at most %d more", key, n, s.got[key], more)
		}
	}
	for key, n := range notFound {
		if n > s.asked[key] {
			s.fail("key %d: %d not-found lookups reported of %d", key, n, s.asked[key])
		}
	}
	return all
}

// checkGot checks that clients got no more than was paid.
func (s *sim) checkGot(id int64, b *balance) {
	got, paid, excused := s.got.of(id), b.bought+b.compensated, s.missingOf(id)+b.beyond
	if s.forged {
		excused += s.claimed[id]
	}
	if got > paid+excused {
		s.fail("account %d: clients got %d of %d paid, %d of them excused", id, got, paid, excused)
	}
}

// trackDry tracks for which edges nothing is left beyond what they hold.
func (s *sim) trackDry(id int64, b *balance) {
	left := b.bought + b.compensated - b.spent - b.leased - b.lost
	for _, e := range s.edges {
		at := [2]int64{e.number, id}
		switch {
		case left <= 0 && b.deducting == 0 && b.leased == b.held[e.number]:
			s.dry[at] = stillDry
		case s.dry[at] == stillDry:
			s.dry[at] = s.clock.Load()
		}
	}
}

// stillDry stands for a time that has not ended.
const stillDry = 1 << 62

// refusalAge is how old the state of the ledger behind a 402 may be: the time for which an edge
// believes an answer since it asked, and the time until a superseded writer finds out.
const refusalAge = 1_000 + 1_000

// refused checks that a 402 is true.
func (s *sim) refused(e *edge, r *request) {
	if r.verdict.Code != charge.InsufficientCredits || s.restored || e.disk.copied || e.deceived || e.misled {
		return
	}
	if e.returns(r.Account) {
		s.fail("%s answers 402 to account %d, and is returning units of it: %+v", e.name, r.Account, e.batch)
	}
	if spent, ok := e.spentAt[r.Account]; ok && e.askedLast <= spent {
		s.fail("%s answers 402 to account %d, and has asked nobody since the last charge", e.name, r.Account)
	}
	at, ok := s.dry[[2]int64{e.number, r.Account}]
	if !ok || s.clock.Load()-at > refusalAge+e.setBack+s.centre.setBack {
		s.fail("%s answers 402 to account %d, which was dry at %d, now %d", e.name, r.Account, at, s.clock.Load())
	}
}

// returns reports whether the edge gives credits of an account back, and the writer does not have them yet.
func (e *edge) returns(account int64) bool {
	pool := syncproto.Pool{Kind: syncproto.Credits, Subject: account}
	if e.batch == nil || e.batchEpoch != e.epoch || !slices.ContainsFunc(e.batch.Returns, func(r syncproto.Return) bool { return r.Pool == pool && r.Units > 0 }) {
		return false
	}
	applied := e.sim.query(fmt.Sprintf(`SELECT applied FROM node_epoch WHERE node = '%s' AND epoch = %d`, e.name, e.epoch))
	return len(applied) > 0 && uint64(applied[0][0]) < e.batch.Seq
}

// settled checks what must be true at the end.
func (s *sim) settled() {
	require.Zero(s.t, s.query(selectWriter)[0][0], "the ledger waits for edges")
	s.pass()
	time.Sleep(catchUp)
	s.pass()
	synctest.Wait()
	s.checkProjected()
	s.settling, s.checked = true, -1
	s.check()
	usage := s.readUsage()
	for id := int64(1); id <= accounts; id++ {
		for _, e := range s.edges {
			key := e.key(id)
			if usage[key] < s.got[key]-s.missing[key] {
				s.fail("%s, account %d: %d charges reported of %d, %d excused", e.name, id, usage[key], s.got[key], s.missing[key])
			}
		}
	}
	s.settledLimits()
	all := s.readBalances()
	for id := int64(1); id <= accounts; id++ {
		s.spendAll(id, all[id])
	}
}

// spendAll checks that an account can spend its balance to the last credit, and no more.
func (s *sim) spendAll(id int64, b *balance) {
	balance := b.bought + b.compensated - b.spent - b.lost
	require.Zero(s.t, b.deducting, "account %d: an adjustment is not done", id)
	for n := int64(0); ; n++ {
		code := s.spendOne(id)
		if code == "" && n < balance {
			continue
		}
		if s.unknownToLedger(id) || s.volumeClaimed(id, code) {
			return
		}
		require.Equal(s.t, charge.InsufficientCredits, code, "account %d, with %d of %d spent", id, n, balance)
		require.Equal(s.t, balance, n, "account %d: what could be spent", id)
		return
	}
}

// volumeClaimed reports whether an answer may come from false claims of an account's volume.
func (s *sim) volumeClaimed(id int64, code string) bool {
	return s.claimedVolume[id] >= leastVolume && volumeGone[code]
}

// volumeGone are the answers where false claims used up the volume. Of the last units, one edge may hold that
// of the credits and another that of the volume, each recalled for the other.
var volumeGone = map[string]bool{charge.MonthlyVolumeExceeded: true, charge.MeteringUnavailable: true}

// leastVolume is a part of the monthly volume of the plan "scale": a false claim may use up the rest of it.
const leastVolume = 900_000

// unknownToLedger reports whether an edge holds credits of an account that the ledger does
// not know, because it was restored unannounced and no edge noticed.
func (s *sim) unknownToLedger(id int64) bool {
	s.quiet(2)
	return s.restoredSilently && s.readBalances()[id].beyond > 0
}

// spendOne tries to spend a credit at each edge, giving the writer time to recall.
func (s *sim) spendOne(id int64) (code string) {
	for range 6 {
		for i := range s.edges {
			e := s.edges[(int(id)+i)%len(s.edges)]
			if e.retired {
				continue
			}
			if code = s.spendAt(e, id); code == "" || code == charge.MonthlyVolumeExceeded || code == charge.InsufficientCredits {
				return code
			}
		}
		s.quiet(1)
	}
	return code
}

// spendAt spends a credit at an edge and returns the error code, empty for none.
func (s *sim) spendAt(e *edge, id int64) (code string) {
	s.ids++
	r := charge.Request{ID: fmt.Sprintf("r-%d", s.ids), Account: id, Key: e.key(id), PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
	v := e.process.meter.Charge(context.Background(), r)
	if v.Code == "" {
		s.got[r.Key]++
	}
	return v.Code
}
