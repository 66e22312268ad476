package history

import "time"

// The calls of Balances.
const (
	Bought  Kind = iota + 1 // an operator gave Units credits
	Taking                  // an operator began to take up to Units credits, as leases come back
	Took                    // an operator read that this is done, and Units were taken
	Served                  // a client got an answer for a credit
	Refused                 // a client got 402
	CutOff                  // a client got no answer: it may have been charged
	Left                    // an operator read that Units can still be spent, while nobody else calls
	Counted                 // an operator read that Units calls were charged, while nobody else calls
)

// balance is the state of an account. left is the most that can still be spent; the true value may be
// lower by up to cut, since unanswered calls may have been charged. taking is what an operator is about
// to take, and assumed is the part of it that must be gone already. served and unanswered count calls:
// a charge beyond a lease costs no credit, but counts as usage.
type balance struct{ left, cut, taking, assumed, served, unanswered int64 }

// Balances is the model of an account's credits. A 200 needs a credit, wherever it is; a 402 is allowed
// only if there is none anywhere, or was none at some time in the last two seconds (G1, G5, G6).
func Balances() Model {
	return Model{
		name: "the credits",
		kinds: map[Kind]string{
			Bought: "bought", Taking: "taking", Took: "took", Served: "200", Refused: "402", CutOff: "no answer", Left: "left", Counted: "counted",
		},
		init: balance{}, step: stepBalance, early: map[Kind]time.Duration{Refused: Stale},
	}
}

func stepBalance(state any, c Call) (bool, any) {
	b := state.(balance)
	switch c.Kind {
	case Bought:
		b.left += c.Units
	case Taking:
		b.taking, b.assumed = c.Units, 0
	case Took:
		b.take(c.Units - b.assumed)
		b.taking, b.assumed = 0, 0
	case CutOff:
		b.cut++
		b.unanswered++
	case Served:
		b.left--
		b.served++
	case Refused:
		b.refuse()
	case Left:
		b.cut -= b.left - c.Units
		b.left = c.Units
		return b.taking == 0 && b.cut >= 0 && c.Units <= state.(balance).left, b
	case Counted:
		return b.served <= c.Units && c.Units <= b.served+b.unanswered, b
	}
	return b.left >= 0 && b.cut >= 0, b
}

// take takes credits. If units is negative, more was assumed taken than really was: then unanswered
// calls must have spent the difference.
func (b *balance) take(units int64) {
	if units < 0 {
		b.cut += units
	} else {
		b.left -= units
	}
}

// refuse accounts for a 402: nothing can be left.
func (b *balance) refuse() {
	taken := min(b.left, b.taking-b.assumed)
	b.assumed += taken
	b.cut -= b.left - taken
	b.left = 0
}
