package simulation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/writer"
)

const (
	accounts   = 4
	dayMillis  = 24 * 60 * 60 * 1000
	epochStart = 1_790_000_000_000
	maxDepth   = 3 // messages pending at once
)

// sim is one run.
type sim struct {
	model
	summary
	t      *testing.T
	random *rand.Rand
	clock  atomic.Int64 // Unix milliseconds; writers read it in goroutines of their own
	wild   bool         // disks may be lost, and the ledger may be restored from a backup
	forges bool         // somebody answers edges in the writer's place
	gentle bool         // of these, only the ledger is restored, and announced: nothing is lost for good
	file   bool         // the ledger is a file, not on a server
	mapped bool         // journals are written through memory
	// segmentBytes is the size of the journal's segments.
	segmentBytes int64
	calm         bool // there are no faults any more
	depth        int
	turn         atomic.Int64 // see pass
	commits      int64        // to the ledger
	checked      int64        // of these, at the last check
	ids          int
	changes      []*change // that operators want, the newest
	keys         []int64   // ids of API keys, of which some are revoked
	heard        []told    // what operators were told and is not checked yet
	edges        []*edge
	centre       *centre
	rogue        *rogue // nil in most runs
	trace        []string
	traced       bool
}

func newSim(t *testing.T, seed uint64, traced bool) *sim {
	s := &sim{
		model: newModel(), t: t, traced: traced, random: rand.New(rand.NewPCG(seed, 7)), wild: seed%3 != 0, gentle: seed%6 == 1, file: seed%2 == 0, mapped: seed%4 < 2, calm: true,
	}
	s.clock.Store(epochStart)
	s.seeds, s.segmentBytes = 1, segmentBytes
	s.forges = s.wild && !s.gentle && seed/24%4 == 3
	if s.wild && seed%5 < 3 {
		s.segmentBytes = smallSegmentBytes
	}
	if seed/12%2 == 0 {
		s.rogue = &rogue{sim: s, invalid: map[*writerProcess]int{}}
	}
	s.clock.Add(s.random.Int64N(40 * dayMillis))
	s.centre = newCentre(s)
	for id := int64(1); id <= accounts; id++ {
		amount := s.amount(240)
		require.True(t, s.centre.operate(func(ctx context.Context, o *writer.Client) error {
			_, err := o.AddAccount(ctx, fmt.Sprintf("account %d", id), "", "scale")
			return err
		}))
		s.bought[id] = amount
		require.True(t, s.centre.operate(func(ctx context.Context, o *writer.Client) error {
			_, err := o.ChangeCredits(ctx, id, writer.CreditChange{Amount: amount})
			return err
		}))
	}
	for range []int{1, 2, 2, 3, 3}[s.random.IntN(5)] {
		s.addEdge()
	}
	s.limitKeys()
	s.calm = false
	return s
}

// amount is a number of credits to buy: few, so that they are soon spent, or many.
func (s *sim) amount(most int64) int64 {
	if s.gentle || s.random.IntN(3) == 0 {
		most = 5
	}
	return 1 + s.random.Int64N(most)
}

func (s *sim) close() {
	for _, e := range s.edges {
		e.kill()
	}
	s.centre.close()
}

// elapsed is the time since some moment by the clock that nobody sets.
func (s *sim) elapsed() time.Duration { return time.Duration(s.clock.Load()) * time.Millisecond }

func (s *sim) count(f fault) { s.faults[f]++ }

// faulty decides whether a fault happens, on average once in oneIn calls.
func (s *sim) faulty(oneIn int) bool { return !s.calm && s.random.IntN(oneIn) == 0 }

// fillFrom returns a function that fills p with random bytes for the code under test.
func (s *sim) fillFrom(random *rand.Rand) func(p []byte) {
	return func(p []byte) {
		s.pass()
		defer s.pass()
		var b [8]byte
		for len(p) > 0 {
			binary.LittleEndian.PutUint64(b[:], random.Uint64())
			p = p[copy(p, b[:]):]
		}
	}
}

func (s *sim) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%6d %d ", s.steps, s.clock.Load())+fmt.Sprintf(format, args...))
}

