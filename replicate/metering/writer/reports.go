package writer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

// ReportPath is where edges report their state, and where operators read it.
const ReportPath = "/v1/reports"

// Report is the state of an edge, sent every few seconds. The writer keeps the last one in
// memory.
type Report struct {
	Node    string    `json:"node"` // set by the writer, from the edge's token
	At      time.Time `json:"at"`   // set by the writer
	Address string    `json:"address"`
	Version string    `json:"version"`
	Commit  string    `json:"commit"` // "" when the build did not record it
	// Component is the SHA-256 of the WebAssembly component, in hex; "" from programs that did not report it.
	Component string    `json:"component"`
	Release   string    `json:"release"`             // of the registry, empty for none
	Ready     string    `json:"ready"`               // empty, or why the edge is not ready
	Replicas  []Replica `json:"replicas"`            // none for databases that are files
	Refused   int64     `json:"refused_for_a_lease"` // requests, since the edge started
	// Unsettled is how many charges of the edge the writer may not have.
	Unsettled int64 `json:"unsettled"`
}

// Replica is how an edge reads a database.
type Replica struct {
	Database string `json:"database"`
	// AgeMillis is the age of its heartbeat, -1 while there is none.
	AgeMillis int64 `json:"age_millis"`
	// Fallback says that the edge reads the endpoint instead of the file.
	Fallback bool `json:"fallback"`
}

// Lag is the age of the edge's replica of a database, as text. It is "" when the edge reads the
// file that is written.
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

// reportStore keeps the last report of each edge.
type reportStore struct {
	w      *Writer
	mu     sync.Mutex
	byEdge map[string]Report
	tokens map[string]map[string]string // left by PassReadTokens for edges, by node and database
}

// put stores a report.
func (s *reportStore) put(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	name, ok := s.w.edgeOf(r)
	if !ok {
		s.w.fail(rw, r, ErrUnauthorized)
		return
	}
	var report Report
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&report); err != nil {
		s.w.fail(rw, r, fmt.Errorf("%w: %w", ErrMalformed, err))
		return
	}
	report.Node, report.At = name, s.w.config.Now().UTC()
	retired := s.w.isRetired(name)
	s.mu.Lock()
	if s.byEdge == nil {
		s.byEdge = make(map[string]Report)
	}
	s.byEdge[name] = report
	var answer ReportAnswer
	if !retired {
		answer.ReadTokens = s.tokens[name]
	}
	s.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "no-store")
	json.NewEncoder(rw).Encode(answer)
}

func (s *reportStore) list(*http.Request, httprouter.Params) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Report, 0, len(s.byEdge))
	for _, report := range s.byEdge {
		list = append(list, report)
	}
	slices.SortFunc(list, func(a, b Report) int { return strings.Compare(a.Node, b.Node) })
	return list, nil
}

// Reports lists the edges' last reports, by name.
func (c *Client) Reports(ctx context.Context) ([]Report, error) {
	return call[[]Report](ctx, c, "list reports", http.MethodGet, ReportPath, nil)
}

// Report sends the state of an edge. The client needs the edge's token.
func (c *Client) Report(ctx context.Context, report Report) (ReportAnswer, error) {
	return call[ReportAnswer](ctx, c, "report", http.MethodPost, ReportPath, report)
}

// ReportAnswer is the answer to a report.
type ReportAnswer struct {
	// ReadTokens are newer tokens for the edge's replicas, by database.
	ReadTokens map[string]string `json:"read_tokens,omitempty"`
}

// PassReadTokens leaves tokens for an edge's replicas, by database, which the edge gets in the answer
// to its next report. The writer keeps them in memory. It returns ErrRetired for an edge that is retired.
func (c *Client) PassReadTokens(ctx context.Context, node string, tokens map[string]string) error {
	path := "/v1/nodes/" + url.PathEscape(node) + "/read-tokens"
	_, err := changeOnce[struct{}](ctx, c, "pass tokens on", http.MethodPut, path, ReportAnswer{tokens})
	return err
}

// putTokens keeps tokens for an edge.
func (s *reportStore) putTokens(r *http.Request, p httprouter.Params) (any, error) {
	var body ReportAnswer
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	name := p.ByName("name")
	setActDetail(r, "tokens for "+strings.Join(slices.Sorted(maps.Keys(body.ReadTokens)), ", "))
	made := false
	change := func(_ context.Context, _ *sql.Tx, _ int64, l *ledger.Ledger) error {
		switch e := l.Edge(name); {
		case e == nil:
			return notFound("node", name)
		case e.Retired:
			return ErrRetired
		}
		made = true
		return nil
	}
	answer, err := apply(s.w, r, edit[struct{}]{change: change, answer: given(&struct{}{})})
	if err == nil && (made || !s.hasTokens(name)) { // a call is repeated, and the writer was started again meanwhile
		s.keepTokens(name, body.ReadTokens)
	}
	return answer, err
}

func (s *reportStore) keepTokens(node string, tokens map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens == nil {
		s.tokens = make(map[string]map[string]string)
	}
	s.tokens[node] = tokens
}

func (s *reportStore) hasTokens(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[node] != nil
}

// dropTokens forgets the tokens of a retired edge.
func (s *reportStore) dropTokens(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, node)
}
