package writer

import (
	"log/slog"
	"sync"
	"time"
)

// refusalsPause is the shortest time between two lines about messages that are refused since the ledger can't be
// reached.
const refusalsPause = time.Minute

// refusals tells of such messages once, and then now and then how many there were.
type refusals struct {
	mu     sync.Mutex
	count  int // since the ledger was reached
	logged time.Time
}

// note counts a message that was refused with err.
func (r *refusals) note(log *slog.Logger, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if now := time.Now(); r.count == 1 || now.Sub(r.logged) >= refusalsPause {
		r.logged = now
		log.Error("messages of edges are refused: they serve on their leases", "refused", r.count, "error", err)
	}
}

// end notes that a message was taken.
func (r *refusals) end(log *slog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count > 0 {
		log.Info("messages of edges are taken again", "refused", r.count)
	}
	r.count = 0
}