// detail notes what is only of interest in the trace of one seed.
func (s *sim) detail(format string, args ...any) {
	if s.traced {
		s.note(format, args...)
	}
}

func (s *sim) remember(kept *[][]byte, message []byte) {
	const most = 8
	message = append([]byte(nil), message...)
	if len(*kept) < most {
		*kept = append(*kept, message)
	} else {
		(*kept)[s.random.IntN(most)] = message
	}
}

// pass is called where one goroutine stops and another goes on. Only one runs at a time, since those of a
// writer wait for the simulated time; the race detector does not know that time, but this.
func (s *sim) pass() { s.turn.Add(1) }

// maybeDelay runs other steps while a message is pending.
func (s *sim) maybeDelay() {
	if s.depth >= maxDepth || !s.faulty(5) {
		return
	}
	s.count(delayed)
	s.depth++
	for range 1 + s.random.IntN(5) {
		s.step()
	}
	s.depth--
}

// addEdge has an operator add a node, and starts its edge. It does nothing when the writer
// can't be reached.
func (s *sim) addEdge() {
	e := &edge{sim: s, name: fmt.Sprintf("edge-%d", len(s.edges)+1), number: int64(len(s.edges) + 1), disk: newDisk(), unsynced: counts{}, voids: counts{}, spentAt: map[int64]uint64{}, untold: map[uint64]bool{}, told: map[toldLease]int64{}, forgedUpto: math.MaxUint64, forgedApplied: math.MaxUint64}
	if !s.addNode(e) {
		return
	}
	s.edges = append(s.edges, e)
	e.boot()
}

func (s *sim) addNode(e *edge) bool {
	return s.centre.operate(func(ctx context.Context, o *writer.Client) error {
		n, err := o.AddNode(ctx, e.name)
		if errors.Is(err, writer.ErrTaken) { // the answer of an earlier attempt was lost
			n, err = o.NewNodeToken(ctx, e.name)
		}
		if errors.Is(err, writer.ErrRetired) { // it keeps its token; the answer to the retirement may have been lost
			e.retired = true
			return nil
		}
		if err == nil {
			e.token = n.Token
		}
		return err
	})
}

// readdNodes is the operator's work after the ledger was restored from a backup: each node
// gets a new token, since the ledger may have an older one or none, and those that were
// retired since are retired again.
func (s *sim) readdNodes() {
	calm := s.calm
	s.calm = true // an operator tries until it is done
	defer func() { s.calm = calm }()
	if s.rogue != nil {
		s.rogue.retire()
	}
	for _, e := range s.edges {
		require.True(s.t, s.addNode(e))
		if e.retired {
			require.True(s.t, s.retire(e, false))
		}
	}
}

func (s *sim) retire(e *edge, oldEpochs bool) bool {
	s.disturbed++
	return s.centre.operate(func(ctx context.Context, o *writer.Client) error {
		_, err := o.RetireNode(ctx, e.name, oldEpochs)
		return err
	})
}

