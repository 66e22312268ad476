package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"time"

	"regedge/handler/charge"
	"regedge/replicate/metering/writer"
)

// operatorsNetwork is between operators and one writer: a request or its answer may be lost. It calls the
// handler in the caller's goroutine: a new one would have to grow its stack for each call.
type operatorsNetwork struct {
	sim     *sim
	handler http.Handler
	session *session
}

func (n *operatorsNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	faulty := r.Context().Value(undisturbed{}) == nil
	n.sim.pass()
	if faulty && n.sim.faulty(30) {
		n.sim.count(changeLost)
		n.session.failed++
		return nil, errNetwork
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.WroteHeaders()
	}
	answer := httptest.NewRecorder()
	n.handler.ServeHTTP(answer, r)
	n.sim.pass()
	if faulty && n.sim.faulty(15) {
		n.sim.count(changeAnswerLost)
		n.session.failed++
		return nil, errNetwork
	}
	return answer.Result(), nil
}

// undisturbed marks the context of a call that the network does not lose. A call beside another one has to
// be: chance would depend on the scheduler.
type undisturbed struct{}

// operator has an operator want a change, or ask again for one.
func (s *sim) operator() {
	id := 1 + s.random.Int64N(accounts)
	switch s.random.IntN(14) {
	case 0, 1:
		s.sell(topUp, id, s.amount(60))
	case 2:
		s.sell(adjustment, id, -1-s.random.Int64N(40))
	case 3:
		plan := []string{"scale", "growth", "starter"}[s.random.IntN(3)]
		s.changeAccount(planChange, id, writer.AccountChange{Plan: &plan})
	case 4:
		suspend := s.random.IntN(3) == 0
		s.changeAccount(suspension, id, writer.AccountChange{Suspended: &suspend})
	case 5:
		s.count(recallStorm)
		for id := int64(1); id <= accounts; id++ {
			s.sell(adjustment, id, -1)
		}
	case 6:
		s.addKey(id)
	case 7:
		s.revokeKey()
	case 8:
		s.hungLedger(id)
	case 9:
		s.limitKey(id)
	case 10:
		s.sellBehindACut(s.edges[s.random.IntN(len(s.edges))])
	default:
		s.askAgainForChange()
	}
}

// sell has an operator add credits to an account, or take some.
func (s *sim) sell(kind fault, id, amount int64) {
	s.count(kind)
	s.note("account %d buys %d", id, amount)
	s.request(s.saleOf(id, amount))
}

// sellBehindACut cuts an edge off that refused an account, and sells the account credits. The edge believes
// for two seconds, and no longer, that there are none.
func (s *sim) sellBehindACut(e *edge) {
	for id := int64(1); id <= accounts && s.depth == 0 && e.process != nil; id++ {
		e.exchange()
		r := s.newRequest(e, id)
		if e.process == nil || s.ask(e, r) || r.verdict.Code != charge.InsufficientCredits {
			continue
		}
		e.cutUntil = s.clock.Load() + 10_000
		s.sell(topUp, id, s.amount(60))
		s.clock.Add(refusalAge + s.random.Int64N(2000))
		if e.process != nil {
			s.ask(e, s.newRequest(e, id))
		}
		return
	}
}

// takeWhileReturning has an operator take what is left of an account while an edge gives units of it back.
// For the writer the edge still holds these, and nobody anything else; the edge holds none, and has to ask.
func (s *sim) takeWhileReturning(e *edge) {
	for id := int64(1); id <= accounts && s.depth < maxDepth; id++ {
		if !e.returns(id) {
			continue
		}
		s.depth++
		left := s.query(fmt.Sprintf(`SELECT bought + compensated - spent - leased - lost - deducting FROM account WHERE id = %d`, id))
		if len(left) > 0 && left[0][0] > 0 {
			s.sell(adjustment, id, -left[0][0])
		}
		e.watch()
		if e.process != nil {
			s.ask(e, s.newRequest(e, id))
		}
		s.depth--
		return
	}
}

