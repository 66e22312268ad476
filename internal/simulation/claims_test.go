package simulation

import (
	"regedge/replicate/metering/syncproto"
)

// mostClaimed bounds, with the units that are claimed in most cases, one claim of the
// rogue: more than any account has.
const (
	mostClaimed = 1 << 40
	fewClaimed  = 40
)

// claim has the rogue say that the ledger was restored from a backup, though it was not: it comes with an
// epoch, batches, grants or a generation that the ledger never had. Then it declares leases of any account,
// or leaves the others waiting.
func (r *rogue) claim() {
	s := r.sim
	h := &syncproto.Hello{Boot: s.random.Uint64(), Epoch: r.known.Epoch, Sealed: r.known.Applied, Acked: r.known.Applied,
		Generation: r.known.Generation, NowMillis: s.clock.Load()}
	ahead := 1 + s.random.Uint64N(1<<s.random.IntN(40))
	switch s.random.IntN(4) {
	case 0: // another disk, of an epoch that is ahead of all
		h.Epoch += ahead
	case 1:
		h.Sealed, h.Acked = h.Sealed+ahead, h.Acked+ahead
	case 2:
		h.Granted = int64(ahead)
	default:
		h.Generation += ahead
	}
	s.count(rogueClaims)
	r.claimed = true
	if r.send(syncproto.Message{Number: s.random.Uint64(), Hello: h}, true); r.known.Session != 0 && r.token != "" && s.random.IntN(6) > 0 {
		r.send(syncproto.Message{Number: s.random.Uint64(), Sync: r.declaration()}, true)
	}
}

// declaration lists leases that the rogue says it holds. Nobody granted them.
func (r *rogue) declaration() *syncproto.Sync {
	s := r.sim
	m := &syncproto.Sync{Session: r.known.Session, Seen: r.known.Upto, NowMillis: s.clock.Load(), DeclaredLast: s.random.IntN(6) > 0}
	for range 1 + s.random.IntN(3) {
		most := int64(fewClaimed)
		if s.random.IntN(16) == 0 {
			most = mostClaimed
		}
		m.Declared = append(m.Declared, syncproto.Declared{Pool: r.pool(), Granted: 1 + s.random.Int64N(most)})
	}
	return m
}

// noteClaims adds up what a message of the rogue can make a ledger believe that waits for declarations:
// leases, and what was spent and returned of them.
func (s *sim) noteClaims(m *syncproto.Sync) {
	for _, d := range m.Declared {
		s.noteClaim(d.Pool, d.Granted)
	}
	if m.Batch == nil {
		return
	}
	for _, u := range m.Batch.Usage {
		s.claimed[u.Account] += max(u.Count, 0)
		s.claimedVolume[u.Account] += max(u.Count, 0)
	}
	for _, back := range m.Batch.Returns {
		s.noteClaim(back.Pool, back.Units)
	}
}

func (s *sim) noteClaim(of syncproto.Pool, units int64) {
	switch of.Kind {
	case syncproto.Credits:
		s.claimed[of.Subject] += units
	case syncproto.Volume:
		s.claimedVolume[of.Subject] += units
	}
}

// mostLeft is what an account keeps when an operator takes back what false claims gave to it.
const mostLeft = 200

// takeBack has an operator take from accounts what they have too much.
func (s *sim) takeBack() {
	for id, b := range s.readBalances() {
		if id > accounts {
			continue
		}
		for surplus := b.bought + b.compensated - b.spent - b.lost - b.deducting - mostLeft; surplus > 0 && s.claimed[id] > 0; surplus -= mostClaimed {
			s.sell(adjustment, id, -min(surplus, mostClaimed))
		}
	}
}
