package simulation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/replicate/metering/writer"
)

// change is a change that an operator wants. It is asked for under one Idempotency-Key, any number of times:
// after lost answers, and after crashes, takeovers and restores.
type change struct {
	number  int64
	key     string // its Idempotency-Key
	name    string // marks its effect: the note of a credit entry, or the name of an API key
	entry   bool   // its effect is a credit entry
	newKey  bool   // its effect is an API key
	allowed error  // with which it may be refused
	revokes bool   // a key, which a restored ledger may not have
	// ask asks for it, or for another change under the same key.
	ask func(ctx context.Context, o *writer.Client, other bool) (answer any, err error)

	asking   bool
	since    int64 // the earliest time by the writer's steady clock at which it was asked for
	latest   int64 // the latest time that clock has shown since
	answer   any   // the first one, nil before
	restores int   // of the ledger, at that time
}

// firstChange is the number of the first change: the notes that the ledger writes begin with no number as
// great.
const firstChange = 1_000_000_000

// mostChanges is how many changes are remembered, to be asked for again.
const mostChanges = 10

// keptMillis is for how long the writer keeps the answer to a change.
const keptMillis = 7 * dayMillis

func (s *sim) newChange() *change {
	s.ids++
	c := &change{number: firstChange + int64(s.ids)}
	c.name = strconv.FormatInt(c.number, 10)
	c.key = fmt.Sprintf("change-%020d", c.number)
	return c
}

// request asks for a change for the first time, and remembers it.
func (s *sim) request(c *change) {
	s.want(c)
	s.askFor(c)
}

// want remembers a change, to be asked for again.
func (s *sim) want(c *change) {
	c.since = s.centre.steadyNow()
	c.latest = c.since
	if len(s.changes) == mostChanges {
		s.changes = slices.Delete(s.changes, 0, 1)
	}
	s.changes = append(s.changes, c)
}

// noteWritersClock notes which time the writer's steady clock shows, before it starts anew and before it matters.
func (s *sim) noteWritersClock(of *centre) {
	now := of.steadyNow()
	for _, c := range s.changes {
		c.since, c.latest = min(c.since, now), max(c.latest, now)
	}
}

// askFor asks for a change, maybe not for the first time, and checks it against its history: an error means
// no effect, or the same key the same effect.
func (s *sim) askFor(c *change) {
	w := s.centre.up()
	if w == nil {
		return
	}
	if s.noteWritersClock(s.centre); c.latest-c.since >= keptMillis { // the writer may have dropped the answer
		s.changes = slices.DeleteFunc(s.changes, func(other *change) bool { return other == c })
		return
	}
	if c.answer != nil && c.restores == s.restores && s.random.IntN(3) == 0 {
		s.askForAnother(w, c)
		return
	}
	if c.answer != nil {
		s.count(changeRepeated)
	}
	if c.revokes && s.restored {
		c.allowed = writer.ErrNotFound
	}
	var answer any
	before := s.effects(c)
	c.asking = true
	err := s.centre.call(w, c.allowed, func(ctx context.Context, o *writer.Client) (err error) {
		answer, err = c.ask(writer.WithIdempotencyKey(ctx, c.key), o, false)
		return err
	})
	s.judge(c, before, answer, err)
}

// judge compares what an operator was told of a change with the ledger, which had it before so many times.
func (s *sim) judge(c *change, before int, answer any, err error) {
	s.detail("change %d: %v", c.number, err)
	made := s.effects(c)
	c.asking = false
	repeated := c.answer != nil && c.restores == s.restores
	switch {
	case made > 1:
		s.fail("change %d is made %d times", c.number, made)
	case err == nil && made == 0 && c.counted():
		s.fail("change %d is said to be made, and is not", c.number)
	case err == nil && repeated && !reflect.DeepEqual(answer, c.answer):
		s.fail("change %d is answered %v, before %v", c.number, answer, c.answer)
	case err != nil && !errors.Is(err, writer.ErrUncertain) && !errors.Is(err, writer.ErrFenced) && made != before:
		s.fail("change %d is said not to be made, and is: %v", c.number, err)
	case err == nil:
		c.answer, c.restores = answer, s.restores
	}
}

// askForAnother asks for another change under the key of one that was made: it is refused.
func (s *sim) askForAnother(w *writerProcess, c *change) {
	s.count(keyReused)
	c.asking = true
	err := s.centre.call(w, writer.ErrKeyReused, func(ctx context.Context, o *writer.Client) error {
		_, err := c.ask(writer.WithIdempotencyKey(ctx, c.key), o, true)
		return err
	})
	c.asking = false
	if err == nil {
		s.fail("the key of change %d is taken for another one", c.number)
	}
}

// askBoth asks a writer for two changes, the second while the first is under way.
func (s *sim) askBoth(w *writerProcess, changes ...*change) {
	failed, begun := w.session.failed, time.Now()
	answers, errs, told := make([]any, len(changes)), make([]error, len(changes)), make([]time.Time, len(changes))
	var both sync.WaitGroup
	for i, c := range changes {
		s.want(c)
		c.asking = true
		both.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			ctx := context.WithValue(context.Background(), undisturbed{}, true)
			answers[i], errs[i] = c.ask(writer.WithIdempotencyKey(ctx, c.key), w.client, false)
			told[i] = time.Now()
		})
	}
	s.pass()
	both.Wait()
	s.settleTime(begun)
	s.centre.checkProcess(w)
	for i, c := range changes {
		if w == s.centre.current && !w.session.disturbed(failed, begun) {
			s.must(errs[i], "an operator's call is refused")
		}
		if errs[i] != nil && told[i].Before(w.session.hungUntil) && s.effects(c) > 0 {
			s.fail("change %d is made after its operator was told that it failed", c.number)
		}
		s.judge(c, 0, answers[i], errs[i])
	}
}

const selectKeysNamed = `SELECT count(*) FROM api_key WHERE name = ?`

// counted reports whether one can see in the ledger how often a change was made.
func (c *change) counted() bool { return c.entry || c.newKey }

// effects counts how often a change was made, 0 for one of which that can't be seen.
func (s *sim) effects(c *change) (n int) {
	switch {
	case c.entry:
		s.readEntries()
		return s.centre.ledger.entries.noted[c.number]
	case c.newKey:
		s.must(s.centre.ledger.ask(selectKeysNamed, func(row *sqlite3.Stmt) { n = row.ColumnInt(0) }, c.number), "read keys")
	}
	return n
}

// noteEntry notes a credit entry with the number of a change. It must not appear after its operator was told
// that it failed.
func (s *sim) noteEntry(known *entries, number int64) {
	if number < firstChange {
		return
	}
	known.noted[number]++
	for _, c := range s.changes {
		if c.number == number && !c.asking && known.read {
			s.fail("change %d is made after its operator was told that it failed", number)
		}
	}
}

const (
	// promptly is how long the writer may take for what needs nobody else.
	promptly = time.Second
	// projectionWait is how long it waits until edges can know of an operator's change.
	projectionWait = 2 * time.Second
)

// settleTime lets everything come to rest, and has the time that a call took pass in the simulation, too.
func (s *sim) settleTime(begun time.Time) (took time.Duration) {
	s.pass()
	synctest.Wait()
	s.pass()
	took = time.Since(begun)
	s.clock.Add(took.Milliseconds())
	return took
}

// hangDuration is how long a statement of the ledger hangs. A caller waits 20 s for the outcome of a commit
// that has begun: none is told an error whose change is made later.
func (s *sim) hangDuration() time.Duration {
	return time.Second + time.Duration(s.random.Int64N(int64(17*time.Second)))
}
