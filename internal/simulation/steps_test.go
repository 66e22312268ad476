package simulation

import (
	"context"
	"fmt"

	"regedge/handler/charge"
	"regedge/replicate/metering/writer"
)

// step is one thing that happens.
func (w *world) step() {
	w.steps++
	w.now += w.random.Int64N(300)
	e := w.edges[w.random.IntN(len(w.edges))]
	if e.process == nil && w.random.IntN(4) == 0 {
		e.boot()
	}
	switch action := w.random.IntN(1000); {
	case action < 520:
		w.serve(e)
	case action < 700:
		e.exchange()
	case action < 750:
		e.watch()
	case action < 800:
		e.flush()
	case action < 830:
		w.late(e)
	case action < 880:
		w.troubleEdge(e)
	case action < 920:
		w.troubleCentre()
	case action < 950:
		w.operator()
	case action < 966:
		w.troubleTime(e)
	default:
		w.rare(e)
	}
}

// serve has an edge's meter decide on a request of a client.
func (w *world) serve(e *edge) {
	if w.random.IntN(12) == 0 && len(e.requests) > 0 {
		w.askAgain(e, e.requests[w.random.IntN(len(e.requests))])
		return
	}
	if e.process == nil || w.random.IntN(15) == 0 && w.voidLate(e) {
		return
	}
	w.ids++
	r := &request{disk: e.disk, segments: e.disk.segments}
	r.ID, r.Account, r.PerMinute = fmt.Sprintf("r-%d", w.ids), 1+w.random.Int64N(accounts), 1<<30
	r.Endpoint, r.Outcome, r.Key = charge.Companies, charge.Found, e.key(r.Account)
	switch w.random.IntN(8) {
	case 0:
		r.Outcome, r.Key = charge.NotFound, r.Account*keysOfAccount+sharedKeys
	case 1:
		r.Outcome = charge.Failed
	}
	if w.ask(e, r) && r.Outcome != charge.Failed && w.random.IntN(15) == 0 {
		w.void(e, e.process, r)
	}
}

// ask asks an edge about a new request, and reports whether the client was answered with
// what it wants. Who holds no lease speaks to the writer first.
func (w *world) ask(e *edge, r *request) bool {
	p := e.process
	if w.faulty(60) {
		p.crashIn = 1 + w.random.IntN(4)
	}
	v := p.meter.Charge(context.Background(), r.Request)
	if v.Code == charge.MeteringUnavailable && !p.dead && w.random.IntN(2) == 0 {
		if e.exchange(); e.process != p {
			return false
		}
		v = p.meter.Charge(context.Background(), r.Request)
	}
	died := p.dead
	e.checkProcess(p)
	r.verdict = v
	w.detail("%s %s: account %d, outcome %d: %q, died %v", e.name, r.ID, r.Account, r.Outcome, v.Code, died)
	if v.Code != "" && !died {
		w.refused(e, r)
		return false
	}
	if r.Outcome == charge.NotFound {
		w.asked[r.Key]++
	}
	w.keep(e, r)
	if died {
		w.cutOff(r)
		return false
	}
	w.answered(e, r)
	return true
}

func (w *world) keep(e *edge, r *request) {
	const most = 12
	if len(e.requests) == most {
		e.requests = e.requests[1:]
	}
	e.requests = append(e.requests, r)
}

// askAgain asks with an id from before, as a component does that saw no answer: the
// verdict is the same, and nothing is charged twice.
func (w *world) askAgain(e *edge, r *request) {
	p := e.process
	if p == nil || r.disk != e.disk || e.disk.segments-r.segments > 1 || r.Outcome == charge.Failed {
		return
	}
	w.count(askedAgain)
	v := p.meter.Charge(context.Background(), r.Request)
	if died := p.dead; died {
		e.checkProcess(p)
		return
	}
	w.detail("%s %s again: %q, was %d", e.name, r.ID, v.Code, r.state)
	switch {
	case r.state == cut && v.Code == "": // the client knows now
		r.state = served
		if r.Outcome == charge.Found {
			w.mayBe[r.Key]--
			w.answered(e, r)
		}
	case r.state == taken:
		if v.Code != charge.MeteringUnavailable {
			w.fail("%s: %s was voided, and is answered %q", e.name, r.ID, v.Code)
		}
	}
}

