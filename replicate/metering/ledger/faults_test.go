package ledger_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "github.com/ncruces/go-sqlite3/vfs/memdb"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

var (
	seeds    = flag.Int("seeds", 60, "number of seeds of TestNothingIsSpentTwiceUnderFaults")
	onlySeed = flag.Uint64("seed", 0, "the only seed of TestNothingIsSpentTwiceUnderFaults, 0 for all")
)

// serve charges a request at an edge, as its meter would.
func (c *cluster) serve(n *edge) {
	account := 1 + c.random.Int64N(accounts)
	c.ids++
	r := charge.Request{
		ID: fmt.Sprintf("r-%d", c.ids), Account: account, Key: account*10 + c.random.Int64N(2), PerMinute: 1 << 30,
		Endpoint: charge.Companies, Outcome: charge.Found,
	}
	if c.random.IntN(5) == 0 {
		r.Outcome = charge.NotFound
	}
	a := n.state.Charge(c.now, &r, false)
	if a.Wait {
		c.exchange(n)
		a = n.state.Charge(c.now, &r, true)
	}
	if a.Verdict.Code != "" {
		if a.Verdict.Code == charge.InsufficientCredits && c.random.IntN(4) == 0 {
			c.checkDry(account)
		}
		return
	}
	again := n.state.Charge(c.now, &r, false)
	require.Equal(c.t, a.Verdict, again.Verdict, "asked again")
	voided := c.random.IntN(12) == 0
	if voided {
		_, err := n.state.Void(c.now, r.ID)
		require.NoError(c.t, err)
		n.disk.durable = len(n.disk.records)
	}
	if r.Outcome == charge.Found && !voided {
		c.served[account]++
	}
}

// checkDry checks an account that was just answered 402.
func (c *cluster) checkDry(account int64) {
	require.GreaterOrEqual(c.t, c.ledger.Account(account).Credits().Left(), int64(0))
}

// forget counts the charges that may be lost with an edge's disk.
func (c *cluster) forget(b *lease.EdgeState) {
	if c.restored {
		c.missing = c.served // batches that it would have sent again may be lost too
		return
	}
	for id := int64(1); id <= accounts; id++ {
		c.missing[id] += max(b.Unreported(id), 0)
	}
}

func (c *cluster) step() {
	c.now += c.random.Int64N(400)
	n := c.edges[c.random.IntN(len(c.edges))]
	switch action := c.random.IntN(100); {
	case action < 60:
		c.serve(n)
	case action < 84:
		c.exchange(n)
	case action < 86 && len(n.old) > 0: // a message from the past
		c.deliver(n, n.old[c.random.IntN(len(n.old))])
	case action < 88:
		c.note("%s crashes", n.name)
		c.boot(n, n.disk)
	case action < 89:
		c.powerCut(n)
	case action < 90:
		c.note("writer restarts")
		c.openWriter(false)
	case action < 92:
		c.operator()
	case action < 93:
		c.now += c.random.Int64N(40 * 60 * 60 * 1000)
	case action < 94:
		n.snapshot = n.disk.copy()
	case action < 95:
		c.backup()
	default:
		c.rare(n)
	}
}

// powerCut loses some of the records that were not durable.
func (c *cluster) powerCut(n *edge) {
	c.note("%s loses power", n.name)
	c.forget(n.state)
	d := n.disk
	d.records = d.records[:d.durable+c.random.IntN(len(d.records)-d.durable+1)]
	c.boot(n, d)
}

func (c *cluster) operator() {
	id := 1 + c.random.Int64N(accounts)
	switch c.random.IntN(4) {
	case 0:
		c.ledger.ChangeCredits(c.now, id, 1+c.random.Int64N(100), ledger.EntryBought, "top-up")
	case 1:
		c.ledger.ChangeCredits(c.now, id, -1-c.random.Int64N(60), ledger.EntryBought, "")
	default:
		plan := []string{"scale", "starter"}[c.random.IntN(2)]
		wrong := jumps[c.random.IntN(len(jumps))] // of the writer's clock
		c.ledger.ChangeAccount(c.now+wrong, id, plan, c.random.IntN(3) == 0)
	}
	require.NoError(c.t, c.ledger.Check())
	c.commit()
}

// rare does things that happen to an edge once in its life.
func (c *cluster) rare(n *edge) {
	switch c.random.IntN(24) {
	case 4:
		c.restoreLedger()
	case 0:
		c.note("%s is wiped", n.name)
		c.forget(n.state)
		c.boot(n, &disk{archive: map[[2]uint64]*syncproto.Batch{}})
		n.snapshot = nil
	case 1:
		if n.snapshot != nil {
			c.note("%s is restored from a snapshot", n.name)
			c.forget(n.state)
			c.boot(n, n.snapshot.copy())
			c.forget(n.state)
		}
	case 2:
		c.note("%s: old epochs are retired", n.name)
		require.NoError(c.t, c.ledger.Retire(c.now, n.name, true))
		c.commit()
	case 3:
		if !n.retired && len(c.edges) < 8 {
			c.note("%s is retired", n.name)
			n.retired = true
			require.NoError(c.t, c.ledger.Retire(c.now, n.name, false))
			if !c.commit() {
				n.retired = c.ledger.Edge(n.name).Retired
			}
			c.addEdge()
		}
	}
}

