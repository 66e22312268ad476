package writer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/julienschmidt/httprouter"
)

// ReportPath is where edges say how they are, and where operators read it.
const ReportPath = "/v1/reports"

// Report is what an edge says of itself every few seconds. The writer keeps the last one
// in memory.
type Report struct {
	Node     string    `json:"node"` // set by the writer, from the edge's token
	At       time.Time `json:"at"`   // set by the writer
	Address  string    `json:"address"`
	Version  string    `json:"version"`
	Release  string    `json:"release"`             // of the registry, empty for none
	Ready    string    `json:"ready"`               // empty, or why the edge is not ready
	Replicas []Replica `json:"replicas"`            // none for databases that are files
	Refused  int64     `json:"refused_for_a_lease"` // requests, since the edge started
	// Unsettled is how many charges the edge has not settled with the writer.
	Unsettled int64 `json:"unsettled"`
}

// Replica is how an edge reads a database.
type Replica struct {
	Database string `json:"database"`
	// AgeMillis is the age of its heartbeat, -1 while there is none.
	AgeMillis int64 `json:"age_millis"`
	// Fallback says that the endpoint is read in place of the file.
	Fallback bool `json:"fallback"`
}

// Lag is how old the edge's copy of a database is, in words, and "" for one that is read
// from the very file that is written.
func (r *Report) Lag(database string) string {
	for _, replica := range r.Replicas {
		if replica.Database != database {
			continue
		}
		age := "unknown"
		if replica.AgeMillis >= 0 {
			age = (time.Duration(replica.AgeMillis) * time.Millisecond).Round(100 * time.Millisecond).String()
		}
		if replica.Fallback {
			age += " (endpoint)"
		}
		return age
	}
	return ""
}

// board keeps the last report of each edge.
type board struct {
	w  *Writer
	mu sync.Mutex
	of map[string]Report
}

// WithReports serves what Handler does, and the edges' reports.
func (w *Writer) WithReports() http.Handler {
	b := &board{w: w, of: make(map[string]Report)}
	list := w.operator(w.answering(b.list))
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == ReportPath && r.Method == http.MethodPost:
			b.take(rw, r)
		case r.URL.Path == ReportPath && r.Method == http.MethodGet:
			list(rw, r, nil)
		default:
			w.handler.ServeHTTP(rw, r)
		}
	})
}

// take keeps a report.
func (b *board) take(rw http.ResponseWriter, r *http.Request) {
	name, ok := b.w.edgeOf(r)
	if !ok {
		b.w.fail(rw, r, ErrUnauthorized)
		return
	}
	var report Report
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&report); err != nil {
		b.w.fail(rw, r, fmt.Errorf("%w: %w", ErrMalformed, err))
		return
	}
	report.Node, report.At = name, b.w.config.Now().UTC()
	b.mu.Lock()
	b.of[name] = report
	b.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json")
	io.WriteString(rw, "{}\n")
}

func (b *board) list(*http.Request, httprouter.Params) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Report, 0, len(b.of))
	for _, report := range b.of {
		list = append(list, report)
	}
	slices.SortFunc(list, func(a, b Report) int { return strings.Compare(a.Node, b.Node) })
	return list, nil
}

// Reports lists the edges' last reports, by name.
func (c *Client) Reports(ctx context.Context) ([]Report, error) {
	return call[[]Report](ctx, c, "list reports", http.MethodGet, ReportPath, nil)
}

// Report says how an edge is; the client's token is the edge's.
func (c *Client) Report(ctx context.Context, report Report) error {
	_, err := call[struct{}](ctx, c, "report", http.MethodPost, ReportPath, report)
	return err
}