func (s *sim) saleOf(id, amount int64) *change {
	if amount > 0 {
		s.bought[id] += amount
	} else {
		s.taken[id] -= amount
	}
	c := s.newChange()
	c.entry = amount > 0
	c.ask = func(ctx context.Context, o *writer.Client, other bool) (any, error) {
		wanted := writer.CreditChange{Amount: amount, Note: c.name, AtMost: amount < 0}
		if other {
			wanted.Note += " or another"
		}
		a, err := o.ChangeCredits(ctx, id, wanted)
		a.Pending = false
		return a, err
	}
	return c
}

func (s *sim) changeAccount(kind fault, id int64, wanted writer.AccountChange) {
	s.count(kind)
	c := s.newChange()
	c.ask = func(ctx context.Context, o *writer.Client, other bool) (any, error) {
		wanted := wanted
		if other {
			wanted.Name = &c.name
		}
		a, err := o.ChangeAccount(ctx, id, wanted)
		s.told(told{accountRow, id, a.Pending}, err)
		a.Pending = false
		return a, err
	}
	s.request(c)
}

// addKey has an operator make an API key. An account has at most five that are valid.
func (s *sim) addKey(id int64) {
	s.count(keyAdded)
	c := s.newChange()
	c.newKey, c.allowed = true, writer.ErrTooManyKeys
	c.ask = func(ctx context.Context, o *writer.Client, other bool) (any, error) {
		name := c.name
		if other {
			name += " or another"
		}
		k, err := o.AddKey(ctx, id, name)
		s.told(told{keyRow, k.ID, k.Pending}, err)
		if err == nil {
			s.keys = append(s.keys, k.ID)
		}
		k.Pending = false
		return k, err
	}
	s.request(c)
}

// revokeKey has an operator revoke one of the newest keys. A ledger from a backup may not have it.
func (s *sim) revokeKey() {
	if len(s.keys) == 0 {
		return
	}
	s.count(keyRevoked)
	id := s.keys[s.random.IntN(len(s.keys))]
	c := s.newChange()
	c.revokes = true
	c.ask = func(ctx context.Context, o *writer.Client, other bool) (any, error) {
		wanted := id
		if other {
			wanted++
		}
		k, err := o.RevokeKey(ctx, wanted)
		s.told(told{keyRow, id, k.Pending}, err)
		k.Pending = false
		return k, err
	}
	s.request(c)
}

// hungLedger has two operators ask for changes while a statement of the ledger hangs. The second waits
// behind the first until it is told that the writer is unavailable.
func (s *sim) hungLedger(id int64) {
	w := s.centre.up()
	if w == nil || s.calm || s.depth > 0 {
		return
	}
	s.count(ledgerHangs)
	w.session.hangs = s.hangDuration()
	first, second := s.saleOf(id, s.amount(60)), s.saleOf(1+s.random.Int64N(accounts), s.amount(60))
	s.askBoth(w, first, second)
}

func (s *sim) askAgainForChange() {
	if len(s.changes) > 0 {
		s.askFor(s.changes[s.random.IntN(len(s.changes))])
	}
}

// operate performs an operator's call and reports whether it is known to be done. Only a
// writer that was superseded, a failing database and the network may refuse it.
func (c *centre) operate(act func(ctx context.Context, o *writer.Client) error) bool {
	return c.operateAllowing(nil, act)
}

// operateAllowing is operate, for a call that may be refused with an error.
func (c *centre) operateAllowing(allowed error, act func(ctx context.Context, o *writer.Client) error) bool {
	w := c.up()
	return w != nil && c.call(w, allowed, act) == nil
}

// call performs an operator's call at a writer. allowed is an error with which it may refuse it, nil for
// none.
func (c *centre) call(w *writerProcess, allowed error, act func(ctx context.Context, o *writer.Client) error) error {
	_, _, accessFailed := c.trouble.troubled()
	before, begun := w.session.failed, time.Now()
	c.sim.pass()
	err := act(context.Background(), w.client)
	took := c.sim.settleTime(begun)
	disturbed := w.session.disturbed(before, begun)
	if !disturbed && took > projectionWait+promptly {
		c.sim.fail("an operator waits %v for the writer", took)
	}
	c.sim.checkTold(w, accessFailed)
	if w == c.current && !disturbed && !(allowed != nil && errors.Is(err, allowed)) {
		c.sim.must(err, "an operator's call is refused")
	}
	c.checkProcess(w)
	return err
}
