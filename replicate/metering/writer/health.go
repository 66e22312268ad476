package writer

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

// probeLimit bounds a query of the ledger for a readiness probe or a scrape.
const probeLimit = time.Second

func (w *Writer) health(r *http.Request, _ httprouter.Params) (any, error) {
	h := Health{Generation: w.generation, Waiting: []string{}, Now: w.config.Now().UTC()}
	err := w.look(r, func(_ context.Context, _ *sql.Tx, now int64, l *ledger.Ledger) error {
		h.Restoring = l.Restoring
		h.Waiting = append(h.Waiting, l.Awaited()...)
		h.Live = l.LiveEdges(now)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// stuckAfter is how long one turn of the commit loop, which has work every second, may take before the
// writer is not ready.
const stuckAfter = 5 * time.Second

// failuresInARow is how many commits must fail in a row before the writer is not ready: a single one may meet
// a lock.
const failuresInARow = 2

// serveReady answers 200 while this writer holds the ledger, can read it, and commits. It only names an access
// database that is behind, a wrong clock or a restore that waits for nodes: the ledger is served all the same, since no node spends more than
// it was lent, and a node that is not served can spend nothing.
func (w *Writer) serveReady(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	ctx, cancel := context.WithTimeout(r.Context(), probeLimit)
	defer cancel()
	var generation uint64
	var restoring bool
	err := w.config.Ledger.QueryRowContext(ctx, `SELECT generation, restoring FROM writer`).Scan(&generation, &restoring)
	switch {
	case w.away.Load():
		http.Error(rw, errAway.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(rw, "the ledger can't be read", http.StatusServiceUnavailable)
	case generation != w.generation || w.fenced.Load():
		http.Error(rw, ErrFenced.Error(), http.StatusServiceUnavailable)
	case w.unread.Load():
		http.Error(rw, "the ledger can't be read: the writer's log says why", http.StatusServiceUnavailable)
	case w.stuck() > stuckAfter:
		http.Error(rw, fmt.Sprintf("the commit loop has not answered for %.0f s: the ledger's disk or server hangs", w.stuck().Seconds()),
			http.StatusServiceUnavailable)
	case w.unwritten.Load() >= failuresInARow:
		http.Error(rw, "the ledger can't be written: the writer's log says why", http.StatusServiceUnavailable)
	default:
		io.WriteString(rw, "ready\n")
		if restoring {
			io.WriteString(rw, "the ledger came back from a backup: it grants no leases until every node has reported or is retired\n")
		}
		if wrong := w.clocks.wrong(); wrong != "" {
			fmt.Fprintln(rw, wrong)
		}
		for _, remark := range w.remarks {
			if text := remark(); text != "" {
				fmt.Fprintln(rw, text)
			}
		}
		if changes, age := w.projector.behind(); age > projectWait {
			fmt.Fprintf(rw, "the access database misses %d changes, the oldest for %.0f s", changes, age.Seconds())
			if why := w.projector.why(); why != "" {
				io.WriteString(rw, ": "+why)
			}
			io.WriteString(rw, "\n")
		}
	}
}

// Remark adds remark to what readiness says while the writer is ready, unless it returns "". It must not be
// called once the writer's API is served.
func (w *Writer) Remark(remark func() string) { w.remarks = append(w.remarks, remark) }

// stuck is how long the commit loop has been at one thing, 0 while it waits for work and before Run.
func (w *Writer) stuck() time.Duration {
	if begun := w.busySince.Load(); begun != nil {
		return time.Since(*begun)
	}
	return 0
}
