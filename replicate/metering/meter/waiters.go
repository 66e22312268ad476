package meter

import (
	"slices"
	"sync"
)

// MaxWaiting bounds the requests that wait for a lease at once.
const MaxWaiting = 128

// vainMillis is how long an account that waited in vain gets fewer places: at least this, at most twice
// as long. It begins anew with each request that can't be decided here.
const vainMillis = 30_000

// waiters counts the requests that wait for a lease. An account may have half as many places as are free
// (the dynamic threshold by which switches share a buffer): 43 if it is alone, 28 if it is the second, so
// that several accounts leave room for others. Without this, an account whose last credits are at an
// unreachable edge would fill this edge with requests that wait in vain.
//
// Many accounts with one request each fill all places, too. So an account that waited in vain stays out
// of the second half of the places for a while; and when an account without vain waits finds no place,
// the longest waiter gives up its own: accounts can do this to others once, not repeatedly.
//
// The lock is taken only by requests that can't be decided here, and nothing is called under it.
type waiters struct {
	mu   sync.Mutex
	line []*waiter     // the longest first
	of   map[int64]int // by account
	// vain are the accounts that waited in vain since vainSince, vainBefore those of the previous period.
	vain, vainBefore map[int64]struct{}
	vainSince        int64
}

// waiter is a request that waits. gone is closed when it has to give up its place.
type waiter struct {
	account int64
	gone    chan struct{}
}

// enter returns a place for one more request of an account, nil if it may not wait. The place has to
// be left.
func (w *waiters) enter(account, now int64) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of, w.vain = map[int64]int{}, map[int64]struct{}{}
	}
	w.forgetOld(now)
	own, free := w.of[account], MaxWaiting-len(w.line)
	vain := w.inVain(account)
	if vain {
		w.vain[account] = struct{}{}
		free -= MaxWaiting / 2
	}
	switch {
	case own > 0 && 2*own >= free, vain && free <= 0:
		return nil
	case free <= 0:
		longest := w.line[0] // it leaves undecided
		w.drop(longest)
		close(longest.gone)
	}
	entered := &waiter{account, make(chan struct{})}
	w.line = append(w.line, entered)
	w.of[account]++
	return entered
}

// leave frees a place that was not given up. decided says that its account did not wait in vain.
func (w *waiters) leave(left *waiter, decided bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(left)
	if !decided {
		w.vain[left.account] = struct{}{}
		return
	}
	delete(w.vain, left.account)
	delete(w.vainBefore, left.account)
}

func (w *waiters) drop(dropped *waiter) {
	at := slices.Index(w.line, dropped)
	if at < 0 {
		return
	}
	w.line = slices.Delete(w.line, at, at+1)
	if w.of[dropped.account]--; w.of[dropped.account] == 0 {
		delete(w.of, dropped.account)
	}
}

// forgetOld drops accounts whose vain waits are old. A clock that went back begins anew.
func (w *waiters) forgetOld(now int64) {
	past := now - w.vainSince
	if past >= 0 && past < vainMillis {
		return
	}
	w.vain, w.vainBefore, w.vainSince = map[int64]struct{}{}, w.vain, now
	if past >= 2*vainMillis { // no request has waited since
		clear(w.vainBefore)
	}
}

func (w *waiters) inVain(account int64) bool {
	_, lately := w.vain[account]
	_, before := w.vainBefore[account]
	return lately || before
}

func (w *waiters) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.line)
}

// Waiting is the number of requests that wait for a lease now, at most MaxWaiting.
func (m *Meter) Waiting() int { return m.waiters.count() }
