package ledger_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ncruces/go-sqlite3/driver"
	_ "github.com/ncruces/go-sqlite3/vfs/memdb"
	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

const accounts = 4

// disk is the storage of one edge: its records, of which the last may not be durable, and the
// archive of reported batches.
type disk struct {
	records [][]byte
	durable int
	archive map[[2]uint64]*syncproto.Batch
}

func (d *disk) Append(record []byte, _ bool) {
	d.records = append(d.records, append([]byte(nil), record...))
}

func (d *disk) Batch(epoch, seq uint64) (*syncproto.Batch, error) {
	return d.archive[[2]uint64{epoch, seq}], nil
}

func (d *disk) copy() *disk {
	c := &disk{records: slices.Clone(d.records), archive: map[[2]uint64]*syncproto.Batch{}}
	for k, v := range d.archive {
		c.archive[k] = v
	}
	c.durable = len(c.records)
	return c
}

// edge is an edge under test.
type edge struct {
	name     string
	state    *lease.EdgeState
	disk     *disk
	snapshot *disk
	retired  bool
	old      []syncproto.Message // messages that may be repeated
}

// cluster is a writer with its database, edges, and what their clients saw.
type cluster struct {
	t       *testing.T
	random  *rand.Rand
	now     int64
	db      *sql.DB
	ledger  *ledger.Ledger
	edges   []*edge
	ids     int
	names   int
	served  [accounts + 1]int64 // answered 200 and not voided
	missing [accounts + 1]int64 // the most of these that may be on no disk
	trace   []string
	calm    bool // no more faults

	saved       string // URI of the backup
	savedEpochs map[string]uint64
	copies      int
	restored    bool // the ledger was restored
	commits     int
}

