package lease

import (
	"slices"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// wants are the units to ask the writer for, one want for each pool. A want moves from
// pending to asked with the message that carries it, and back when that is lost.
type wants struct {
	pending, asked map[syncproto.Pool]syncproto.Want
}

func newWants() wants {
	return wants{map[syncproto.Pool]syncproto.Want{}, map[syncproto.Pool]syncproto.Want{}}
}

// add notes a want, joined with one of the same pool.
func (w *wants) add(n syncproto.Want) {
	old := w.pending[n.Pool]
	w.pending[n.Pool] = syncproto.Want{Pool: n.Pool, Target: max(old.Target, n.Target), Urgent: old.Urgent || n.Urgent}
}

// take moves wants into the message under way, as many as fit, urgent ones first.
func (w *wants) take() []syncproto.Want {
	if len(w.pending) == 0 {
		return nil
	}
	list := make([]syncproto.Want, 0, len(w.pending))
	for _, n := range w.pending {
		list = append(list, n)
	}
	slices.SortFunc(list, func(x, y syncproto.Want) int {
		if x.Urgent != y.Urgent {
			if x.Urgent {
				return -1
			}
			return 1
		}
		return x.Pool.Compare(y.Pool)
	})
	list = list[:min(len(list), syncproto.MaxWants)]
	for _, n := range list {
		w.asked[n.Pool] = n
		delete(w.pending, n.Pool)
	}
	if len(w.pending) == 0 {
		w.pending = map[syncproto.Pool]syncproto.Want{} // a map never shrinks
	}
	return list
}

// answered forgets the wants of a message that was answered.
func (w *wants) answered() {
	if len(w.asked) > 0 {
		w.asked = map[syncproto.Pool]syncproto.Want{}
	}
}

// lost makes the wants of a lost message pending again.
func (w *wants) lost() {
	for _, n := range w.asked {
		w.add(n)
	}
	w.answered()
}

func (w *wants) urgent() bool {
	for _, n := range w.pending {
		if n.Urgent {
			return true
		}
	}
	return false
}

// Urgent reports whether the writer should get a message now: a request waits for a lease,
// or a lease was recalled.
func (s *EdgeState) Urgent() bool {
	return s.Serving() && (s.wants.urgent() || len(s.returns.recalled) > 0)
}

// renew asks for more of what runs low, before it is needed.
func (s *EdgeState) renew(now int64, r *charge.Request, a *account) {
	s.lookAhead(now, r, a)
	if r.Outcome == charge.NotFound {
		l := s.leases.keys.get(r.Key)
		s.renewOne(now, notFoundPool(r.Key, l.window), l, notFoundUnits)
		return
	}
	target := a.target()
	s.renewOne(now, creditsPool(r.Account), &a.credits, target)
	s.renewOne(now, volumePool(r.Account, a.volume.window), &a.volume, target)
}

func (s *EdgeState) renewOne(now int64, p syncproto.Pool, l *lease, target int64) {
	low := l.held()*2 < target && !l.dry && !l.recalled
	if low || p.Kind == syncproto.Credits && l.until-now < renewMillis {
		s.wants.add(syncproto.Want{Pool: p, Target: target})
	}
}

// lookAhead asks, in the last ten minutes of a day, for the lease of the next day, and so for that of the next
// month: else the first request of every key after midnight would wait for the writer, all at once.
func (s *EdgeState) lookAhead(now int64, r *charge.Request, a *account) {
	soon := now + slotMillis
	day := syncproto.Day(soon)
	if day == syncproto.Day(now) {
		return
	}
	s.ask(notFoundPool(r.Key, day), notFoundUnits)
	if month := syncproto.Month(soon); month != a.volume.window {
		s.ask(volumePool(r.Account, month), a.target())
	}
}

// ask asks for a lease of a pool of which there is none.
func (s *EdgeState) ask(p syncproto.Pool, target int64) {
	if l := s.leases.find(p); l == nil || !l.known {
		s.wants.add(syncproto.Want{Pool: p, Target: target})
	}
}
