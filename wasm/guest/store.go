package main

import (
	"errors"

	"go.bytecodealliance.org/cm"

	"regedge/handler"
	"regedge/wasm/bindings/fermyon/spin/sqlite"
)

// store is a handler.Store: the label of a database.
type store string

// Query opens the database and runs one statement. Texts and blobs of the result are in the
// memory into which the host wrote them.
func (s store) Query(statement string, args []handler.Value) (*handler.Result, error) {
	opened := sqlite.ConnectionOpen(string(s))
	if opened.IsErr() {
		return nil, storeError(s, "open", opened.Err())
	}
	answer := opened.OK().Execute(statement, parameters(args))
	if answer.IsErr() {
		return nil, storeError(s, "query", answer.Err())
	}
	return result(answer.OK())
}

func storeError(s store, act string, err *sqlite.Error) error {
	reason := err.String()
	if text := err.IO(); text != nil {
		reason = *text
	}
	return errors.New(act + " database " + string(s) + ": " + reason)
}

func parameters(args []handler.Value) cm.List[sqlite.Value] {
	list := make([]sqlite.Value, len(args))
	for i := range args {
		list[i] = parameter(&args[i])
	}
	return cm.ToList(list)
}

func parameter(v *handler.Value) sqlite.Value {
	switch v.Kind {
	case handler.Integer:
		return sqlite.ValueInteger(v.Int)
	case handler.Text:
		return sqlite.ValueText(v.Text)
	case handler.Blob:
		return sqlite.ValueBlob(textBytes(v.Text))
	}
	return sqlite.ValueNull()
}

var errShape = errors.New("read rows: the database returned values that no schema of the service has")

// result converts a result. A row whose length differs from the number of columns, or a value of a
// kind that the schemas do not use, is an error.
func result(answer *sqlite.QueryResult) (*handler.Result, error) {
	rows := answer.Rows.Slice()
	columns := int(answer.Columns.Len())
	r := &handler.Result{Columns: columns, Values: make([]handler.Value, 0, columns*len(rows))}
	for i := range rows {
		values := rows[i].Values.Slice()
		if len(values) != columns {
			return nil, errShape
		}
		for j := range values {
			v, ok := column(&values[j])
			if !ok {
				return nil, errShape
			}
			r.Values = append(r.Values, v)
		}
	}
	return r, nil
}

func column(v *sqlite.Value) (handler.Value, bool) {
	if text := v.Text(); text != nil {
		return handler.Value{Kind: handler.Text, Text: *text}, true
	}
	if integer := v.Integer(); integer != nil {
		return handler.Value{Kind: handler.Integer, Int: *integer}, true
	}
	if blob := v.Blob(); blob != nil {
		return handler.Value{Kind: handler.Blob, Text: bytesText(*blob)}, true
	}
	return handler.Value{}, v.Null()
}
