package lease

import (
	"fmt"

	"regedge/handler/charge"
)

// Check holds the invariants of the package's documentation against the book.
func (b *EdgeState) Check() error {
	granted := int64(0)
	for _, id := range b.order {
		a := b.accounts[id]
		for _, h := range []*holding{&a.credits, &a.volume} {
			if err := h.check(); err != nil {
				return fmt.Errorf("lease of account %d: %w", id, err)
			}
			granted += h.granted
		}
	}
	for _, id := range b.keyOrder {
		h := &b.keys[id].notFound
		if err := h.check(); err != nil {
			return fmt.Errorf("not-found lease of key %d: %w", id, err)
		}
		granted += h.granted
	}
	if granted > b.granted {
		return fmt.Errorf("leases hold %d units of grants, the epoch received %d", granted, b.granted)
	}
	if b.inflight != nil && b.inflight.Seq != b.sealed {
		return fmt.Errorf("batch %d is under way, the newest made is %d", b.inflight.Seq, b.sealed)
	}
	return b.checkUnreported()
}

func (h *holding) check() error {
	if h.held() < 0 {
		return fmt.Errorf("granted %d, spent %d, returned %d", h.granted, h.spent, h.returned)
	}
	return nil
}

func (b *EdgeState) checkUnreported() error {
	sums := map[int64]int64{}
	count := func(t tally) {
		for u, n := range t {
			if u.outcome == charge.Found {
				sums[u.account] += n
			}
		}
	}
	count(b.pending)
	for _, t := range b.carried {
		count(t)
	}
	for _, t := range b.late {
		count(t)
	}
	if b.inflight != nil {
		for i := range b.inflight.Usage {
			u := &b.inflight.Usage[i]
			count(tally{useOf(u): u.Count})
		}
	}
	for id, a := range b.accounts {
		if a.unreported != sums[id] {
			return fmt.Errorf("account %d has %d unreported charges, its usage comes to %d", id, a.unreported, sums[id])
		}
	}
	return nil
}
