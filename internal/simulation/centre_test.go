package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const operatorToken = "operator-token-of-the-simulation"

var errNetwork = errors.New("the message was lost")

// centre has the writer's databases and the writers that run on them.
type centre struct {
	sim            *sim
	ledger, access *storage
	trouble        accessTrouble
	current        *writerProcess // nil while none runs
	former         *writerProcess // does not know yet that another writer took over
	skew           atomic.Int64
	skewAtStart    int64 // of the newest writer
	setBack        int64 // by how much the clock went back since a second writer started
	backup         *backup
	// oldest is the time of the first backup that was restored: edges keep the batches that
	// they resent since then no longer than others.
	oldest int64
}

// writerProcess is one run of a writer.
type writerProcess struct {
	session *session
	writer  *writer.Writer
	client  *writer.Client
	stop    func()
}

// backup is a copy of the ledger.
type backup struct {
	content []byte
	at      int64
	usage   counts
	// paid and compensated are by account, disturbed is of the model.
	paid, compensated counts
	disturbed         int
	restoring         bool // it waited for its edges itself
}

func newCentre(s *sim) *centre {
	made, err := templates()
	require.NoError(s.t, err)
	c := &centre{sim: s, ledger: takeStorage(schema.Ledger, made[schema.Ledger]), access: takeStorage(schema.Access, made[schema.Access])}
	c.start(false)
	return c
}

func (c *centre) close() {
	c.end(&c.former)
	c.end(&c.current)
	c.ledger.close()
	c.access.close()
}

func (c *centre) now() time.Time {
	c.sim.pass()
	return time.UnixMilli(c.sim.clock.Load() + c.skew.Load())
}

// steadyNow is what the clock would show if it had not been set since the last start of a writer.
func (c *centre) steadyNow() int64 { return c.sim.clock.Load() + c.skewAtStart }

// setClock sets how far the writer's clock is off.
func (c *centre) setClock(skew int64) {
	c.setBack += max(c.skew.Load()-skew, 0)
	c.skew.Store(skew)
}

// start starts a writer, which a fault may end at once.
func (c *centre) start(restored bool) {
	random := rand.New(rand.NewPCG(c.sim.random.Uint64(), 1))
	h := &session{sim: c.sim, random: random}
	if c.sim.faulty(6) {
		h.crashIn = 1 + c.sim.random.IntN(40)
	}
	c.sim.noteWritersClock(c)
	c.skewAtStart = c.skew.Load()
	ledger, access := c.ledger.open(h), c.access.open(&session{sim: c.sim, random: rand.New(rand.NewPCG(c.sim.random.Uint64(), 2)), trouble: &c.trouble})
	opened, err := writer.Open(context.Background(), writer.Config{
		Ledger: ledger, Access: access, OperatorToken: operatorToken, Restored: restored, TakeOver: true,
		Now: c.now, Elapsed: c.sim.elapsed,
		Random: c.sim.fillFrom(rand.New(rand.NewPCG(c.sim.random.Uint64(), 3))),
	})
	if err != nil {
		require.False(c.sim.t, c.sim.calm, "the writer does not start: %v", err)
		ledger.Close()
		access.Close()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); opened.Run(ctx) }()
	c.sim.pass()
	time.Sleep(time.Duration(1 + c.sim.random.Int64N(1e6))) // its seconds begin at another time than those of others
	c.sim.pass()
	c.current = &writerProcess{
		session: h, writer: opened,
		client: writer.NewClient("http://writer", operatorToken, &http.Client{Transport: &operatorsNetwork{c.sim, opened.Handler(), h}}),
		stop: func() {
			cancel()
			<-ended
			ledger.Close()
			access.Close()
		},
	}
}

// end ends a writer's process.
func (c *centre) end(w **writerProcess) {
	if *w != nil {
		(*w).session.dead = true
		(*w).stop()
		*w = nil
	}
}

// up returns a writer that can be used, nil when there is none now.
func (c *centre) up() *writerProcess {
	if c.former != nil && c.sim.random.IntN(3) == 0 {
		return c.former
	}
	if c.current != nil && c.current.session.dead {
		c.end(&c.current)
	}
	if c.current == nil && (c.sim.calm || c.sim.random.IntN(6) == 0) {
		c.start(false)
	}
	return c.current
}

// deliver sends a message to the writer and returns the reply.
func (c *centre) deliver(token string, message []byte) ([]byte, error) {
	w := c.up()
	if w == nil {
		return nil, errNetwork
	}
	status, answer := c.post(w, token, message)
	c.checkProcess(w)
	switch status {
	case http.StatusOK:
		_, err := syncproto.DecodeReply(answer)
		c.sim.must(err, "read the writer's reply")
		return answer, nil
	case http.StatusForbidden:
		c.sim.fail("an edge is fenced: %s", answer)
	case http.StatusBadRequest:
		c.sim.fail("an edge's message is refused: %s", answer)
	}
	c.sim.detail("the writer answers %d %s", status, answer)
	return nil, errNetwork
}

// checkProcess cleans up after a writer that crashed, and checks the guarantees.
func (c *centre) checkProcess(w *writerProcess) {
	if w.session.dead && w == c.current {
		c.end(&c.current)
	}
	c.sim.check()
}

