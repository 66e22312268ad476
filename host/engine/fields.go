package engine

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"regedge/handler"
	"regedge/handler/fastbytes"
)

// Limits on the header fields that a guest makes: of one list, and of the request.
const (
	maxFields     = 64
	maxFieldBytes = 16 << 10
	maxFieldLists = 32
)

// The cases of header-error.
const (
	headerInvalidSyntax = 0
	headerForbidden     = 1
)

// fieldList is the resource fields.
type fieldList struct{ entries []handler.Header }

// fieldImports are the functions of the resource fields.
func fieldImports() []function {
	return []function{
		define(httpTypes, "[static]fields.from-list", "iii:", fieldsFromList),
		define(httpTypes, "[method]fields.get", "iiii:", fieldsGet),
		define(httpTypes, "[method]fields.entries", "ii:", fieldsEntries),
		drop(httpTypes, kindFields),
	}
}

// newFields adds an empty list, whose slice may have capacity from an earlier request. It returns
// the list and its ref.
func (i *instance) newFields() (*fieldList, int) {
	if len(i.fields) == maxFieldLists {
		trap("over %d lists of header fields", maxFieldLists)
	}
	i.fields = extend(i.fields)
	ref := len(i.fields) - 1
	list := &i.fields[ref]
	list.entries = list.entries[:0]
	return list, ref
}

// fieldsFromList is static fields.from-list: (list<tuple<string, list<u8>>>) ->
// result<fields, header-error>.
func fieldsFromList(i *instance, stack []uint64) {
	count := uint32(stack[1])
	if count > maxFields {
		trap("%d header fields are over the limit of %d", count, maxFields)
	}
	list, ref := i.newFields()
	problem := i.liftFields(list, i.list(uint32(stack[0]), count, 16, 4))
	out := i.out(uint32(stack[2]), 8, 4)
	if problem != none {
		put32(out, 0, 1)
		put32(out, 4, uint32(problem))
		return
	}
	put32(out, 0, 0)
	put32(out, 4, i.add(kindFields, ref, noParent))
}

// liftFields copies fields out of guest memory. The values are slices of one string, so a whole
// response takes one allocation. It returns a header-error or none.
func (i *instance) liftFields(list *fieldList, tuples []byte) (problem int) {
	names, values := uint64(0), uint64(0)
	for t := tuples; len(t) > 0; t = t[16:] {
		names += uint64(get32(t, 4))
		values += uint64(get32(t, 12))
	}
	if names+values > maxFieldBytes {
		trap("header fields of %d bytes are over the limit of %d", names+values, maxFieldBytes)
	}
	var text strings.Builder
	text.Grow(int(values))
	known := i.names.of(len(tuples) / 16)
	for n, t := 0, tuples; len(t) > 0; n, t = n+1, t[16:] {
		raw, value := i.bytes(get32(t, 0), get32(t, 4)), i.bytes(get32(t, 8), get32(t, 12))
		name := known[n]
		if name == "" || name != string(raw) {
			if name, problem = newName(raw); problem != none {
				return problem
			}
			if len(name) <= maxKnownName {
				known[n] = name
			}
		}
		if !validValue(value) {
			return headerInvalidSyntax
		}
		text.Write(value)
		// Slicing is safe: the builder has room for all values and never reallocates.
		end := text.String()
		list.entries = append(list.entries, handler.Header{Name: name, Value: end[len(end)-len(value):]})
	}
	return none
}

// fieldNames caches the field names that the guest used last, by the length of the list. It uses the
// same ones again and again, so they need not be checked and copied each time.
type fieldNames [maxFields + 1][]string

// maxKnownName bounds a cached name, in bytes.
const maxKnownName = 64

// of returns the cached names for lists of count fields; "" where there is none.
func (f *fieldNames) of(count int) []string {
	if len(f[count]) < count {
		f[count] = make([]string, count)
	}
	return f[count]
}

