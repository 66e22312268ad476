package simulation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const operatorToken = "operator-token-of-the-simulation"

var errNetwork = errors.New("the network lost it")

// centre is the writer's place: its databases, and the writers that run on them.
type centre struct {
	world          *world
	ledger, access *storage
	current        *writing // nil while none runs
	former         *writing // a writer that does not know yet that another took over
	skew           int64
	backup         *backup
	// oldest is the time of the first backup that came back: what edges sent again since
	// they do not keep for longer.
	oldest int64
}

// writing is one writer's process.
type writing struct {
	hands  *hands
	writer *writer.Writer
	client *writer.Client
	way    http.RoundTripper
	stop   func()
}

// backup is a copy of the ledger.
type backup struct {
	content []byte
	at      int64
	usage   counts
}

func newCentre(w *world) *centre {
	made, err := templates()
	require.NoError(w.t, err)
	c := &centre{world: w, ledger: takeStorage(schema.Ledger, made[schema.Ledger]), access: takeStorage(schema.Access, made[schema.Access])}
	c.start(false)
	return c
}

func (c *centre) close() {
	c.end(&c.former)
	c.end(&c.current)
	c.ledger.close()
	c.access.close()
}

func (c *centre) now() time.Time { return time.UnixMilli(c.world.now + c.skew) }

// start starts a writer. A fault may end it at once.
func (c *centre) start(restored bool) {
	h := &hands{world: c.world}
	if c.world.faulty(6) {
		h.crashIn = 1 + c.world.random.IntN(40)
	}
	ledger, access := c.ledger.open(h), c.access.open(h)
	opened, err := writer.Open(context.Background(), writer.Config{
		Ledger: ledger, Access: access, OperatorToken: operatorToken, Restored: restored,
		Now: c.now, Random: c.world.fill,
	})
	if err != nil {
		require.False(c.world.t, c.world.calm, "the writer does not start: %v", err)
		ledger.Close()
		access.Close()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); opened.Run(ctx) }()
	way := writer.InProcess(opened.Handler())
	c.current = &writing{
		hands: h, writer: opened, way: way,
		client: writer.NewClient("http://writer", operatorToken, &http.Client{Transport: way}),
		stop: func() {
			cancel()
			<-ended
			ledger.Close()
			access.Close()
		},
	}
}

// end ends a writer's process.
func (c *centre) end(w **writing) {
	if *w != nil {
		(*w).hands.dead = true
		(*w).stop()
		*w = nil
	}
}

// up brings a writer that can be used, nil when there is none now.
func (c *centre) up() *writing {
	if c.former != nil && c.world.random.IntN(3) == 0 {
		return c.former
	}
	if c.current != nil && c.current.hands.dead {
		c.end(&c.current)
	}
	if c.current == nil && (c.world.calm || c.world.random.IntN(6) == 0) {
		c.start(false)
	}
	return c.current
}

// deliver brings a message to the writer and its answer back.
func (c *centre) deliver(token string, message []byte) ([]byte, error) {
	w := c.up()
	if w == nil {
		return nil, errNetwork
	}
	request, err := http.NewRequest(http.MethodPost, "http://writer"+writer.SyncPath, bytes.NewReader(message))
	require.NoError(c.world.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := w.way.RoundTrip(request)
	require.NoError(c.world.t, err)
	synctest.Wait()
	c.settleProcess(w)
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(response.Body)
		c.world.detail("the writer answers %d %s", response.StatusCode, said)
		return nil, errNetwork
	}
	answer, err := io.ReadAll(response.Body)
	require.NoError(c.world.t, err)
	_, err = syncproto.DecodeReply(answer)
	require.NoError(c.world.t, err, "the writer's reply")
	return answer, nil
}

// settleProcess buries a writer that ended in the middle of what it did.
func (c *centre) settleProcess(w *writing) {
	if w.hands.dead && w == c.current {
		c.end(&c.current)
	}
	c.world.check()
}

// operate does what an operator does, and reports whether it is known to be done. What
// an operator asks is refused by a writer that was superseded, and when its database
// fails; by nothing else.
func (c *centre) operate(act func(ctx context.Context, o *writer.Client) error) bool {
	w := c.up()
	if w == nil {
		return false
	}
	before := w.hands.failed
	err := act(context.Background(), w.client)
	synctest.Wait()
	if w == c.current && w.hands.failed == before {
		require.NoError(c.world.t, err, "an operator is refused")
	}
	c.settleProcess(w)
	return err == nil
}

// takeOver starts a second writer while the first goes on.
func (c *centre) takeOver() {
	if c.current == nil || c.former != nil {
		return
	}
	before := c.current
	c.current = nil
	if c.start(false); c.current == nil { // it may have taken the ledger and died
		c.end(&before)
		return
	}
	c.world.count(secondWriter)
	c.former = before
}

// restart ends the writer at a quiet moment.
func (c *centre) restart() {
	if c.current != nil {
		c.world.count(writerRestart)
		c.end(&c.current)
		c.start(false)
	}
}

// save makes a backup of the ledger.
func (c *centre) save() {
	content, err := c.ledger.content()
	require.NoError(c.world.t, err)
	c.backup = &backup{content: content, at: c.world.now, usage: c.world.readUsage()}
}

// maxBackupAge is how old a backup may be: edges keep their batches for seven days by
// clocks that are wrong by half a minute.
const maxBackupAge = 6 * dayMillis

// restore brings the backup back, or makes one. When it is not said, the edges tell.
func (c *centre) restore() {
	w := c.world
	if c.backup == nil {
		c.save()
		return
	}
	if c.oldest == 0 {
		c.oldest = c.backup.at
	}
	if w.now-c.oldest > maxBackupAge {
		return
	}
	w.check()
	said := w.random.IntN(2) == 0
	if said {
		w.count(ledgerRestored)
	} else {
		w.count(ledgerRestoredSilently)
		w.dropAside()
	}
	w.note("the ledger of %d is restored, said %v", c.backup.at, said)
	c.end(&c.former)
	c.end(&c.current)
	c.ledger.close()
	c.ledger = takeStorage(schema.Ledger, c.backup.content)
	w.awaits = said
	w.ledgerWentBack(c.backup.usage)
	c.backup = nil
	for tries := 0; c.current == nil; tries++ {
		require.Less(w.t, tries, 100, "no writer starts on the ledger that came back")
		c.start(said)
	}
	w.readdNodes()
	w.check()
}
