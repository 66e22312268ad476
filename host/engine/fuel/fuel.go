package fuel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The names under which an instrumented module exports what its host has to reach. A
// module that uses the prefix itself is refused.
const (
	exportPrefix = "regedge:"
	// ExportSteps is the i32 global that holds the steps left. It is negative after a trap
	// because none were left.
	ExportSteps  = exportPrefix + "steps"
	exportGlobal = exportPrefix + "global:"
)

// GlobalName is the name under which the mutable global of an index is exported.
func GlobalName(index uint32) string { return exportGlobal + strconv.Itoa(int(index)) }

// Opcodes and types that are read or inserted.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opCall        = 0x10
	opCallInd     = 0x11
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opI32Const    = 0x41
	opI32LtS      = 0x48
	opI32Sub      = 0x6b
	opI32ShrU     = 0x76
	opPrefixed    = 0xfc
	typeI32       = 0x7f
	blockVoid     = 0x40
)

// bulkShift sets the price of memory.copy, fill and init: one step for each 1 << bulkShift bytes.
const bulkShift = 4

// Instrument returns the binary of m with a global added that counts down: by one at every
// turn of a loop and every entry of a function that calls others, and by one for each 16
// bytes that a single instruction copies or fills. Below 0 it traps. The host sets the
// global, [ExportSteps], before each call. All mutable globals are exported as well, see
// [GlobalName].
func (m *Module) Instrument() ([]byte, error) {
	if err := m.supported(); err != nil {
		return nil, err
	}
	for _, name := range m.exports {
		if strings.HasPrefix(name, exportPrefix) {
			return nil, fmt.Errorf("core module exports the reserved name %q", name)
		}
	}
	out := slices.Clone(preamble)
	sections := m.withSection(m.withSection(m.sections, sectionGlobal), sectionExport)
	for _, s := range sections {
		content, err := m.rewrite(s)
		if err != nil {
			return nil, err
		}
		out = append(out, s.ID)
		out = appendU32(out, uint32(len(content)))
		out = append(out, content...)
	}
	return out, nil
}

// withSection inserts an empty section of the id if there is none. It works for ids up to 9, which
// are in the order of the sections.
func (m *Module) withSection(sections []Section, id byte) []Section {
	at := len(sections)
	for i, s := range sections {
		if s.ID == id {
			return sections
		}
		if s.ID > id && i < at {
			at = i
		}
	}
	return slices.Insert(slices.Clone(sections), at, Section{ID: id, Content: []byte{0}})
}

func (m *Module) rewrite(s Section) ([]byte, error) {
	switch s.ID {
	case sectionGlobal:
		zero := []byte{typeI32, 1, opI32Const, 0, opEnd}
		return appendToVector(s.Content, 2, append(zero, zero...)), nil
	case sectionExport:
		return m.addExports(s.Content), nil
	case sectionCode:
		return m.rewriteCode(s.Content)
	}
	return s.Content, nil
}

func (m *Module) addExports(content []byte) []byte {
	var added []byte
	add := func(name string, index uint32) {
		added = appendU32(added, uint32(len(name)))
		added = append(added, name...)
		added = append(added, externGlobal)
		added = appendU32(added, index)
	}
	for _, index := range m.Mutable {
		add(GlobalName(index), index)
	}
	add(ExportSteps, m.globals)
	return appendToVector(content, uint32(len(m.Mutable))+1, added)
}

// appendToVector adds n elements, already encoded, to an encoded vector.
func appendToVector(vector []byte, n uint32, elements []byte) []byte {
	r := reader{data: vector}
	out := appendU32(nil, r.u32()+n)
	out = append(out, vector[r.off:]...)
	return append(out, elements...)
}

// counting is the code that Instrument inserts.
type counting struct {
	// step takes one step and traps if none is left.
	step []byte
	// bulk takes steps for the number of bytes on top of the stack, which it leaves there.
	bulk []byte
}

// newCounting makes the code for the index of the global with the steps. The global after it is a
// temporary variable.
func newCounting(steps uint32) counting {
	get, set := appendU32([]byte{opGlobalGet}, steps), appendU32([]byte{opGlobalSet}, steps)
	save, saved := appendU32([]byte{opGlobalSet}, steps+1), appendU32([]byte{opGlobalGet}, steps+1)
	return counting{
		step: slices.Concat(get, []byte{opI32Const, 1, opI32Sub}, set,
			get, []byte{opI32Const, 0, opI32LtS, opIf, blockVoid, opUnreachable, opEnd}),
		bulk: slices.Concat(save, get, saved, []byte{opI32Const, bulkShift, opI32ShrU, opI32Sub}, set, saved),
	}
}

// rewriteCode adds the counting to every function of a code section.
func (m *Module) rewriteCode(content []byte) ([]byte, error) {
	count := newCounting(m.globals)
	r := reader{data: content}
	n := r.u32()
	out := appendU32(make([]byte, 0, len(content)+len(content)/4), n)
	for i := uint32(0); i < n && r.err == nil; i++ {
		body, err := count.rewrite(r.bytes(r.u32()))
		if err != nil {
			return nil, fmt.Errorf("code of function %d: %w", i, err)
		}
		out = appendU32(out, uint32(len(body)))
		out = append(out, body...)
	}
	if r.err != nil {
		return nil, fmt.Errorf("code section: %w", r.err)
	}
	return out, nil
}

// rewrite adds the counting to the body of a function. Branches name their targets by depth, so
// nothing else has to change.
func (c *counting) rewrite(body []byte) ([]byte, error) {
	r := reader{data: body}
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.u32()
		r.byte()
	}
	start, copied := r.off, r.off
	var code []byte
	calls := false
	insert := func(at int, added []byte) {
		code = append(code, body[copied:at]...)
		code = append(code, added...)
		copied = at
	}
	for !r.done() {
		at := r.off
		op := r.byte()
		skipImmediates(&r, op)
		switch {
		case op == opLoop:
			insert(r.off, c.step)
		case op == opPrefixed && isBulk(body[at+1:]):
			insert(at, c.bulk)
		case op == opCall, op == opCallInd:
			calls = true
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	out := slices.Clone(body[:start])
	if calls {
		out = append(out, c.step...)
	}
	out = append(out, code...)
	return append(out, body[copied:]...), nil
}
