package sqlite

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler"
)

// maxRemembered bounds the results that a connection remembers, at about half a KiB each.
// Its keys that are in use at one time are what an edge has of them.
const maxRemembered = 2048

// maxRememberedBytes bounds the texts of one remembered result.
const maxRememberedBytes = 256

// memory keeps the results of a connection's statements with one parameter for as long
// as the database does not change. It is meant for the small database that every request
// asks for its key.
type memory struct {
	version *sqlite3.Stmt // PRAGMA data_version; nil where nothing is remembered
	seen    int64         // what it returned for the state that the results are of
	// results are found by the value of the parameter: of statements that are asked with the same
	// one, the last is remembered.
	results map[string]remembered
}

// question is a statement with the value of its only parameter.
type question struct {
	statement string
	kind      handler.Kind
	text      string
}

type remembered struct {
	of     question
	result handler.Result
}

func newMemory(sqlite *sqlite3.Conn) (m memory, err error) {
	m.results = make(map[string]remembered)
	if m.version, _, err = sqlite.PrepareFlags("PRAGMA data_version", sqlite3.PREPARE_PERSISTENT); err != nil {
		return m, fmt.Errorf("prepare data_version: %w", err)
	}
	return m, nil
}

// begin forgets everything if the database is in another state than it was when the last
// transaction began. It is called at the start of a transaction, whose state it fixes.
func (m *memory) begin() error {
	if m.version == nil {
		return nil
	}
	var now int64
	if m.version.Step() {
		now = m.version.ColumnInt64(0)
	}
	if err := m.version.Reset(); err != nil {
		clear(m.results)
		return fmt.Errorf("read data_version: %w", err)
	}
	if now != m.seen {
		clear(m.results)
		m.seen = now
	}
	return nil
}

// ask returns the question that a statement is, if its result can be remembered.
func (m *memory) ask(statement string, args []handler.Value) (q question, ok bool) {
	if m.version == nil || len(args) != 1 || args[0].Kind != handler.Blob && args[0].Kind != handler.Text {
		return question{}, false
	}
	return question{statement, args[0].Kind, args[0].Text}, true
}

// recall fills dst with the remembered result of a question.
func (m *memory) recall(q question, dst *handler.Result) bool {
	kept, ok := m.results[q.text]
	if !ok || kept.of != q {
		return false
	}
	dst.Columns, dst.Values = kept.result.Columns, append(dst.Values[:0], kept.result.Values...)
	return true
}

// keep remembers a result that has rows: what is not there, anybody can ask for without
// end. When there are too many, any other is forgotten.
func (m *memory) keep(q question, result *handler.Result) {
	size := len(q.text)
	for i := range result.Values {
		size += len(result.Values[i].Text)
	}
	if size > maxRememberedBytes || result.Rows() == 0 {
		return
	}
	if len(m.results) >= maxRemembered {
		for other := range m.results {
			delete(m.results, other)
			break
		}
	}
	m.results[q.text] = remembered{q, handler.Result{Columns: result.Columns, Values: append([]handler.Value(nil), result.Values...)}}
}

func (m *memory) close() { m.version.Close() }
