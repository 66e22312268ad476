package simulation

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
)

func (w *world) fail(format string, args ...any) {
	require.Failf(w.t, "the guarantees do not hold", format, args...)
}

// query reads the ledger's database past all faults: rows of whole numbers.
func (w *world) query(query string) (all [][]int64) {
	err := w.centre.ledger.ask(query, func(row *sqlite3.Stmt) {
		numbers := make([]int64, row.ColumnCount())
		for i := range numbers {
			numbers[i] = row.ColumnInt64(i)
		}
		all = append(all, numbers)
	})
	require.NoError(w.t, err)
	return all
}

const (
	selectAccounts = `SELECT id, bought, compensated, spent, lost, leased, deducting, posted FROM account ORDER BY id`
	selectLeases   = `SELECT subject, CAST(substr(node, 6) AS INTEGER), epoch, lost, granted - spent - returned, granted, beyond
		FROM lease WHERE kind = 1`
	selectUsage   = `SELECT key, outcome, sum(count) FROM usage GROUP BY 1, 2`
	selectEntries = `SELECT account, sum(amount) FROM credit_entry GROUP BY 1`
	selectStale   = `SELECT CAST(substr(lease.node, 6) AS INTEGER), lease.epoch, granted - spent - returned FROM lease JOIN node ON name = node
		WHERE kind = 1 AND lost = 0 AND lease.epoch < node.epoch AND granted > spent + returned`
	selectWriter = `SELECT restoring FROM writer`
)

// books are what the database says of one account.
type books struct {
	bought, compensated, spent, lost, leased, deducting, posted int64
	out, given                                                  int64 // sums over its leases: held, and given up
	held                                                        map[int64]int64
	used, beyond, entries                                       int64
}

func (w *world) readBooks() map[int64]*books {
	all := map[int64]*books{}
	for _, r := range w.query(selectAccounts) {
		all[r[0]] = &books{bought: r[1], compensated: r[2], spent: r[3], lost: r[4], leased: r[5], deducting: r[6], posted: r[7], held: map[int64]int64{}}
	}
	for _, r := range w.query(selectEntries) {
		if b := all[r[0]]; b != nil {
			b.entries = r[1]
		}
	}
	for _, r := range w.query(selectLeases) {
		b := all[r[0]]
		switch out := r[4]; {
		case b == nil:
			w.fail("a lease of account %d, which does not exist", r[0])
		case out < 0:
			w.fail("edge-%d holds %d of account %d", r[1], out, r[0])
		case r[3] == 1:
			b.given += out
		default:
			b.out += out
			b.held[r[1]] += out
		}
		b.beyond += r[6]
		w.checkGrant([3]int64{r[0], r[1], r[2]}, r[5])
	}
	return all
}

// check holds the guarantees against the database and what clients got.
func (w *world) check() {
	if !w.changed {
		return
	}
	w.changed = false
	restoring := w.query(selectWriter)[0][0] == 1
	w.held, w.awaits = restoring && w.awaits, restoring
	all := w.readBooks()
	used := w.checkUsage()
	for id := int64(1); id <= accounts; id++ {
		b := all[id]
		if b == nil {
			continue // it is being added
		}
		b.used = used[id]
		w.checkAccount(id, b)
		if !restoring && (!w.went || w.settling) { // else an edge may know better, and has not spoken yet
			w.checkGot(id, b)
			w.noteDry(id, b)
		}
	}
}

// checkGrant holds that a ledger which waits for edges grants nothing: that all it has of
// a lease was granted before, or spent by two copies of one disk.
func (w *world) checkGrant(lease [3]int64, granted int64) {
	if w.held && granted > w.granted[lease] && !w.edges[lease[1]-1].copied {
		w.fail("account %d, edge-%d, epoch %d: %d were granted, and %d before the ledger came back",
			lease[0], lease[1], lease[2], granted, w.granted[lease])
	}
	w.granted[lease] = max(w.granted[lease], granted)
}

// checkAccount holds what must be true of an account at any moment.
func (w *world) checkAccount(id int64, b *books) {
	left := b.bought + b.compensated - b.spent - b.leased - b.lost
	for name, n := range map[string]int64{
		"bought": b.bought, "compensated": b.compensated, "spent": b.spent, "lost": b.lost, "leased": b.leased, "left": left,
	} {
		if n < 0 {
			w.fail("account %d: %s is %d", id, name, n)
		}
	}
	switch {
	case b.out != b.leased:
		w.fail("account %d: leased is %d, the leases come to %d", id, b.leased, b.out)
	case b.given != b.lost:
		w.fail("account %d: lost is %d, the leases that were given up come to %d", id, b.lost, b.given)
	case b.spent < b.used-b.beyond || b.spent > b.used-b.beyond+w.notTakenBack(id):
		w.fail("account %d: spent is %d, the usage %d, of which %d beyond leases", id, b.spent, b.used, b.beyond)
	case b.entries != b.bought+b.compensated-b.lost-b.posted:
		w.fail("account %d: the entries come to %d, the balance is %+v", id, b.entries, *b)
	case b.bought > w.bought[id]:
		w.fail("account %d: %d bought, operators sold at most %d", id, b.bought, w.bought[id])
	case b.beyond != 0 && !w.copied && !w.went:
		w.fail("account %d: %d charges beyond leases", id, b.beyond)
	}
}