// void takes a charge back, as a component does whose answer failed.
func (w *world) void(e *edge, p *process, r *request) {
	w.count(voided)
	err := p.meter.Void(context.Background(), r.ID)
	died := p.dead
	e.checkProcess(p)
	r.state = taken
	w.detail("%s voids %s: %v, died %v", e.name, r.ID, err, died)
	if r.Outcome == charge.Found {
		w.got[r.Key]--
		if err != nil || died {
			w.mayBe[r.Key]++
			w.missing[r.Key]++ // as got counts it no more
		}
	}
	if err != nil || died {
		r.state = unclear
	}
}

// voidLate takes an earlier charge back, and reports whether it found one: it may be
// reported by now, of an epoch that ended, or of a run before.
func (w *world) voidLate(e *edge) bool {
	if len(e.requests) == 0 || e.disk.wasCopied {
		return false
	}
	r := e.requests[w.random.IntN(len(e.requests))]
	if r.disk != e.disk || e.disk.segments-r.segments > 1 || r.state != served || r.Outcome == charge.Failed {
		return false
	}
	if r.Outcome == charge.Found {
		w.voidedLate[r.Key]++
	}
	w.void(e, e.process, r)
	return true
}

// late brings a message to the writer that its edge gave up long ago.
func (w *world) late(e *edge) {
	if len(e.messages) > 0 {
		w.count(lateMessage)
		w.centre.deliver(e.token, e.messages[w.random.IntN(len(e.messages))])
	}
}

func (w *world) troubleEdge(e *edge) {
	switch w.random.IntN(6) {
	case 0:
		if e.process != nil {
			w.count(edgeCrash)
			w.note("%s crashes", e.name)
			e.kill()
		}
	case 1:
		if e.process != nil {
			e.process.crashIn = 1 + w.random.IntN(8)
		}
	case 2:
		e.cutUntil = w.now + w.random.Int64N(10_000)
	case 3:
		e.fullUntil = w.now + w.random.Int64N(3_000)
	case 4:
		e.syncFails = true
	case 5:
		w.cutPower(e)
	}
}

// cutPower ends a process and loses what was not synced.
func (w *world) cutPower(e *edge) {
	if e.process == nil || !w.wild {
		return
	}
	w.count(powerCut)
	e.kill()
	if e.disk.losePower(w.random) {
		w.note("%s loses power, and %v", e.name, e.unsynced)
		w.count(powerCutLost)
		w.powerLost(e)
		e.requests = nil
	}
}

func (w *world) troubleCentre() {
	switch c := w.centre; w.random.IntN(5) {
	case 0:
		c.restart()
	case 1:
		c.takeOver()
	case 2:
		if c.former != nil {
			c.end(&c.former)
		}
	case 3:
		if c.current != nil && c.current.hands.crashIn == 0 {
			c.current.hands.crashIn = 1 + w.random.IntN(30)
		}
	case 4:
		if w.wild {
			c.save()
		}
	}
}

func (w *world) operator() {
	id := 1 + w.random.Int64N(accounts)
	switch w.random.IntN(6) {
	case 0, 1:
		amount := w.amount(60)
		w.bought[id] += amount
		w.sell(topUp, id, amount)
	case 2:
		w.sell(adjustment, id, -1-w.random.Int64N(40))
	case 3:
		w.changeAccount(planChange, id, func(c *writer.AccountChange) {
			plan := []string{"scale", "growth", "starter"}[w.random.IntN(3)]
			c.Plan = &plan
		})
	case 4:
		suspend := w.random.IntN(3) == 0
		w.changeAccount(suspension, id, func(c *writer.AccountChange) { c.Suspended = &suspend })
	case 5:
		w.count(recallStorm)
		for id := int64(1); id <= accounts; id++ {
			w.sell(adjustment, id, -1)
		}
	}
}