// takeOver starts a second writer while the first still runs.
func (c *centre) takeOver() {
	if hangs, _, _ := c.trouble.troubled(); hangs || c.current == nil || c.former != nil {
		return
	}
	before := c.current
	c.current = nil
	if c.start(false); c.current == nil { // it may have taken the ledger and died
		c.end(&before)
		return
	}
	c.sim.count(secondWriter)
	c.former, c.setBack = before, 0
}

// intrude starts a second writer by mistake, which is not told to take the ledger. It ends, and the first
// goes on.
func (c *centre) intrude() {
	w := c.current
	if hangs, _, _ := c.trouble.troubled(); hangs || w == nil || w.session.dead || c.former != nil {
		return
	}
	s := c.sim
	h := &session{sim: s, random: rand.New(rand.NewPCG(s.random.Uint64(), 1))}
	ledger, access := c.ledger.open(h), c.access.open(&session{sim: s, random: h.random, trouble: &c.trouble})
	failed, begun := w.session.failed, time.Now()
	_, err := writer.Open(context.Background(), writer.Config{
		Ledger: ledger, Access: access, OperatorToken: operatorToken, Now: c.now, Random: s.fillFrom(h.random),
	})
	s.settleTime(begun)
	ledger.Close()
	access.Close()
	if w.session.disturbed(failed, begun) || h.failed > 0 { // the first may have been silent
		c.end(&c.current)
		return
	}
	s.count(writerIntruded)
	if !errors.Is(err, writer.ErrHeld) {
		s.fail("a second writer, started by mistake, does not leave the ledger to the first: %v", err)
	}
	c.checkProcess(w)
}

// restart ends the writer between two calls.
func (c *centre) restart() {
	if c.current != nil {
		c.sim.count(writerRestart)
		c.end(&c.current)
		c.start(false)
	}
}

// save makes a backup of the ledger.
func (c *centre) save() {
	content, err := c.ledger.content()
	require.NoError(c.sim.t, err)
	c.backup = &backup{
		content: content, at: c.sim.clock.Load(), usage: c.sim.readUsage(), disturbed: c.sim.disturbed,
		restoring: c.sim.query(selectWriter)[0][0] == 1,
		paid:      counts{}, compensated: counts{},
	}
	for id, b := range c.sim.readBalances() {
		c.backup.paid[id], c.backup.compensated[id] = b.bought+b.compensated, b.compensated
	}
}

// mayCover is by account how much the ledger may have compensated after the backup was restored:
// what it had compensated, and what operators gave since. It is nil when edges can't show
// everything that the backup lacks, and when it lacks what a backup before it lacked. Edges may still
// hold what forged replies granted.
func (c *centre) mayCover(announced bool) counts {
	s, b := c.sim, c.backup
	if s.rogue != nil || !announced || s.copied || s.restoredSilently || b.disturbed != s.disturbed || b.restoring || s.awaitsEdges {
		return nil
	}
	most := counts{}
	for id, now := range s.readBalances() {
		most[id] = b.compensated[id] + max(now.bought+now.compensated-b.paid[id], 0) + s.claimed[id]
	}
	return most
}

// maxBackupAge is how old a backup may be: edges keep their batches for seven days, by
// clocks that are wrong by up to half a minute.
const maxBackupAge = 6 * dayMillis

// restore restores the backup, or makes one. When the writer is not told, it learns it from
// the edges.
func (c *centre) restore() {
	s := c.sim
	if c.backup == nil {
		c.save()
		return
	}
	if c.oldest == 0 {
		c.oldest = c.backup.at
	}
	if s.clock.Load()-c.oldest > maxBackupAge {
		return
	}
	s.check()
	announced := s.gentle || s.random.IntN(2) == 0
	if announced {
		s.count(ledgerRestored)
	} else {
		s.count(ledgerRestoredSilently)
		s.dropAside()
	}
	s.note("the ledger of %d is restored, announced %v", c.backup.at, announced)
	c.addAccount()
	s.mayCover, s.coverDisturbed = c.mayCover(announced), s.disturbed
	c.end(&c.former)
	c.end(&c.current)
	c.ledger.close()
	c.ledger = takeStorage(schema.Ledger, c.backup.content)
	s.awaitsEdges = announced
	s.ledgerWentBack(c.backup.usage)
	c.backup = nil
	for tries := 0; c.current == nil; tries++ {
		require.Less(s.t, tries, 100, "no writer starts on the restored ledger")
		c.start(announced)
	}
	s.readdNodes()
	if announced {
		c.addAccount()
	}
	s.check()
}

// addAccount has an operator add an account. Its id must not be one that another account had, also in a
// ledger that was lost: edges may still report usage of it. Only a ledger that was restored without a
// word, and has not heard an edge since, can't know.
func (c *centre) addAccount() {
	s := c.sim
	c.operate(func(ctx context.Context, o *writer.Client) error {
		a, err := o.AddAccount(ctx, "another account", "", "scale")
		if err == nil && s.accountIDs[a.ID] && !s.restoredSilently {
			s.fail("the id %d of an account was given before", a.ID)
		}
		s.accountIDs[a.ID] = true
		return err
	})
}
