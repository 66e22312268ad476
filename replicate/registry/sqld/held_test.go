package sqld

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// holding answers each statement with a text of so many bytes, and counts them.
type holding struct{ bytes, asked int }

func (h *holding) Refresh() {}

func (h *holding) Read(_ context.Context, _ string, args []any) (columns []string, values []any, ok bool) {
	h.asked++
	return []string{"text"}, []any{strings.Repeat("x", h.bytes)}, true
}

// answered reports whether a body's statements are answered from what is held.
func answered(h *holding, path, body string) bool {
	g := &readGate{Reads: &Reads{Held: h}}
	return g.answerHeld(httptest.NewRecorder(), httptest.NewRequest("POST", path, nil), []byte(body))
}

// TestWhatIsNotHeldIsTheServers: what changes, depends on a step before, is found by a name, or tells how far the
// replica has got.
func TestWhatIsNotHeldIsTheServers(t *testing.T) {
	for body, held := range map[string]bool{
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT 1"}}]}`:                                                             true,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT 1","want_rows":true}},{"type":"get_autocommit"},{"type":"close"}]}`: true,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT 1","want_rows":false}}]}`:                                           false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT :a","named_args":[{"name":"a","value":{"type":"null"}}]}}]}`:        false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT ?1","args":[{"type":"float","value":1.5}]}}]}`:                      false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT ?1","args":[{"type":"integer","value":"9223372036854775808"}]}}]}`:  false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT ?1","args":[{"type":"blob","base64":"!"}]}}]}`:                      false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT ?1","args":[{"type":"blob","base64":"AA=="}]}}]}`:                   true,
		`{"requests":[{"type":"execute","stmt":{"sql_id":1}}]}`:                                                                   false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT max(beat) FROM Heartbeat"}}]}`:                                      false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT 1"}},{"type":"describe","sql":"SELECT 1"}]}`:                        false,
		`{"requests":[{"type":"sequence","sql":"SELECT 1"}]}`:                                                                     false,
		`{"requests":[{"type":"close"}]}`: false,
		`{"requests":[{"type":"batch","batch":{"steps":[{"stmt":{"sql":"SELECT 1"}},{"condition":{"type":"ok","step":0},"stmt":{"sql":"x"}}]}}]}`: false,
		`{"requests":[{"type":"batch","batch":{"steps":[{"condition":null,"stmt":{"sql":"SELECT 1"}}]}}]}`:                                        true,
		`{"requests":[{"type":"batch"}]}`: false,
		`{"requests":7}`:                  false,
	} {
		require.Equal(t, held, answered(new(holding), "/v3/pipeline", body), body)
	}
	require.True(t, answered(new(holding), cursorPath, `{"batch":{"steps":[{"stmt":{"sql":"SELECT 1"}}]}}`))
	require.False(t, answered(new(holding), cursorPath, `{"requests":[{"type":"execute","stmt":{"sql":"SELECT 1"}}]}`))
	require.False(t, (&readGate{Reads: new(Reads)}).answerHeld(nil, nil, nil), "nothing can be held")
}

// TestAnAnswerOfWhatIsHeldHasTheFormOfTheServers: no transaction is open after it, and no stream.
func TestAnAnswerOfWhatIsHeldHasTheFormOfTheServers(t *testing.T) {
	g := &readGate{Reads: &Reads{Held: &holding{bytes: 3}}}
	answer := func(path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		require.True(t, g.answerHeld(w, httptest.NewRequest("POST", path, nil), []byte(body)))
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		return w
	}
	const found = `"rows":[[{"type":"text","value":"xxx"}]],"affected_row_count":0,"last_insert_rowid":null`
	require.JSONEq(t, `{"baton":null,"base_url":null,"results":[
		{"type":"ok","response":{"type":"execute","result":{"cols":[{"name":"text","decltype":null}],`+found+`}}},
		{"type":"ok","response":{"type":"batch","result":{"step_results":[{"cols":[{"name":"text","decltype":null}],`+found+`}],"step_errors":[null]}}},
		{"type":"ok","response":{"type":"get_autocommit","is_autocommit":true}},
		{"type":"ok","response":{"type":"close"}}]}`,
		answer("/v2/pipeline", `{"baton":"before","requests":[{"type":"execute","stmt":{"sql":"SELECT 1"}},
			{"type":"batch","batch":{"steps":[{"stmt":{"sql":"SELECT 1"}}]}},{"type":"get_autocommit"},{"type":"close"}]}`).Body.String())
	var lines []string
	for line := range strings.Lines(answer(cursorPath, `{"batch":{"steps":[{"stmt":{"sql":"SELECT 1"}}]}}`).Body.String()) {
		lines = append(lines, line)
	}
	require.Len(t, lines, 4)
	require.JSONEq(t, `{"baton":null,"base_url":null}`, lines[0])
	require.JSONEq(t, `{"type":"step_begin","step":0,"cols":[{"name":"text","decltype":null}]}`, lines[1])
	require.JSONEq(t, `{"type":"row","row":[{"type":"text","value":"xxx"}]}`, lines[2])
	require.JSONEq(t, `{"type":"step_end","affected_row_count":0,"last_insert_rowid":null}`, lines[3])
}

// TestAnAnswerOfWhatIsHeldIsBounded, in statements and bytes: an edge's token must not fill this process's memory.
func TestAnAnswerOfWhatIsHeldIsBounded(t *testing.T) {
	batch := func(steps int) string {
		return fmt.Sprintf(`{"requests":[{"type":"batch","batch":{"steps":[%s]}}]}`,
			strings.TrimSuffix(strings.Repeat(`{"stmt":{"sql":"SELECT 1"}},`, steps), ","))
	}
	require.True(t, answered(new(holding), "/v2/pipeline", batch(heldStatements)))
	many := new(holding)
	require.False(t, answered(many, "/v2/pipeline", batch(10*heldStatements)))
	require.Equal(t, heldStatements, many.asked)
	require.True(t, answered(&holding{bytes: heldBytes/4 - 32}, "/v2/pipeline", batch(4)))
	large := &holding{bytes: heldBytes / 4}
	require.False(t, answered(large, "/v2/pipeline", batch(20)))
	require.Equal(t, 4, large.asked)
}