func newCluster(t *testing.T, seed uint64) *cluster {
	c := &cluster{t: t, random: rand.New(rand.NewPCG(seed, 1)), now: 1_790_000_000_000}
	c.db = c.open(fmt.Sprintf("file:/faults-%d-%p?vfs=memdb&_txlock=immediate", seed, c))
	require.NoError(t, schema.Migrate(t.Context(), c.db, schema.Ledger))
	c.openWriter(false)
	for id := int64(1); id <= accounts; id++ {
		c.exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (?, '', '', 'scale', 0, 0)`, id)
		require.NoError(t, c.ledger.AddAccount(id, "scale"))
		require.NoError(t, c.ledger.ChangeCredits(c.now, id, 20+c.random.Int64N(300), ledger.EntryBought, ""))
	}
	c.commit()
	for range 2 + c.random.IntN(3) {
		c.addEdge()
	}
	return c
}

func (c *cluster) exec(query string, args ...any) {
	_, err := c.db.Exec(query, args...)
	require.NoError(c.t, err)
}

func (c *cluster) openWriter(restored bool) {
	leap := c.random.Uint64N(ledger.MaxLeap)
	if restored {
		leap = c.random.Uint64N(ledger.MaxRestoredLeap)
	}
	_, err := ledger.TakeGeneration(context.Background(), c.db, leap, restored, ledger.Holder{})
	require.NoError(c.t, err)
	c.load()
}

func (c *cluster) load() {
	old := c.ledger
	var err error
	c.ledger, err = ledger.Load(context.Background(), c.db)
	require.NoError(c.t, err)
	if old != nil && old.Generation == c.ledger.Generation {
		c.ledger.CarryOver(old)
	}
}

// commit writes the changes. A fault loses the transaction or only its outcome; the ledger is
// then loaded again. It reports whether the outcome is known.
func (c *cluster) commit() bool {
	fault := !c.calm && c.random.IntN(60) == 0
	lost := fault && c.random.IntN(2) == 0
	tx, err := c.db.Begin()
	require.NoError(c.t, err)
	require.NoError(c.t, c.ledger.Flush(context.Background(), tx, c.now, nil))
	if lost {
		require.NoError(c.t, tx.Rollback())
	} else {
		require.NoError(c.t, tx.Commit())
	}
	switch {
	case fault:
		c.note("commit of unknown outcome (lost %v)", lost)
		c.load()
	case c.commits%checkedCommits == 0:
		c.checkStored()
	}
	c.commits++
	return !fault
}

// checkedCommits is how many commits there are for one of checkStored, which costs as much as several: a twentieth of
// the time.
const checkedCommits = 32

// checkStored checks that a writer which starts now would have the ledger that this one has.
func (c *cluster) checkStored() {
	loaded, err := ledger.Load(context.Background(), c.db)
	require.NoError(c.t, err)
	require.Equal(c.t, loaded.Stored(), c.ledger.Stored(), "the database, and the ledger in memory")
}

func (c *cluster) note(format string, args ...any) {
	c.trace = append(c.trace, fmt.Sprintf(format, args...))
}

func (c *cluster) addEdge() {
	c.names++
	n := &edge{name: fmt.Sprintf("node-%d", c.names)}
	c.exec(`INSERT INTO node (name, token_hash, created_at) VALUES (?, x'00', 0)`, n.name)
	require.NoError(c.t, c.ledger.AddEdge(n.name))
	for !c.commit() {
		if c.ledger.Edge(n.name) == nil {
			c.ledger.AddEdge(n.name)
		}
	}
	c.edges = append(c.edges, n)
	c.boot(n, &disk{archive: map[[2]uint64]*syncproto.Batch{}})
}

// boot starts an edge's process on a disk.
func (c *cluster) boot(n *edge, d *disk) {
	n.disk = d
	n.state = lease.New(d)
	for _, r := range d.records {
		require.NoError(c.t, n.state.Replay(r))
	}
	require.NoError(c.t, n.state.Check(), "after replay")
	n.state.Boot(c.random.Uint64())
	d.durable = len(d.records)
	for _, b := range n.state.TakeReplayed() {
		d.archive[[2]uint64{b.Epoch, b.Batch.Seq}] = b.Batch
	}
}

// exchange sends one message and its reply, with faults on both ways.
func (c *cluster) exchange(n *edge) {
	var m syncproto.Message
	if n.state.Greeting() {
		m.Hello = n.state.Hello(c.now)
	} else {
		m.Sync = n.state.Sync(c.now)
	}
	n.disk.durable = len(n.disk.records)
	encoded := m.Encode()
	m, err := syncproto.DecodeMessage(encoded)
	require.NoError(c.t, err)
	if len(n.old) < 20 {
		n.old = append(n.old, m)
	} else {
		n.old[c.random.IntN(20)] = m
	}
	if c.fault(12) {
		n.state.Lost()
		return
	}
	reply := c.deliver(n, m)
	if c.fault(10) { // a repeated message
		c.deliver(n, m)
	}
	if reply == nil || c.fault(12) {
		n.state.Lost()
		return
	}
	c.apply(n, reply, m.Sync != nil)
}

func (c *cluster) fault(oneIn int) bool { return !c.calm && c.random.IntN(oneIn) == 0 }

// deliver gives a message to the writer. The reply is nil when the outcome of the commit is
// unknown.
func (c *cluster) deliver(n *edge, m syncproto.Message) *syncproto.Reply {
	e := c.ledger.Edge(n.name)
	if e == nil {
		return nil
	}
	var reply *syncproto.Reply
	if m.Hello != nil {
		reply = c.ledger.Hello(c.now, e, m.Hello)
	} else {
		reply = c.ledger.Sync(c.now, e, m.Sync)
	}
	require.NoError(c.t, c.ledger.Check())
	if c.ledger.Changed() && !c.commit() {
		return nil
	}
	decoded, err := syncproto.DecodeReply(reply.Encode())
	require.NoError(c.t, err)
	return decoded
}

func (c *cluster) apply(n *edge, r *syncproto.Reply, ofSync bool) {
	var before [accounts + 1]int64
	for id := range before {
		before[id] = n.state.Unreported(int64(id))
	}
	applied := n.state.Apply(c.now, r, ofSync)
	if applied.Abandoned || applied.Forked {
		for id := range before {
			c.missing[id] += max(before[id]-n.state.Unreported(int64(id)), 0)
		}
	}
	if applied.Forked {
		c.note("%s forked", n.name)
	}
	if b := applied.Batch; b != nil {
		n.disk.archive[[2]uint64{b.Epoch, b.Batch.Seq}] = b.Batch
	}
	require.NoError(c.t, n.state.Check(), "after %+v", r)
}

func (c *cluster) open(uri string) *sql.DB {
	db, err := driver.Open(uri)
	require.NoError(c.t, err)
	db.SetMaxOpenConns(1)
	c.t.Cleanup(func() { db.Close() })
	return db
}
