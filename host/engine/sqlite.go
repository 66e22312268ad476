package engine

import (
	"context"

	"regedge/handler"
)

// Database runs read-only statements. It is shared by all requests; a handler.Store is one request's
// view of it. Query fills dst, reusing its memory; the texts in it are valid until dst is reused. An
// error means that the database could not be read.
type Database interface {
	Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error
}

// Limits on the use of databases in one request. A lookup runs two statements.
const (
	maxStatements     = 16
	maxConnections    = 16
	maxParameters     = 64
	maxStatementTexts = 64 // cached by an instance
	maxErrorText      = 256
)

// The cases of the variant error of fermyon:spin/sqlite.
const (
	sqliteNoSuchDatabase = 0
	sqliteIO             = 4
)

// The cases of the variant value, each 16 bytes, its content at byte 8.
const (
	valueInteger = iota
	valueReal
	valueText
	valueBlob
	valueNull
)

const valueSize = 16

// sqliteImports are the functions of fermyon:spin/sqlite.
func sqliteImports() []function {
	return []function{
		define(spinSQLite, "[static]connection.open", "iii:", sqliteOpen),
		define(spinSQLite, "[method]connection.execute", "iiiiii:", sqliteExecute),
		drop(spinSQLite, kindConnection),
	}
}

// sqliteOpen is static connection.open: (string) -> result<connection, error>.
func sqliteOpen(i *instance, stack []uint64) {
	database, ok := i.engine.config.Databases[string(i.text(uint32(stack[0]), uint32(stack[1])))]
	out := i.out(uint32(stack[2]), 16, 4)
	if !ok {
		put32(out, 0, 1)
		put32(out, 4, sqliteNoSuchDatabase)
		return
	}
	if len(i.databases) == maxConnections {
		trap("over %d connections", maxConnections)
	}
	i.databases = append(i.databases, database)
	put32(out, 0, 0)
	put32(out, 4, i.add(kindConnection, len(i.databases)-1, noParent))
}

// sqliteExecute is connection.execute: (string, list<value>) ->
// result<query-result, error>.
func sqliteExecute(i *instance, stack []uint64) {
	database := i.databases[i.ref(stack[0], kindConnection)]
	if i.statements++; i.statements > maxStatements {
		trap("over %d statements", maxStatements)
	}
	statement := i.statementText(uint32(stack[1]), uint32(stack[2]))
	i.liftParameters(uint32(stack[3]), uint32(stack[4]))
	if err := database.Query(i.ctx, statement, i.parameters, &i.result); err != nil {
		i.failExecute(uint32(stack[5]), err)
		return
	}
	rows, columns := i.lowerResult(&i.result)
	out := i.out(uint32(stack[5]), 20, 4)
	put32(out, 0, 0)
	put32(out, 4, columns)
	put32(out, 8, uint32(i.result.Columns))
	put32(out, 12, rows)
	put32(out, 16, uint32(i.result.Rows()))
}

func (i *instance) failExecute(at uint32, err error) {
	if i.response.Cause == nil {
		i.response.Cause = err
	}
	text := err.Error()
	ptr, size := i.lowerText(text[:min(len(text), maxErrorText)])
	out := i.out(at, 20, 4)
	put32(out, 0, 1)
	put32(out, 4, sqliteIO)
	put32(out, 8, ptr)
	put32(out, 12, size)
}

// statementText copies a statement out of guest memory. A guest sends the same few again and again,
// so the copies are cached.
func (i *instance) statementText(ptr, size uint32) string {
	b := i.bytes(ptr, size)
	for _, known := range i.statementTexts {
		if len(known) == len(b) && known == string(b) {
			return known
		}
	}
	text := string(i.text(ptr, size))
	if len(i.statementTexts) < maxStatementTexts {
		i.statementTexts = append(i.statementTexts, text)
	}
	return text
}

// liftParameters copies a statement's parameters out of guest memory.
func (i *instance) liftParameters(ptr, count uint32) {
	if count > maxParameters {
		trap("over %d parameters", maxParameters)
	}
	i.parameters = i.parameters[:0]
	for v := i.list(ptr, count, valueSize, 8); len(v) > 0; v = v[valueSize:] {
		i.parameters = append(i.parameters, i.liftValue(v))
	}
}

func (i *instance) liftValue(v []byte) handler.Value {
	switch v[0] {
	case valueInteger:
		return handler.Value{Kind: handler.Integer, Int: int64(get64(v, 8))}
	case valueText:
		return handler.Value{Kind: handler.Text, Text: string(i.text(get32(v, 8), get32(v, 12)))}
	case valueBlob:
		return handler.Value{Kind: handler.Blob, Text: string(i.bytes(get32(v, 8), get32(v, 12)))}
	case valueNull:
		return handler.Value{}
	}
	trap("SQL parameter of case %d", v[0])
	return handler.Value{}
}

// lowerResult copies a result into guest memory. It returns pointers to the list of rows and to the
// list of column names. The names are empty, because the guest reads columns by position.
func (i *instance) lowerResult(r *handler.Result) (rows, columns uint32) {
	b := i.newBlock(resultSize(r))
	count, width := r.Rows(), uint32(r.Columns)
	values, at := b.list(uint32(len(r.Values)) * valueSize)
	lists, rows := b.list(uint32(count) * 8)
	names, columns := b.list(width * 8)
	clear(names)
	for n := range count {
		put32(lists, n*8, at+uint32(n)*width*valueSize)
		put32(lists, n*8+4, width)
	}
	for n := range r.Values {
		b.putValue(values[n*valueSize:], &r.Values[n])
	}
	return rows, columns
}

// resultSize returns the size of a result in guest memory. It makes the texts valid UTF-8.
func resultSize(r *handler.Result) uint64 {
	size := uint64(len(r.Values))*valueSize + uint64(r.Rows()+r.Columns)*8
	for n := range r.Values {
		v := &r.Values[n]
		if v.Kind == handler.Text {
			v.Text = validText(v.Text)
		}
		if v.Kind == handler.Text || v.Kind == handler.Blob {
			size += uint64(len(v.Text))
		}
	}
	return size
}

func (b *block) putValue(out []byte, v *handler.Value) {
	which, content := uint64(valueNull), uint64(0)
	switch v.Kind {
	case handler.Integer:
		which, content = valueInteger, uint64(v.Int)
	case handler.Text:
		which, content = valueText, pack(b.put(v.Text))
	case handler.Blob:
		which, content = valueBlob, pack(b.put(v.Text))
	}
	put64(out, 0, which)
	put64(out, 8, content)
}

// pack combines a pointer and a size as they are laid out in memory.
func pack(ptr, size uint32) uint64 { return uint64(ptr) | uint64(size)<<32 }