// notTakenBack bounds the voids of an account that took no debit back, since their charges
// were lost with a ledger that came back from a backup.
func (w *world) notTakenBack(id int64) int64 {
	if w.went {
		return w.voidedLate.of(id)
	}
	return 0
}

// checkUsage holds that no edge reports more than its clients were charged. It returns
// the usage by account.
func (w *world) checkUsage() counts {
	used := counts{}
	for _, r := range w.query(selectUsage) {
		key, n := r[0], r[2]
		switch charge.Outcome(r[1]) {
		case charge.Found:
			used[accountOf(key)] += n
			more := w.mayBe[key] + w.voidedLate[key]
			if w.settling && !w.wild {
				more = w.mayBe[key]
			}
			if n > w.got[key]+more {
				w.fail("key %d: %d charges reported, clients got %d and at most %d more", key, n, w.got[key], more)
			}
		case charge.NotFound:
			if n > w.asked[key] {
				w.fail("key %d: %d not-found lookups reported of %d", key, n, w.asked[key])
			}
		}
	}
	return used
}

// checkGot holds that clients got no more than was paid.
func (w *world) checkGot(id int64, b *books) {
	got, paid, excused := w.got.of(id), b.bought+b.compensated, w.missingOf(id)+b.beyond
	if got > paid+excused {
		w.fail("account %d: clients got %d of %d paid, %d of them excused", id, got, paid, excused)
	}
}

// noteDry notes for which edges nothing is to be had beyond what they hold.
func (w *world) noteDry(id int64, b *books) {
	left := b.bought + b.compensated - b.spent - b.leased - b.lost
	for _, e := range w.edges {
		at := [2]int64{e.number, id}
		switch {
		case left <= 0 && b.deducting == 0 && b.leased == b.held[e.number]:
			w.dry[at] = stillDry
		case w.dry[at] == stillDry:
			w.dry[at] = w.now
		}
	}
}

// stillDry is the time of what is so now.
const stillDry = 1 << 62

// refusalAge is how old the writer's word may be on which a 402 is said: the time that an
// edge waits for it, the time that it then believes it, and the time in which a writer
// that was superseded finds out.
const refusalAge = timeoutMillis + 5_000 + 1_000

// refused holds that a refusal is true.
func (w *world) refused(e *edge, r *request) {
	if r.verdict.Code != charge.InsufficientCredits || w.went || e.disk.copied {
		return
	}
	at, ok := w.dry[[2]int64{e.number, r.Account}]
	if !ok || w.now-at > refusalAge+e.setBack {
		w.fail("%s says 402 to account %d, which was dry at %d, now %d", e.name, r.Account, at, w.now)
	}
}

// settled holds what must be true at the end.
func (w *world) settled() {
	require.Zero(w.t, w.query(selectWriter)[0][0], "the ledger waits for edges")
	w.settling, w.changed = true, true
	w.check()
	usage := w.readUsage()
	for id := int64(1); id <= accounts; id++ {
		for _, e := range w.edges {
			key := e.key(id)
			if usage[key] < w.got[key]-w.missing[key] {
				w.fail("%s, account %d: %d charges reported of %d, %d excused", e.name, id, usage[key], w.got[key], w.missing[key])
			}
		}
	}
	all := w.readBooks()
	for id := int64(1); id <= accounts; id++ {
		w.spendAll(id, all[id])
	}
}

// spendAll holds that an account can spend its balance to the last credit, and no more.
func (w *world) spendAll(id int64, b *books) {
	balance := b.bought + b.compensated - b.spent - b.lost
	require.Zero(w.t, b.deducting, "account %d: an adjustment is not done", id)
	for n := int64(0); ; n++ {
		code := w.spendOne(id)
		if code == "" && n < balance {
			continue
		}
		if w.unsaid(id) {
			return
		}
		require.Equal(w.t, charge.InsufficientCredits, code, "account %d, with %d of %d spent", id, n, balance)
		require.Equal(w.t, balance, n, "account %d: what could be spent", id)
		return
	}
}

// unsaid reports whether an edge holds credits of an account that its ledger does not know
// of, since it was not said that the ledger came back from a backup, and no edge saw it.
func (w *world) unsaid(id int64) bool {
	w.quiet(2)
	return w.silent && w.readBooks()[id].beyond > 0
}

// spendOne spends a credit at the edges in turn, giving the writer time to recall.
func (w *world) spendOne(id int64) (code string) {
	for range 6 {
		for i := range w.edges {
			e := w.edges[(int(id)+i)%len(w.edges)]
			if e.retired {
				continue
			}
			if code = w.spendAt(e, id); code == "" || code == charge.MonthlyVolumeExceeded || code == charge.InsufficientCredits {
				return code
			}
		}
		w.quiet(1)
	}
	return code
}

// spendAt spends a credit at an edge, and returns why it can't.
func (w *world) spendAt(e *edge, id int64) (code string) {
	w.ids++
	r := charge.Request{ID: fmt.Sprintf("r-%d", w.ids), Account: id, Key: e.key(id), PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
	v := e.process.meter.Charge(context.Background(), r)
	if v.Code == "" {
		w.got[r.Key]++
	}
	return v.Code
}
