package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

func (w *Writer) health(r *http.Request, _ httprouter.Params) (any, error) {
	h := Health{Generation: w.generation, Waiting: []string{}, Now: w.config.Now().UTC()}
	look := func(_ context.Context, _ *sql.Tx, now int64, l *ledger.Ledger) error {
		h.Restoring = l.Restoring
		h.Waiting = append(h.Waiting, l.Awaited()...)
		h.Live = l.LiveEdges(now)
		return errNothing
	}
	if err := w.change(r, look, nil); !errors.Is(err, errNothing) {
		return nil, err
	}
	return h, nil
}

// serveReady answers 200 while the ledger is held and can be read.
func (w *Writer) serveReady(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	var generation uint64
	err := w.config.Ledger.QueryRowContext(ctx, `SELECT generation FROM writer`).Scan(&generation)
	switch {
	case err != nil:
		http.Error(rw, "the ledger can't be read", http.StatusServiceUnavailable)
	case generation != w.generation || w.fenced.Load():
		http.Error(rw, ErrFenced.Error(), http.StatusServiceUnavailable)
	default:
		io.WriteString(rw, "ready\n")
	}
}

// counters count what /metrics tells.
type counters struct{ groups, operations, failures atomic.Int64 }

func (c *counters) group(operations int, err error) {
	c.groups.Add(1)
	c.operations.Add(int64(operations))
	if err != nil {
		c.failures.Add(1)
	}
}

// metric is one number of /metrics.
type metric struct {
	name, help, kind string
	value            int64
}

// serveMetrics answers in Prometheus' text form. What the ledger can't be asked for is
// left out.
func (w *Writer) serveMetrics(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	list := []metric{
		{"regedge_writer_generation", "Generation of the ledger that this writer holds.", "gauge", int64(w.generation)},
		{"regedge_writer_groups_total", "Groups of edges' messages committed together.", "counter", w.metrics.groups.Load()},
		{"regedge_writer_messages_total", "Edges' messages in those groups.", "counter", w.metrics.operations.Load()},
		{"regedge_writer_failed_groups_total", "Groups whose commit failed or is unknown.", "counter", w.metrics.failures.Load()},
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	var unresolved int64
	if err := w.config.Ledger.QueryRowContext(ctx, `SELECT count(*) FROM unresolved WHERE credited = 0`).Scan(&unresolved); err == nil {
		list = append(list, metric{"regedge_writer_unresolved_charges", "Charges in doubt that nobody has credited.", "gauge", unresolved})
	}
	rw.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, m := range list {
		fmt.Fprintf(rw, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
}
