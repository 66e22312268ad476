package lease

import "regedge/replicate/metering/syncproto"

// Limits of what an edge asks for and keeps.
const (
	// floorUnits is what an idle account keeps, so that a sparse client stays warm.
	floorUnits = 16
	// notFoundUnits is what a key's not-found lease aims at, of a cap of 100 a day.
	notFoundUnits = 10
	// slotMillis is the time for which leases aim to last.
	slotMillis = 10 * 60 * 1000
	// idleMillis is how long an unused lease is kept at its floor before it is closed.
	idleMillis = 24 * 60 * 60 * 1000
	// renewMillis is how long before its end a lease in use is renewed.
	renewMillis = 6 * 60 * 60 * 1000
)

// holding is one lease. The counts are sums since it was opened.
type holding struct {
	granted, spent, returned int64
	until                    int64 // Unix milliseconds; nothing is spent from then on
	window                   int32
	known                    bool // the writer has told of this lease
	dry                      bool // nothing is to be had beyond what is held
	recalled                 bool // all that is held goes back
}

// held is what may still be spent or returned.
func (h *holding) held() int64 { return h.granted - h.spent - h.returned }

// usable reports whether a unit can be spent at now in window.
func (h *holding) usable(now int64, window int32) bool {
	return h.window == window && h.held() > 0 && now < h.until
}

// apply takes the writer's row. Grants are sums, so a row that was overtaken or repeated
// adds nothing. It returns what the row added.
func (h *holding) apply(r *syncproto.Row) int64 {
	if r.Pool.Window < h.window {
		return 0
	}
	if r.Pool.Window > h.window {
		*h = holding{window: r.Pool.Window}
	}
	//mutant:repeated-row-grants-again
	added := max(r.Granted-h.granted, 0)
	h.granted += added
	h.until, h.known, h.dry, h.recalled = max(h.until, r.UntilMillis), true, r.Dry, r.Recall
	return added
}

// account is what this edge knows of one account.
type account struct {
	credits, volume holding
	// balance is what the writer last said, less the charges of batches that it
	// acknowledged since; unreported are the charges of no acknowledged batch.
	balance, unreported int64
	lastUsed            int64 // Unix milliseconds
	closeSeq            uint64
	minute              int64 // of count
	othersMinute        int64 // of others
	perMinute           int32
	count, others       int32
	rateTold            int32 // of count, what the writer was told
	slot                int32 // ten-minute slot of slotUse
	slotUse, lastUse    int32 // charges in slot and in the one before
	index               int32 // place in EdgeState.order
	rateListed          bool
}

// used notes a charge for the estimate of what the account will need.
func (a *account) used(now int64) {
	slot := int32(now / slotMillis)
	switch {
	case slot == a.slot:
	case slot == a.slot+1:
		a.lastUse, a.slotUse, a.slot = a.slotUse, 0, slot
	default:
		a.lastUse, a.slotUse, a.slot = 0, 0, slot
	}
	a.slotUse++
	a.lastUsed = now
}

// target is what a lease of an account in use should hold: ten minutes as they were, and
// at least a minute at the full rate.
func (a *account) target() int64 {
	return max(floorUnits, int64(a.perMinute), int64(a.slotUse), int64(a.lastUse))
}

// key is what this edge knows of one key.
type key struct {
	notFound holding
	index    int32 // place in EdgeState.keyOrder
}
