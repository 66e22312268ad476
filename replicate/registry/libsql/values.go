package libsql

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Result is what a statement returned.
type Result struct {
	Columns  []struct{ Name string } `json:"cols"`
	Rows     [][]Value
	Affected int64 `json:"affected_row_count"`
}

// Text is the text of a column of a row, empty for NULL.
func (r *Result) Text(row, column int) string { return r.Rows[row][column].Text }

// Int is the integer of a column of a row, 0 for anything else.
func (r *Result) Int(row, column int) int64 { return r.Rows[row][column].Int }

// Kind is the storage class of a value.
type Kind byte

// The storage classes.
const (
	Null Kind = iota
	Integer
	Float
	Text
	Blob
)

// Value is one column of a row: Int for an integer, Text for text or the bytes of a blob.
type Value struct {
	Kind  Kind
	Int   int64
	Float float64
	Text  string
}

// UnmarshalJSON reads a value as the server writes it. Base64 comes with or without
// padding.
func (v *Value) UnmarshalJSON(raw []byte) error {
	var w struct {
		Type   string
		Value  json.RawMessage
		Base64 string
	}
	err := json.Unmarshal(raw, &w)
	if err != nil {
		return err
	}
	*v = Value{}
	switch w.Type {
	case "null":
	case "integer":
		v.Kind = Integer
		v.Int, err = strconv.ParseInt(strings.Trim(string(w.Value), `"`), 10, 64)
	case "float":
		v.Kind = Float
		err = json.Unmarshal(w.Value, &v.Float)
	case "text":
		v.Kind = Text
		err = json.Unmarshal(w.Value, &v.Text)
	case "blob":
		var raw []byte
		raw, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(w.Base64, "="))
		v.Kind, v.Text = Blob, string(raw)
	default:
		err = fmt.Errorf("the type %q is not known", w.Type)
	}
	return err
}

type request struct {
	Type      string     `json:"type"`
	Statement *statement `json:"stmt,omitempty"`
	Batch     *batch     `json:"batch,omitempty"`
}

type statement struct {
	SQL      string           `json:"sql"`
	Args     []map[string]any `json:"args,omitempty"`
	WantRows bool             `json:"want_rows"`
}

type batch struct {
	Steps []step `json:"steps"`
}

type step struct {
	Condition *condition `json:"condition,omitempty"`
	Statement *statement `json:"stmt"`
}

type condition struct {
	Type string     `json:"type"`
	Step *int       `json:"step,omitempty"`
	Cond *condition `json:"cond,omitempty"`
}

func newStatement(s Statement) (*statement, error) {
	w := &statement{SQL: s.SQL, WantRows: true}
	for i, arg := range s.Args {
		value, err := newArgument(arg)
		if err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
		w.Args = append(w.Args, value)
	}
	return w, nil
}

func newArgument(arg any) (map[string]any, error) {
	integer := func(n int64) map[string]any {
		return map[string]any{"type": "integer", "value": strconv.FormatInt(n, 10)}
	}
	switch v := arg.(type) {
	case nil:
		return map[string]any{"type": "null"}, nil
	case bool:
		if v {
			return integer(1), nil
		}
		return integer(0), nil
	case int:
		return integer(int64(v)), nil
	case int64:
		return integer(v), nil
	case string:
		return map[string]any{"type": "text", "value": v}, nil
	case []byte:
		return map[string]any{"type": "blob", "base64": base64.RawStdEncoding.EncodeToString(v)}, nil
	}
	return nil, fmt.Errorf("the type %T is not served", arg)
}

// newTransaction puts statements between BEGIN and COMMIT, each run only if the one
// before it was, and a ROLLBACK for when the last was not.
func newTransaction(statements []Statement) (*batch, error) {
	b := &batch{Steps: []step{{Statement: &statement{SQL: "BEGIN IMMEDIATE"}}}}
	for i := range statements {
		w, err := newStatement(statements[i])
		if err != nil {
			return nil, fmt.Errorf("statement %d: %w", i+1, err)
		}
		w.WantRows = false
		b.Steps = append(b.Steps, step{after(len(b.Steps) - 1), w})
	}
	b.Steps = append(b.Steps, step{after(len(b.Steps) - 1), &statement{SQL: "COMMIT"}})
	b.Steps = append(b.Steps, step{
		&condition{Type: "not", Cond: after(len(b.Steps) - 1)}, &statement{SQL: "ROLLBACK"},
	})
	return b, nil
}

func after(step int) *condition { return &condition{Type: "ok", Step: &step} }
