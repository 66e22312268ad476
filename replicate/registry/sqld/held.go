package sqld

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Held answers reads from the previous release while a push is under way. sqld itself shows each transaction of a push
// as it comes, so its answers would mix two releases.
type Held interface {
	// Refresh looks whether a push is under way. It is called every second, by one goroutine.
	Refresh()
	// Read runs one statement with the parameters ?1, ?2, …, and returns its column names and the values row by row;
	// parameters and values are nil, int64, string or []byte. It reports false if the server has to answer: while
	// nothing is held, or if Read can't run the statement. It is called concurrently.
	Read(ctx context.Context, statement string, args []any) (columns []string, values []any, ok bool)
}

const (
	// heldPause is the time between two checks whether a push is under way. A push waits 3 s before its first record.
	heldPause = time.Second
	// wakeLimit bounds a query that wakes the server.
	wakeLimit = 5 * time.Second
	// heldStatements and heldBytes bound what is answered to one call; the server has bounds of its own.
	heldStatements = 64
	heldBytes      = 4 << 20
	// newest names the table whose rows are always read from the server: they tell how far the replica has got.
	newest = "heartbeat"
)

// call is a request for statements, in the parts of libSQL's protocol that clients use for reads
// (https://github.com/tursodatabase/libsql/blob/main/docs/HRANA_3_SPEC.md): a pipeline
// has requests, a cursor a batch.
type call struct {
	Requests []struct {
		Type  string     `json:"type"`
		Stmt  *statement `json:"stmt"`
		Batch *batch     `json:"batch"`
	} `json:"requests"`
	Batch *batch `json:"batch"`
}

type batch struct {
	Steps []struct {
		Condition json.RawMessage `json:"condition"`
		Stmt      statement       `json:"stmt"`
	} `json:"steps"`
}

type statement struct {
	SQL       string            `json:"sql"`
	Args      []value           `json:"args"`
	NamedArgs []json.RawMessage `json:"named_args"`
	WantRows  *bool             `json:"want_rows"`
}

