package simulation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/writer"
)

const (
	accounts   = 4
	dayMillis  = 24 * 60 * 60 * 1000
	epochStart = 1_790_000_000_000
	maxDepth   = 3 // of messages under way at once
)

// world is one run.
type world struct {
	model
	summary
	t      *testing.T
	random *rand.Rand
	now    int64 // Unix milliseconds
	wild   bool  // disks may be lost, and the ledger may go back
	file   bool  // the ledger is a file, not a server's
	calm   bool  // nothing goes wrong any more
	depth  int
	// changed says that a transaction was committed since the last check.
	changed bool
	ids     int
	edges   []*edge
	centre  *centre
	trace   []string
	traced  bool
}

func newWorld(t *testing.T, seed uint64, traced bool) *world {
	w := &world{
		model: newModel(), t: t, traced: traced, random: rand.New(rand.NewPCG(seed, 7)), now: epochStart, wild: seed%3 != 0, file: seed%2 == 0, calm: true,
	}
	w.seeds = 1
	w.now += w.random.Int64N(40 * dayMillis)
	w.centre = newCentre(w)
	for id := int64(1); id <= accounts; id++ {
		amount := w.amount(240)
		require.True(t, w.centre.operate(func(ctx context.Context, o *writer.Client) error {
			_, err := o.AddAccount(ctx, fmt.Sprintf("account %d", id), "", "scale")
			return err
		}))
		w.bought[id] = amount
		require.True(t, w.centre.operate(func(ctx context.Context, o *writer.Client) error {
			_, err := o.ChangeCredits(ctx, id, writer.CreditChange{Amount: amount})
			return err
		}))
	}
	for range []int{1, 2, 2, 3, 3}[w.random.IntN(5)] {
		w.addEdge()
	}
	w.calm = false
	return w
}

// amount is how many credits are bought at once: so few that they are spent soon, or many.
func (w *world) amount(most int64) int64 {
	if w.random.IntN(3) == 0 {
		most = 5
	}
	return 1 + w.random.Int64N(most)
}

func (w *world) close() {
	for _, e := range w.edges {
		e.kill()
	}
	w.centre.close()
}

func (w *world) count(f fault) { w.faults[f]++ }

// faulty decides whether something goes wrong, once in so many times.
func (w *world) faulty(oneIn int) bool { return !w.calm && w.random.IntN(oneIn) == 0 }

// fill is the randomness of the parts under test.
func (w *world) fill(p []byte) {
	var b [8]byte
	for len(p) > 0 {
		binary.LittleEndian.PutUint64(b[:], w.random.Uint64())
		p = p[copy(p, b[:]):]
	}
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%6d %d ", w.steps, w.now)+fmt.Sprintf(format, args...))
}

// detail notes what only the trace of one seed tells.
func (w *world) detail(format string, args ...any) {
	if w.traced {
		w.note(format, args...)
	}
}

func (w *world) remember(kept *[][]byte, message []byte) {
	const most = 8
	message = append([]byte(nil), message...)
	if len(*kept) < most {
		*kept = append(*kept, message)
	} else {
		(*kept)[w.random.IntN(most)] = message
	}
}

// mayWait lets the world go on while a message is under way.
func (w *world) mayWait() {
	if w.depth >= maxDepth || !w.faulty(5) {
		return
	}
	w.count(delayed)
	w.depth++
	for range 1 + w.random.IntN(5) {
		w.step()
	}
	w.depth--
}

// addEdge has an operator add a node, and starts it. It stands aside when the writer
// can't be reached.
func (w *world) addEdge() {
	e := &edge{world: w, name: fmt.Sprintf("edge-%d", len(w.edges)+1), number: int64(len(w.edges) + 1), disk: newDisk(), unsynced: counts{}}
	if !w.addNode(e) {
		return
	}
	w.edges = append(w.edges, e)
	e.boot()
}

func (w *world) addNode(e *edge) bool {
	return w.centre.operate(func(ctx context.Context, o *writer.Client) error {
		n, err := o.AddNode(ctx, e.name)
		if errors.Is(err, writer.ErrTaken) { // the answer of an earlier attempt was lost
			n, err = o.NewNodeToken(ctx, e.name)
		}
		if err == nil {
			e.token = n.Token
		}
		return err
	})
}