// diskFailed reports whether an error comes from a simulated disk.
func (s *sim) diskFailed(err error) bool {
	for _, of := range []error{errDead, errDiskFull, errSync} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// run makes the run: steps with faults, then a time without, in which everything must
// settle.
func (s *sim) run(steps int) {
	for range steps {
		s.step()
	}
	s.heal()
	s.settled()
}

// heal ends all faults and waits until everything has settled.
func (s *sim) heal() {
	s.calm = true
	s.note("heals")
	s.centre.end(&s.centre.former)
	s.centre.setClock(0)
	if s.centre.trouble.refuse(0); s.centre.trouble.hangs != nil {
		s.accessAnswers()
	}
	if s.rogue != nil {
		s.rogue.retire()
	}
	s.unsuspend()
	unstarted := false // a node whose token was lost on the way to the operator
	for _, r := range s.query(`SELECT CAST(substr(name, 6) AS INTEGER), retired FROM node WHERE name <> '` + rogueName + `'`) {
		if r[0] <= int64(len(s.edges)) { // the response to the operator may have been lost
			s.edges[r[0]-1].retired = r[1] == 1
		} else {
			unstarted = true
		}
	}
	if unstarted || !slices.ContainsFunc(s.edges, func(e *edge) bool { return !e.retired }) {
		s.addEdge() // a restored ledger waits for each node
	}
	for _, e := range s.edges {
		e.setClock(0)
		e.cutUntil, e.fullUntil, e.syncFails = 0, 0, false
	}
	s.settle()
	s.forgeOnce()
	s.restartMisled()
	s.takeBack()
	s.settle()
	for _, e := range s.edges {
		if e.aside != nil {
			s.swap(e)
		}
	}
	s.settle()
	s.takeBack() // a disk that was aside may have held what was granted falsely
	s.settle()
	if !s.wild { // else the leases of an epoch may be on a disk that was taken aside
		for _, r := range s.query(selectStale) {
			if s.edges[r[0]-1].untold[uint64(r[1])] {
				continue // until the node is retired
			}
			s.fail("edge-%d still holds %d credits of epoch %d, which ended", r[0], r[2], r[1])
		}
	}
	for _, e := range s.edges {
		require.True(s.t, s.retire(e, true))
	}
	s.endLeases()
	s.quiet(5)
}

// endLeases lets leases end that one edge still uses: it can spend them again after an
// exchange with the writer.
func (s *sim) endLeases() {
	e := s.edges[s.random.IntN(len(s.edges))]
	if s.random.IntN(2) == 0 || e.retired {
		return
	}
	for range 4 { // a lease grows with each
		for id := int64(1); id <= accounts; id++ {
			s.spendAt(e, id)
		}
		s.quiet(1)
	}
	s.clock.Add(dayMillis)
	for id := int64(1); id <= accounts; id++ {
		code := s.spendAt(e, id)
		for n := 0; n < 4 && code == charge.MeteringUnavailable; n++ {
			s.quiet(1)
			code = s.spendAt(e, id)
		}
		if s.volumeClaimed(id, code) {
			continue
		}
		require.NotEqual(s.t, charge.MeteringUnavailable, code, "%s, account %d, after its lease ended", e.name, id)
	}
}

func (s *sim) unsuspend() {
	no, plan := false, "scale"
	for id := int64(1); id <= accounts; id++ {
		require.True(s.t, s.centre.operate(func(ctx context.Context, o *writer.Client) error {
			_, err := o.ChangeAccount(ctx, id, writer.AccountChange{Suspended: &no, Plan: &plan})
			return err
		}))
	}
}

const (
	// settleRounds is for how many rounds everything may settle.
	settleRounds = 40
	// idleRounds is after how many rounds without a commit, or a forged reply that an edge has to recover from,
	// nothing more is expected to happen.
	idleRounds = 4
)

// settle has every edge exchange with the writer until nothing changes any more, and lets the rest of
// the time pass.
func (s *sim) settle() {
	idle := 0
	for n := range settleRounds {
		commits, forged := s.commits, s.faults[forgedReply]
		if s.quiet(1); s.commits != commits || s.faults[forgedReply] != forged {
			idle = 0
		} else if idle++; idle == idleRounds {
			s.clock.Add(int64(settleRounds-n) * 1000)
			break
		}
	}
	s.quiet(1)
}

// quiet has every edge exchange with the writer, so many rounds.
func (s *sim) quiet(rounds int) {
	for range rounds {
		s.clock.Add(1000)
		for _, e := range s.edges {
			if e.process == nil {
				e.boot()
			}
			e.exchange()
			e.flush()
		}
	}
}

// logTrace logs the trace and the account's credit entries.
func (s *sim) logTrace() {
	s.centre.ledger.ask(`SELECT account, at, kind, amount, note FROM credit_entry ORDER BY id`, func(row *sqlite3.Stmt) {
		s.trace = append(s.trace, fmt.Sprintf("entry %d: account %d, %s %d, %s", row.ColumnInt64(1), row.ColumnInt64(0),
			row.ColumnText(2), row.ColumnInt64(3), row.ColumnText(4)))
	})
	s.t.Logf("%s", strings.Join(s.trace, "\n"))
}
