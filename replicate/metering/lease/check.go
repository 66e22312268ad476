package lease

import (
	"errors"
	"fmt"

	"regedge/handler/charge"
)

// Check verifies the invariants 1 to 5 of the package comment, and that what is remembered is bounded. Its
// error names those that do not hold.
func (s *EdgeState) Check() error {
	return errors.Join(s.leases.check(), s.outbox.check(), s.usage.check(), s.checkUnreported(), s.keyed.check())
}

func (all *leases) check() error {
	granted := int64(0)
	for id, a := range all.accounts.all() {
		for _, l := range []*lease{&a.credits, &a.volume} {
			if err := l.check(); err != nil {
				return fmt.Errorf("lease of account %d: %w", id, err)
			}
			granted += l.granted
		}
	}
	for id, l := range all.keys.all() {
		if err := l.check(); err != nil {
			return fmt.Errorf("not-found lease of key %d: %w", id, err)
		}
		granted += l.granted
	}
	for p, parked := range all.parked {
		for _, l := range parked {
			if err := l.check(); err != nil {
				return fmt.Errorf("parked lease of %+v: %w", p, err)
			}
			granted += l.granted
		}
	}
	if granted > all.granted {
		return fmt.Errorf("leases hold %d units of grants, the epoch received %d", granted, all.granted)
	}
	return nil
}

func (l *lease) check() error {
	if l.held() < 0 {
		return fmt.Errorf("granted %d, spent %d, returned %d", l.granted, l.spent, l.returned)
	}
	return nil
}

func (o *outbox) check() error {
	if o.inflight != nil && o.inflight.Seq != o.sealed {
		return fmt.Errorf("batch %d is in flight, the newest made is %d", o.inflight.Seq, o.sealed)
	}
	return nil
}

func (u *usage) check() error {
	if u.confirmed && len(u.carried) > 0 {
		return fmt.Errorf("the state directory is confirmed, and usage of %d epochs is carried", len(u.carried))
	}
	return nil
}

func (s *EdgeState) checkUnreported() error {
	sums := map[int64]int64{}
	s.eachUnreported(func(u use, n int64) {
		if u.outcome == charge.Found {
			sums[u.account] += n
		}
	})
	for id, a := range s.leases.accounts.all() {
		if a.unreported != sums[id] {
			return fmt.Errorf("account %d has %d unreported charges, its usage has %d", id, a.unreported, sums[id])
		}
	}
	return nil
}