// readdNodes has the operator look after the nodes when the ledger came back from a
// backup: each gets a new token, since the ledger may know it by an older one or not at
// all, and those that were retired since are retired again.
func (w *world) readdNodes() {
	calm := w.calm
	w.calm = true // an operator tries until it is done
	defer func() { w.calm = calm }()
	for _, e := range w.edges {
		require.True(w.t, w.addNode(e))
		if e.retired {
			require.True(w.t, w.retire(e, false))
		}
	}
}

func (w *world) retire(e *edge, oldEpochs bool) bool {
	return w.centre.operate(func(ctx context.Context, o *writer.Client) error {
		_, err := o.RetireNode(ctx, e.name, oldEpochs)
		return err
	})
}

// diskFailed reports whether an error is one that the simulated disks make.
func (w *world) diskFailed(err error) bool {
	for _, of := range []error{errDead, errDiskFull, errSync} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// run is a whole run: trouble, then rest, in which everything must settle.
func (w *world) run(steps int) {
	for range steps {
		w.step()
	}
	w.heal()
	w.settled()
}

// heal ends all faults and lets everything settle.
func (w *world) heal() {
	w.calm = true
	w.note("heals")
	w.centre.end(&w.centre.former)
	w.centre.skew = 0
	w.unsuspend()
	for _, r := range w.query(`SELECT CAST(substr(name, 6) AS INTEGER), retired FROM node`) {
		if r[0] <= int64(len(w.edges)) { // the answer to an operator may have been lost
			w.edges[r[0]-1].retired = r[1] == 1
		}
	}
	if !slices.ContainsFunc(w.edges, func(e *edge) bool { return !e.retired }) {
		w.addEdge()
	}
	for _, e := range w.edges {
		e.setClock(0)
		e.cutUntil, e.fullUntil, e.syncFails = 0, 0, false
	}
	w.quiet(40)
	for _, e := range w.edges {
		if e.aside != nil {
			w.swap(e)
		}
	}
	w.quiet(40)
	if !w.wild { // else a disk may be away with what its epoch holds
		for _, r := range w.query(selectStale) {
			w.fail("edge-%d still holds %d credits of epoch %d, which ended", r[0], r[2], r[1])
		}
	}
	for _, e := range w.edges {
		require.True(w.t, w.retire(e, true))
	}
	w.endLeases()
	w.quiet(5)
}

// endLeases passes the end of leases that one edge still uses: what it holds of them can
// be spent again once it spoke to the writer.
func (w *world) endLeases() {
	e := w.edges[w.random.IntN(len(w.edges))]
	if w.random.IntN(2) == 0 || e.retired {
		return
	}
	for range 4 { // a lease grows with each
		for id := int64(1); id <= accounts; id++ {
			w.spendAt(e, id)
		}
		w.quiet(1)
	}
	w.now += dayMillis
	for id := int64(1); id <= accounts; id++ {
		code := w.spendAt(e, id)
		for n := 0; n < 4 && code == charge.MeteringUnavailable; n++ {
			w.quiet(1)
			code = w.spendAt(e, id)
		}
		require.NotEqual(w.t, charge.MeteringUnavailable, code, "%s, account %d, after its lease ended", e.name, id)
	}
}

func (w *world) unsuspend() {
	no, plan := false, "scale"
	for id := int64(1); id <= accounts; id++ {
		require.True(w.t, w.centre.operate(func(ctx context.Context, o *writer.Client) error {
			_, err := o.ChangeAccount(ctx, id, writer.AccountChange{Suspended: &no, Plan: &plan})
			return err
		}))
	}
}

// quiet lets every edge speak to the writer so many times.
func (w *world) quiet(rounds int) {
	for range rounds {
		w.now += 1000
		for _, e := range w.edges {
			if e.process == nil {
				e.boot()
			}
			e.exchange()
			e.flush()
		}
	}
}

// tell prints what happened, and the credit journal.
func (w *world) tell() {
	w.centre.ledger.ask(`SELECT account, at, kind, amount, note FROM credit_entry ORDER BY id`, func(row *sqlite3.Stmt) {
		w.trace = append(w.trace, fmt.Sprintf("entry %d: account %d, %s %d, %s", row.ColumnInt64(1), row.ColumnInt64(0),
			row.ColumnText(2), row.ColumnInt64(3), row.ColumnText(4)))
	})
	w.t.Logf("%s", strings.Join(w.trace, "\n"))
}