// newName checks and copies the name of a field. It returns "" and a header-error for a bad one.
func newName(name []byte) (text string, problem int) {
	switch {
	case !utf8.Valid(name):
		trap("name of a header field is not UTF-8")
	case !validName(name):
		return "", headerInvalidSyntax
	case forbidden(name):
		return "", headerForbidden
	}
	return string(name), none
}

// fieldsGet is fields.get: (string) -> list<list<u8>>.
func fieldsGet(i *instance, stack []uint64) {
	entries := i.fields[i.ref(stack[0], kindFields)].entries
	name := string(i.text(uint32(stack[1]), uint32(stack[2])))
	count, size := uint32(0), uint64(0)
	for n := range entries {
		if fastbytes.EqualFold(entries[n].Name, name) {
			count++
			size += 8 + uint64(len(entries[n].Value))
		}
	}
	b := i.newBlock(size)
	list, ptr := b.list(count * 8)
	for n := range entries {
		if fastbytes.EqualFold(entries[n].Name, name) && len(list) > 0 {
			put64(list, 0, pack(b.put(entries[n].Value)))
			list = list[8:]
		}
	}
	i.putList(stack[3], ptr, count)
}

// putList writes the pointer and length of a list or a string as a result.
func (i *instance) putList(at uint64, ptr, count uint32) {
	out := i.out(uint32(at), 8, 4)
	put32(out, 0, ptr)
	put32(out, 4, count)
}

// fieldsEntries is fields.entries: () -> list<tuple<string, list<u8>>>.
func fieldsEntries(i *instance, stack []uint64) {
	entries := i.fields[i.ref(stack[0], kindFields)].entries
	size := uint64(len(entries)) * 16
	for n := range entries {
		size += uint64(len(validText(entries[n].Name)) + len(entries[n].Value))
	}
	b := i.newBlock(size)
	list, ptr := b.list(uint32(len(entries)) * 16)
	for n := range entries {
		put64(list, n*16, pack(b.put(validText(entries[n].Name))))
		put64(list, n*16+8, pack(b.put(entries[n].Value)))
	}
	i.putList(stack[1], ptr, uint32(len(entries)))
}

// validName reports whether name is a token (RFC 9110, section 5.6.2).
func validName(name []byte) bool {
	for _, c := range name {
		if !tokenBytes[c] {
			return false
		}
	}
	return len(name) > 0
}

var tokenBytes = tokenTable()

func tokenTable() (table [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		table[c] = true
	}
	return table
}

// validValue reports whether value can be a field value (RFC 9110, section 5.5). It allows no
// control character except tab: with CR or LF a guest could end the field.
func validValue(value []byte) bool {
	for ; len(value) >= fastbytes.Size; value = value[fastbytes.Size:] {
		const del = 0x7f
		if fastbytes.Special(binary.LittleEndian.Uint64(value), del, del) {
			break
		}
	}
	for _, c := range value {
		if !valueBytes[c] {
			return false
		}
	}
	return true
}

var valueBytes = valueTable()

func valueTable() (table [256]bool) {
	for c := range table {
		table[c] = c >= 0x20 && c != 0x7f || c == '\t'
	}
	return table
}

// forbidden reports whether a field describes the connection, which only the host may set.
func forbidden(name []byte) bool {
	if forbiddenLengths>>len(name)&1 == 0 {
		return false // fast path: no forbidden name has this length
	}
	for _, f := range forbiddenFields {
		if fastbytes.EqualFold(f, string(name)) {
			return true
		}
	}
	return false
}

var forbiddenFields = [...]string{
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
	"proxy-connection", "transfer-encoding", "te", "trailer", "upgrade", "host", "http2-settings",
}

// forbiddenLengths has bit n set if a forbidden name has n bytes.
var forbiddenLengths = func() (bits uint64) {
	for _, f := range forbiddenFields {
		bits |= 1 << len(f)
	}
	return bits
}()