// value is a parameter, or a cell of a row.
type value struct {
	Type   string  `json:"type"`
	Value  any     `json:"value,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

// result is what a statement has found. Fields that only a change could set are always zero.
type result struct {
	Columns      []column  `json:"cols"`
	Rows         [][]value `json:"rows"`
	Affected     int       `json:"affected_row_count"`
	LastInserted *string   `json:"last_insert_rowid"`
}

type column struct {
	Name string  `json:"name"`
	Type *string `json:"decltype"`
}

// errToServer says that the server has to answer.
var errToServer = errors.New("the server answers")

// answerHeld answers a call from what is held, wholly or not at all.
func (g *readGate) answerHeld(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if g.Held == nil {
		return false
	}
	var c call
	if json.Unmarshal(body, &c) != nil {
		return false
	}
	h := &held{ctx: r.Context(), from: g.Held}
	form := h.pipeline
	if r.URL.Path == cursorPath {
		form = h.cursor
	}
	answer, err := form(c)
	if err != nil {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
	return true
}

// held answers one call.
type held struct {
	ctx        context.Context
	from       Held
	statements int // that were run
	bytes      int // of what they have found
}

// pipeline answers a pipeline's requests. It ends the stream that the client may have with the server: the answer has
// no baton.
func (h *held) pipeline(c call) ([]byte, error) {
	results := make([]any, len(c.Requests))
	reads := 0
	for i, request := range c.Requests {
		response := map[string]any{"type": request.Type}
		var err error
		switch {
		case request.Type == "execute" && request.Stmt != nil:
			response["result"], err = h.execute(*request.Stmt)
			reads++
		case request.Type == "batch" && request.Batch != nil:
			var steps []*result
			steps, err = h.steps(request.Batch)
			response["result"] = map[string]any{"step_results": steps, "step_errors": make([]*string, len(steps))}
			reads++
		case request.Type == "get_autocommit":
			response["is_autocommit"] = true
		case request.Type != "close":
			err = errToServer
		}
		if err != nil {
			return nil, err
		}
		results[i] = map[string]any{"type": "ok", "response": response}
	}
	if reads == 0 {
		return nil, errToServer // such as the end of a stream
	}
	return json.Marshal(map[string]any{"baton": nil, "base_url": nil, "results": results})
}

// cursor answers a cursor: a line for each step's beginning, row and end.
func (h *held) cursor(c call) ([]byte, error) {
	if c.Batch == nil {
		return nil, errToServer
	}
	steps, err := h.steps(c.Batch)
	if err != nil {
		return nil, err
	}
	lines := []any{map[string]any{"baton": nil, "base_url": nil}}
	for i, step := range steps {
		lines = append(lines, map[string]any{"type": "step_begin", "step": i, "cols": step.Columns})
		for _, row := range step.Rows {
			lines = append(lines, map[string]any{"type": "row", "row": row})
		}
		lines = append(lines, map[string]any{"type": "step_end", "affected_row_count": 0, "last_insert_rowid": nil})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text) // which ends each value with a line feed
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// steps runs the statements of a batch, of which none may depend on another.
func (h *held) steps(b *batch) ([]*result, error) {
	results := make([]*result, len(b.Steps))
	for i, step := range b.Steps {
		if len(step.Condition) > 0 && string(step.Condition) != "null" {
			return nil, errToServer
		}
		var err error
		if results[i], err = h.execute(step.Stmt); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (h *held) execute(s statement) (*result, error) {
	if len(s.NamedArgs) > 0 || s.WantRows != nil && !*s.WantRows || s.SQL == "" || strings.Contains(strings.ToLower(s.SQL), newest) {
		return nil, errToServer
	}
	args := make([]any, len(s.Args))
	for i, arg := range s.Args {
		var err error
		if args[i], err = arg.decode(); err != nil {
			return nil, err
		}
	}
	if h.statements++; h.statements > heldStatements {
		return nil, errToServer
	}
	names, values, ok := h.from.Read(h.ctx, s.SQL, args)
	for _, cell := range values {
		h.bytes += sizeOf(cell)
	}
	if !ok || h.bytes > heldBytes {
		return nil, errToServer
	}
	found := &result{Columns: make([]column, len(names)), Rows: [][]value{}}
	for i, name := range names {
		found.Columns[i].Name = name
	}
	for ; len(names) > 0 && len(values) >= len(names); values = values[len(names):] {
		row := make([]value, len(names))
		for i := range row {
			row[i] = encode(values[i])
		}
		found.Rows = append(found.Rows, row)
	}
	return found, nil
}

// decode returns a parameter. A number with a fraction is the server's.
func (v value) decode() (any, error) {
	text, isText := v.Value.(string)
	switch {
	case v.Type == "null":
		return nil, nil
	case v.Type == "text" && isText:
		return text, nil
	case v.Type == "integer" && isText:
		return strconv.ParseInt(text, 10, 64)
	case v.Type == "blob" && v.Base64 != nil:
		return base64.RawStdEncoding.DecodeString(strings.TrimRight(*v.Base64, "="))
	}
	return nil, errToServer
}

// sizeOf is about the length of a cell in an answer.
func sizeOf(cell any) int {
	const least = 32
	switch cell := cell.(type) {
	case string:
		return least + len(cell)
	case []byte:
		return least + len(cell)
	}
	return least
}

func encode(cell any) value {
	switch cell := cell.(type) {
	case int64:
		return value{Type: "integer", Value: strconv.FormatInt(cell, 10)}
	case string:
		return value{Type: "text", Value: cell}
	case []byte:
		text := base64.RawStdEncoding.EncodeToString(cell)
		return value{Type: "blob", Base64: &text}
	}
	return value{Type: "null"}
}

// every calls do each heldPause, until close.
func (g *readGate) every(do func()) {
	ticks := time.NewTicker(heldPause)
	defer ticks.Stop()
	for {
		select {
		case <-g.served:
			return
		case <-ticks.C:
			do()
		}
	}
}

// wake sends the server a query. After a start the server follows its primary only once it was queried, and nobody
// queries it while no edge runs or while Held answers for it.
func (g *readGate) wake() {
	ctx, cancel := context.WithTimeout(g.ctx, wakeLimit)
	defer cancel()
	const body = `{"requests":[{"type":"execute","stmt":{"sql":"SELECT 1"}},{"type":"close"}]}`
	query, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.inner+"/v2/pipeline", strings.NewReader(body))
	if err != nil {
		return
	}
	query.Header = g.header(http.MethodPost)
	if answer, err := g.proxy.Transport.RoundTrip(query); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, headerBytes)) // so that the connection is used again
		_ = answer.Body.Close()
	}
}