// backup copies the ledger.
func (c *cluster) backup() {
	if c.random.IntN(3) != 0 {
		return
	}
	c.copies++
	c.saved = fmt.Sprintf("file:/backup-%d-%p?vfs=memdb&_txlock=immediate", c.copies, c)
	// A memory database lives as long as someone has it open.
	require.NoError(c.t, c.open(c.saved).Ping())
	c.exec(`VACUUM INTO ?`, c.saved)
	c.savedEpochs = map[string]uint64{}
	for _, n := range c.edges {
		c.savedEpochs[n.name] = n.state.Epoch()
	}
}

// restoreLedger restores the ledger from a backup, sometimes without telling the writer: then
// it finds out from the edges' sums. The operator adds edges again that are not in it.
func (c *cluster) restoreLedger() {
	if c.saved == "" {
		return
	}
	said := c.random.IntN(2) == 0
	c.note("the ledger is restored from a backup (said so: %v)", said)
	c.db, c.saved = c.open(c.saved), ""
	c.ledger, c.restored = nil, true
	c.openWriter(said)
	for _, n := range c.edges {
		if c.ledger.Edge(n.name) == nil {
			c.exec(`INSERT INTO node (name, token_hash, created_at) VALUES (?, x'00', 0)`, n.name)
			require.NoError(c.t, c.ledger.AddEdge(n.name))
		}
		n.retired = c.ledger.Edge(n.name).Retired
		if n.state.Epoch() != c.savedEpochs[n.name] {
			// Batches of an epoch that ended since are not sent again.
			c.missing = c.served
		}
	}
	c.commit()
}

// heal stops all faults and exchanges messages until everything is settled.
func (c *cluster) heal() {
	c.calm = true
	for id := int64(1); id <= accounts; id++ {
		require.NoError(c.t, c.ledger.ChangeAccount(c.now, id, "scale", false))
	}
	c.commit()
	for range 300 { // enough to send every batch again, one in each message
		c.now += 1000
		for _, n := range c.edges {
			c.exchange(n)
		}
	}
}

func (c *cluster) settled() {
	require.False(c.t, c.ledger.Restoring, "waiting for %v", c.ledger.Awaited())
	for id := int64(1); id <= accounts; id++ {
		p := c.ledger.Account(id).Credits()
		for _, n := range c.edges {
			require.Zero(c.t, n.state.Unreported(id), "%s reported everything of account %d", n.name, id)
		}
		require.LessOrEqual(c.t, p.Spent, c.served[id], "account %d pays for what it got", id)
		require.GreaterOrEqual(c.t, p.Spent, c.served[id]-c.missing[id]-c.beyond(id), "account %d pays for all it got", id)
		c.checkJournal(id)
		c.checkNotes(id)
	}
}

// checkNotes checks that the notes of charges beyond a lease count them, and that the rest of the usage was debited: an
// owner's statement is made of both (dashboard/credits.go).
func (c *cluster) checkNotes(id int64) {
	const query = `SELECT spent, (SELECT coalesce(sum(count), 0) FROM usage WHERE account = ?1 AND outcome = 1),
		(SELECT coalesce(sum(CAST(note AS INTEGER) * iif(note LIKE '% taken back', -1, 1)), 0) FROM credit_entry
			WHERE account = ?1 AND kind = 'spent' AND amount = 0 AND note LIKE '% charges beyond the lease of %') FROM account WHERE id = ?1`
	var spent, used, noted int64
	require.NoError(c.t, c.db.QueryRow(query, id).Scan(&spent, &used, &noted))
	require.Equal(c.t, c.beyond(id), noted, "charges of account %d beyond leases", id)
	require.Equal(c.t, used-noted, spent, "usage of account %d that was debited", id)
}

// beyond counts the charges that were made beyond a lease: by an older copy of a state
// directory, or by an edge that was retired before it could declare its leases.
func (c *cluster) beyond(id int64) int64 {
	var n int64
	const query = `SELECT coalesce(sum(beyond), 0) FROM lease WHERE kind = 1 AND subject = ?`
	require.NoError(c.t, c.db.QueryRow(query, id).Scan(&n))
	if n > 0 {
		require.True(c.t, slices.ContainsFunc(c.trace, func(s string) bool { return strings.Contains(s, "restored from") }))
	}
	return n
}

// checkJournal checks that the credit entries sum to the balance.
func (c *cluster) checkJournal(id int64) {
	var sum, balance int64
	require.NoError(c.t, c.db.QueryRow(`SELECT coalesce(sum(amount), 0) FROM credit_entry WHERE account = ?`, id).Scan(&sum))
	const query = `SELECT bought + compensated - spent - lost + spent - posted FROM account WHERE id = ?`
	require.NoError(c.t, c.db.QueryRow(query, id).Scan(&balance))
	require.Equal(c.t, balance, sum, "the entries of account %d", id)
}

func TestNothingIsSpentTwiceUnderFaults(t *testing.T) {
	run := func(seed uint64) bool {
		return t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c := newCluster(t, seed)
			defer func() {
				if t.Failed() {
					t.Log(c.trace)
					t.Logf("again: go test ./replicate/metering/ledger -run TestNothingIsSpentTwiceUnderFaults -seed %d", seed)
				}
			}()
			for range 600 {
				c.step()
			}
			c.heal()
			c.settled()
		})
	}
	if *onlySeed != 0 {
		run(*onlySeed)
		return
	}
	count := *seeds
	if testing.Short() { // under the race detector, which has nothing to find in one goroutine
		count = (count + 9) / 10
	}
	for seed := range count {
		if !run(uint64(seed + 1)) {
			return
		}
	}
}