func (w *world) sell(kind fault, id, amount int64) {
	w.count(kind)
	w.note("account %d buys %d", id, amount)
	w.centre.operate(func(ctx context.Context, o *writer.Client) error {
		_, err := o.ChangeCredits(ctx, id, writer.CreditChange{Amount: amount})
		return err
	})
}

func (w *world) changeAccount(kind fault, id int64, set func(*writer.AccountChange)) {
	w.count(kind)
	var change writer.AccountChange
	set(&change)
	w.centre.operate(func(ctx context.Context, o *writer.Client) error {
		_, err := o.ChangeAccount(ctx, id, change)
		return err
	})
}

// maxSkew is how far a clock may be off.
const maxSkewMillis = 30_000

func (w *world) troubleTime(e *edge) {
	switch w.random.IntN(12) {
	case 0:
		w.count(daysPass)
		w.now += w.random.Int64N(3 * dayMillis)
	case 1:
		w.now += w.random.Int64N(60 * 60 * 1000)
	case 2, 3:
		w.centre.skew = w.random.Int64N(2*maxSkewMillis) - maxSkewMillis
	default:
		w.count(clockSkew)
		e.setClock(w.random.Int64N(2*maxSkewMillis) - maxSkewMillis)
	}
}

// rare does what ends a disk, a node or a ledger.
func (w *world) rare(e *edge) {
	if !w.wild {
		return
	}
	switch w.random.IntN(14) {
	case 0, 1:
		w.wipe(e)
	case 2, 3, 4:
		w.bringBack(e)
	case 5, 6:
		w.swap(e)
	case 7, 8:
		w.retireNode(e)
	case 9:
		w.count(oldEpochsRetired)
		w.retire(e, true)
	case 10, 11, 12:
		w.centre.restore()
	case 13:
		w.sleep(e)
	}
}

// wipe loses an edge's disk.
func (w *world) wipe(e *edge) {
	w.note("%s is wiped", e.name)
	w.count(wiped)
	e.kill()
	w.diskGone(e)
	e.disk, e.snapshot, e.requests = newDisk(), nil, nil
	if w.random.IntN(3) > 0 && w.retire(e, true) {
		w.count(wipedAndRetired)
	}
}

// bringBack puts an edge onto an older copy of its disk, or takes the copy.
func (w *world) bringBack(e *edge) {
	if e.snapshot == nil {
		e.snapshot = e.disk.clone()
		return
	}
	w.note("%s is brought back to a snapshot", e.name)
	w.count(snapshotRestored)
	e.kill()
	w.diskGone(e)
	e.disk, e.snapshot, e.requests = e.snapshot, nil, nil
	e.disk.copied, e.disk.wasCopied = true, true
	e.copied, w.copied = true, true
	e.boot()
}

// swap takes an edge's disk away and starts it on an empty one, or on the one that was
// taken away before.
func (w *world) swap(e *edge) {
	if w.silent {
		return
	}
	w.note("%s changes its disk", e.name)
	w.count(diskSwapped)
	e.kill()
	if w.went {
		w.excuse(e)
	}
	w.broke(e)
	e.disk, e.aside = e.aside, e.disk
	if e.disk == nil {
		e.disk = newDisk()
	}
	e.snapshot, e.requests, e.unsynced = nil, nil, counts{}
	e.boot()
}

// retireNode fences a node that may still be alive, and adds another.
func (w *world) retireNode(e *edge) {
	if e.retired || len(w.edges) > 5 {
		return
	}
	w.note("%s is retired", e.name)
	if w.retire(e, false) {
		e.retired = true
		w.count(retiredAlive)
		w.addEdge()
	}
}

// sleep stops an edge for days.
func (w *world) sleep(e *edge) {
	e.kill()
	w.now += dayMillis + w.random.Int64N(3*dayMillis)
	e.boot()
}
