package ledger

import "fmt"

// Check verifies the invariants of the package comment that one state can show.
func (l *Ledger) Check() error {
	for _, p := range l.pools {
		if err := p.check(l.Restoring); err != nil {
			return fmt.Errorf("pool %+v: %w", p.ID, err)
		}
	}
	for _, e := range l.edges {
		for number, epoch := range e.epochs {
			if number > e.Epoch {
				return fmt.Errorf("node %s has epoch %d beyond its newest %d", e.Name, number, e.Epoch)
			}
			for id, h := range epoch.leases {
				if h.pool != l.pools[id] || h.epoch != epoch || h.edge != e {
					return fmt.Errorf("node %s: lease %+v is out of its place", e.Name, id)
				}
			}
		}
	}
	return nil
}

func (p *Pool) check(restoring bool) error {
	var leased, lost int64
	for _, h := range p.leases {
		out := h.Outstanding()
		if out < 0 {
			return fmt.Errorf("lease of %s: granted %d, spent %d, returned %d", h.edge.Name, h.Granted, h.Spent, h.Returned)
		}
		if h.Beyond < 0 {
			return fmt.Errorf("lease of %s: %d spent beyond it", h.edge.Name, h.Beyond)
		}
		if h.Lost {
			lost += out
		} else {
			leased += out
		}
	}
	switch {
	case leased != p.Leased:
		return fmt.Errorf("leased %d, its leases come to %d", p.Leased, leased)
	case lost != p.Lost:
		return fmt.Errorf("lost %d, its leases come to %d", p.Lost, lost)
	case p.Limit < 0 || p.Compensated < 0 || p.Spent < 0 || p.Leased < 0 || p.Lost < 0 || p.Deducting < 0:
		return fmt.Errorf("a count is negative: %+v", p)
	case p.ID.Window == 0 && p.Left() < 0 && !restoring:
		return fmt.Errorf("left is %d", p.Left())
	}
	return nil
}
