package ledger_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3/driver"
	_ "github.com/ncruces/go-sqlite3/vfs/memdb"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

var (
	seeds    = flag.Int("seeds", 60, "number of seeds of the test of faults")
	onlySeed = flag.Uint64("seed", 0, "the one seed to run of the test of faults")
)

const accounts = 4

// disk is the storage of one edge: records of which some are not durable, and the
// batches that were kept.
type disk struct {
	records [][]byte
	durable int
	kept    map[[2]uint64]*syncproto.Batch
}

func (d *disk) Append(record []byte, _ bool) {
	d.records = append(d.records, append([]byte(nil), record...))
}

func (d *disk) Batch(epoch, seq uint64) (*syncproto.Batch, error) {
	return d.kept[[2]uint64{epoch, seq}], nil
}

func (d *disk) copy() *disk {
	c := &disk{records: slices.Clone(d.records), kept: map[[2]uint64]*syncproto.Batch{}}
	for k, v := range d.kept {
		c.kept[k] = v
	}
	c.durable = len(c.records)
	return c
}

// node is an edge under test.
type node struct {
	name     string
	book     *lease.EdgeState
	disk     *disk
	snapshot *disk
	retired  bool
	old      []syncproto.Message // messages that may come again
}

// world is a writer, its database, edges, and what the clients saw.
type world struct {
	t       *testing.T
	random  *rand.Rand
	now     int64
	db      *sql.DB
	ledger  *ledger.Ledger
	nodes   []*node
	ids     int
	names   int
	served  [accounts + 1]int64 // answered 200, and not voided
	missing [accounts + 1]int64 // of these, at most so many are on no disk
	trace   []string
	calm    bool // no faults any more

	saved       string // URI of the backup
	savedEpochs map[string]uint64
	copies      int
	wentBack    bool // the ledger was restored
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), now: 1_790_000_000_000}
	w.db = w.open(fmt.Sprintf("file:/faults-%d-%p?vfs=memdb&_txlock=immediate", seed, w))
	require.NoError(t, schema.Migrate(t.Context(), w.db, schema.Ledger))
	w.openWriter(false)
	for id := int64(1); id <= accounts; id++ {
		w.exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (?, '', '', 'scale', 0, 0)`, id)
		require.NoError(t, w.ledger.AddAccount(id, "scale"))
		require.NoError(t, w.ledger.ChangeCredits(w.now, id, 20+w.random.Int64N(300), ledger.EntryBought, ""))
	}
	w.commit()
	for range 2 + w.random.IntN(3) {
		w.addNode()
	}
	return w
}

func (w *world) exec(query string, args ...any) {
	_, err := w.db.Exec(query, args...)
	require.NoError(w.t, err)
}

func (w *world) openWriter(restored bool) {
	leap := w.random.Uint64N(ledger.MaxLeap)
	if restored {
		leap = w.random.Uint64N(ledger.MaxRestoredLeap)
	}
	_, err := ledger.TakeGeneration(context.Background(), w.db, leap, restored)
	require.NoError(w.t, err)
	w.load()
}

func (w *world) load() {
	old := w.ledger
	var err error
	w.ledger, err = ledger.Load(context.Background(), w.db)
	require.NoError(w.t, err)
	if old != nil && old.Generation == w.ledger.Generation {
		w.ledger.Succeed(old)
	}
}

// commit writes what changed, or with a fault does not; then, or when only the answer
// was lost, the ledger is read again. It reports whether the outcome is known.
func (w *world) commit() bool {
	fault := !w.calm && w.random.IntN(60) == 0
	lost := fault && w.random.IntN(2) == 0
	tx, err := w.db.Begin()
	require.NoError(w.t, err)
	require.NoError(w.t, w.ledger.Flush(context.Background(), tx, w.now, nil))
	if lost {
		require.NoError(w.t, tx.Rollback())
	} else {
		require.NoError(w.t, tx.Commit())
	}
	if fault {
		w.note("commit of unknown outcome (lost %v)", lost)
		w.load()
	}
	return !fault
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) addNode() {
	w.names++
	n := &node{name: fmt.Sprintf("node-%d", w.names)}
	w.exec(`INSERT INTO node (name, token_hash, created_at) VALUES (?, x'00', 0)`, n.name)
	require.NoError(w.t, w.ledger.AddEdge(n.name))
	for !w.commit() {
		if w.ledger.Edge(n.name) == nil {
			w.ledger.AddEdge(n.name)
		}
	}
	w.nodes = append(w.nodes, n)
	w.boot(n, &disk{kept: map[[2]uint64]*syncproto.Batch{}})
}

// boot starts an edge's process on a disk.
func (w *world) boot(n *node, d *disk) {
	n.disk = d
	n.book = lease.New(d)
	for _, r := range d.records {
		require.NoError(w.t, n.book.Replay(r))
	}
	require.NoError(w.t, n.book.Check(), "after replay")
	n.book.Boot(w.random.Uint64())
	d.durable = len(d.records)
	for _, b := range n.book.TakeReplayed() {
		d.kept[[2]uint64{b.Epoch, b.Batch.Seq}] = b.Batch
	}
}

// serve asks an edge's meter, as a request would.
func (w *world) serve(n *node) {
	account := 1 + w.random.Int64N(accounts)
	w.ids++
	r := charge.Request{
		ID: fmt.Sprintf("r-%d", w.ids), Account: account, Key: account*10 + w.random.Int64N(2), PerMinute: 1 << 30,
		Endpoint: charge.Companies, Outcome: charge.Found,
	}
	if w.random.IntN(5) == 0 {
		r.Outcome = charge.NotFound
	}
	a := n.book.Charge(w.now, &r, false)
	if a.Wait {
		w.exchange(n)
		a = n.book.Charge(w.now, &r, true)
	}
	if a.Verdict.Code != "" {
		if a.Verdict.Code == charge.InsufficientCredits && w.random.IntN(4) == 0 {
			w.checkDry(account)
		}
		return
	}
	again := n.book.Charge(w.now, &r, false)
	require.Equal(w.t, a.Verdict, again.Verdict, "asked again")
	voided := w.random.IntN(12) == 0
	if voided {
		_, err := n.book.Void(w.now, r.ID)
		require.NoError(w.t, err)
		n.disk.durable = len(n.disk.records)
	}
	if r.Outcome == charge.Found && !voided {
		w.served[account]++
	}
}

// checkDry holds that a 402 is not said while credits lie at the writer, unless they
// came there since the edge last heard.
func (w *world) checkDry(account int64) {
	require.GreaterOrEqual(w.t, w.ledger.Account(account).Credits().Left(), int64(0))
}

// exchange is one message and its reply, with what can happen to both.
func (w *world) exchange(n *node) {
	var m syncproto.Message
	if n.book.Greeting() {
		m.Hello = n.book.Hello(w.now)
	} else {
		m.Sync = n.book.Sync(w.now)
	}
	n.disk.durable = len(n.disk.records)
	encoded := m.Encode()
	m, err := syncproto.DecodeMessage(encoded)
	require.NoError(w.t, err)
	if len(n.old) < 20 {
		n.old = append(n.old, m)
	} else {
		n.old[w.random.IntN(20)] = m
	}
	if w.fault(12) {
		n.book.Lost()
		return
	}
	reply := w.deliver(n, m)
	if w.fault(10) { // once more, as a network may
		w.deliver(n, m)
	}
	if reply == nil || w.fault(12) {
		n.book.Lost()
		return
	}
	w.apply(n, reply, m.Sync != nil)
}

func (w *world) fault(oneIn int) bool { return !w.calm && w.random.IntN(oneIn) == 0 }

// deliver has the writer answer a message; nil when its commit's outcome is unknown.
func (w *world) deliver(n *node, m syncproto.Message) *syncproto.Reply {
	e := w.ledger.Edge(n.name)
	if e == nil {
		return nil
	}
	var reply *syncproto.Reply
	if m.Hello != nil {
		reply = w.ledger.Hello(w.now, e, m.Hello)
	} else {
		reply = w.ledger.Sync(w.now, e, m.Sync)
	}
	require.NoError(w.t, w.ledger.Check())
	if w.ledger.Changed() && !w.commit() {
		return nil
	}
	decoded, err := syncproto.DecodeReply(reply.Encode())
	require.NoError(w.t, err)
	return decoded
}

func (w *world) apply(n *node, r *syncproto.Reply, ofSync bool) {
	var before [accounts + 1]int64
	for id := range before {
		before[id] = n.book.Unreported(int64(id))
	}
	applied := n.book.Apply(w.now, r, ofSync)
	if applied.Abandoned || applied.Forked {
		for id := range before {
			w.missing[id] += max(before[id]-n.book.Unreported(int64(id)), 0)
		}
	}
	if applied.Forked {
		w.note("%s forked", n.name)
	}
	if b := applied.Batch; b != nil {
		n.disk.kept[[2]uint64{b.Epoch, b.Batch.Seq}] = b.Batch
	}
	require.NoError(w.t, n.book.Check(), "after %+v", r)
}

// forget counts the charges that a loss of an edge's disk may take along.
func (w *world) forget(b *lease.EdgeState) {
	if w.wentBack {
		w.missing = w.served // batches that it would have sent again may be among them
		return
	}
	for id := int64(1); id <= accounts; id++ {
		w.missing[id] += max(b.Unreported(id), 0)
	}
}

func (w *world) step() {
	w.now += w.random.Int64N(400)
	n := w.nodes[w.random.IntN(len(w.nodes))]
	switch action := w.random.IntN(100); {
	case action < 60:
		w.serve(n)
	case action < 84:
		w.exchange(n)
	case action < 86 && len(n.old) > 0: // a message from the past
		w.deliver(n, n.old[w.random.IntN(len(n.old))])
	case action < 88:
		w.note("%s crashes", n.name)
		w.boot(n, n.disk)
	case action < 89:
		w.powerCut(n)
	case action < 90:
		w.note("writer restarts")
		w.openWriter(false)
	case action < 92:
		w.operator()
	case action < 93:
		w.now += w.random.Int64N(40 * 60 * 60 * 1000)
	case action < 94:
		n.snapshot = n.disk.copy()
	case action < 95:
		w.backup()
	default:
		w.rare(n)
	}
}

// powerCut loses records that were not durable.
func (w *world) powerCut(n *node) {
	w.note("%s loses power", n.name)
	w.forget(n.book)
	d := n.disk
	d.records = d.records[:d.durable+w.random.IntN(len(d.records)-d.durable+1)]
	w.boot(n, d)
}

func (w *world) operator() {
	id := 1 + w.random.Int64N(accounts)
	switch w.random.IntN(4) {
	case 0:
		w.ledger.ChangeCredits(w.now, id, 1+w.random.Int64N(100), ledger.EntryBought, "top-up")
	case 1:
		w.ledger.ChangeCredits(w.now, id, -1-w.random.Int64N(60), ledger.EntryBought, "")
	default:
		plan := []string{"scale", "starter"}[w.random.IntN(2)]
		w.ledger.ChangeAccount(w.now, id, plan, w.random.IntN(3) == 0)
	}
	require.NoError(w.t, w.ledger.Check())
	w.commit()
}

// rare does what happens to an edge once in its life.
func (w *world) rare(n *node) {
	switch w.random.IntN(24) {
	case 4:
		w.restoreLedger()
	case 0:
		w.note("%s is wiped", n.name)
		w.forget(n.book)
		w.boot(n, &disk{kept: map[[2]uint64]*syncproto.Batch{}})
		n.snapshot = nil
	case 1:
		if n.snapshot != nil {
			w.note("%s is restored from a snapshot", n.name)
			w.forget(n.book)
			w.boot(n, n.snapshot.copy())
			w.forget(n.book)
		}
	case 2:
		w.note("%s: old epochs are retired", n.name)
		require.NoError(w.t, w.ledger.Retire(w.now, n.name, true))
		w.commit()
	case 3:
		if !n.retired && len(w.nodes) < 8 {
			w.note("%s is retired", n.name)
			n.retired = true
			require.NoError(w.t, w.ledger.Retire(w.now, n.name, false))
			if !w.commit() {
				n.retired = w.ledger.Edge(n.name).Retired
			}
			w.addNode()
		}
	}
}

// backup copies the ledger.
func (w *world) backup() {
	if w.random.IntN(3) != 0 {
		return
	}
	w.copies++
	w.saved = fmt.Sprintf("file:/backup-%d-%p?vfs=memdb&_txlock=immediate", w.copies, w)
	// A memory database lives as long as someone has it open.
	require.NoError(w.t, w.open(w.saved).Ping())
	w.exec(`VACUUM INTO ?`, w.saved)
	w.savedEpochs = map[string]uint64{}
	for _, n := range w.nodes {
		w.savedEpochs[n.name] = n.book.Epoch()
	}
}

func (w *world) open(uri string) *sql.DB {
	db, err := driver.Open(uri)
	require.NoError(w.t, err)
	db.SetMaxOpenConns(1)
	w.t.Cleanup(func() { db.Close() })
	return db
}

// restoreLedger brings a backup of the ledger back, sometimes without saying so: then
// the edges' own sums tell. Nodes that were added since are added again by the operator.
func (w *world) restoreLedger() {
	if w.saved == "" {
		return
	}
	said := w.random.IntN(2) == 0
	w.note("the ledger is restored from a backup (said so: %v)", said)
	w.db, w.saved = w.open(w.saved), ""
	w.ledger, w.wentBack = nil, true
	w.openWriter(said)
	for _, n := range w.nodes {
		if w.ledger.Edge(n.name) == nil {
			w.exec(`INSERT INTO node (name, token_hash, created_at) VALUES (?, x'00', 0)`, n.name)
			require.NoError(w.t, w.ledger.AddEdge(n.name))
		}
		n.retired = w.ledger.Edge(n.name).Retired
		if n.book.Epoch() != w.savedEpochs[n.name] {
			// Batches of an epoch that ended since are not sent again.
			w.missing = w.served
		}
	}
	w.commit()
}

// heal ends all faults and lets everything settle.
func (w *world) heal() {
	w.calm = true
	for id := int64(1); id <= accounts; id++ {
		require.NoError(w.t, w.ledger.ChangeAccount(w.now, id, "scale", false))
	}
	w.commit()
	for range 300 { // enough to send every batch again, one in each message
		w.now += 1000
		for _, n := range w.nodes {
			w.exchange(n)
		}
	}
}

func (w *world) settled() {
	require.False(w.t, w.ledger.Restoring, "waiting for %v", w.ledger.Awaited())
	for id := int64(1); id <= accounts; id++ {
		p := w.ledger.Account(id).Credits()
		for _, n := range w.nodes {
			require.Zero(w.t, n.book.Unreported(id), "%s reported everything of account %d", n.name, id)
		}
		require.LessOrEqual(w.t, p.Spent, w.served[id], "account %d pays for what it got", id)
		require.GreaterOrEqual(w.t, p.Spent, w.served[id]-w.missing[id]-w.beyond(id), "account %d pays for all it got", id)
		w.checkJournal(id)
	}
}

// beyond is how many charges were made beyond a lease: by an older copy of a state
// directory, or by a node that was retired before it could declare its leases.
func (w *world) beyond(id int64) int64 {
	var n int64
	const query = `SELECT coalesce(sum(beyond), 0) FROM lease WHERE kind = 1 AND subject = ?`
	require.NoError(w.t, w.db.QueryRow(query, id).Scan(&n))
	if n > 0 {
		require.True(w.t, slices.ContainsFunc(w.trace, func(s string) bool { return strings.Contains(s, "restored from") }))
	}
	return n
}

// checkJournal holds that the credit entries sum to the balance.
func (w *world) checkJournal(id int64) {
	var sum, balance int64
	require.NoError(w.t, w.db.QueryRow(`SELECT coalesce(sum(amount), 0) FROM credit_entry WHERE account = ?`, id).Scan(&sum))
	const query = `SELECT bought + compensated - spent - lost + spent - posted FROM account WHERE id = ?`
	require.NoError(w.t, w.db.QueryRow(query, id).Scan(&balance))
	require.Equal(w.t, balance, sum, "the entries of account %d", id)
}

func TestNothingIsSpentTwiceUnderFaults(t *testing.T) {
	run := func(seed uint64) bool {
		return t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			defer func() {
				if t.Failed() {
					t.Log(w.trace)
					t.Logf("again: go test ./replicate/metering/ledger -run TestNothingIsSpentTwiceUnderFaults -seed %d", seed)
				}
			}()
			for range 600 {
				w.step()
			}
			w.heal()
			w.settled()
		})
	}
	if *onlySeed != 0 {
		run(*onlySeed)
		return
	}
	for seed := range *seeds {
		if !run(uint64(seed + 1)) {
			return
		}
	}
}
