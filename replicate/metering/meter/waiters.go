package meter

import "sync"

// MaxWaiting bounds the requests that wait for a lease at once.
const MaxWaiting = 128

// waiters counts the requests that wait for a lease. An account may have half as many as there are
// free places: 43 if it is alone, 28 if it is the second, so that several accounts leave room for
// others. One whose last credits are at an edge that is away would else fill the edge with requests
// that wait in vain.
//
// The lock is taken only by requests that can't be decided here, and nothing is called under it.
type waiters struct {
	mu  sync.Mutex
	all int
	of  map[int64]int // by account
}

// enter reports whether one more request of an account may wait. If so, leave has to be called.
func (w *waiters) enter(account int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= MaxWaiting || w.of[account] > 0 && 2*w.of[account] >= MaxWaiting-w.all {
		return false
	}
	if w.of == nil {
		w.of = map[int64]int{}
	}
	w.all++
	w.of[account]++
	return true
}

func (w *waiters) leave(account int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.of[account]--; w.of[account] == 0 {
		delete(w.of, account)
	}
}

func (w *waiters) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// Waiting is the number of requests that wait for a lease now, at most MaxWaiting.
func (m *Meter) Waiting() int { return m.waiters.count() }
