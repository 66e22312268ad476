package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// The sections of a core module that the engine reads or writes.
const (
	sectionImport = 2
	sectionGlobal = 6
	sectionExport = 7
	sectionStart  = 8
	sectionCode   = 10
)

// The kinds of imports and exports.
const (
	externFunc   = 0
	externGlobal = 3
)

// section is one section of a core module.
type section struct {
	id      byte
	content []byte
}

// export is one export of a core module.
type export struct {
	name  string
	kind  byte
	index uint32
}

// coreModule is what the engine needs to know of a core module to check and rewrite it.
// Its code is not validated here; wazero does that.
type coreModule struct {
	sections []section
	exports  []export
	// mutable holds the indices of the mutable globals that the module defines.
	mutable []uint32
	globals uint32
}

// parseModule reads the outline of a core module. A module that imports anything but
// functions, or has a start function, is refused: its state could not be restored.
func parseModule(binary []byte) (*coreModule, error) {
	if !bytes.HasPrefix(binary, modulePreamble) {
		return nil, errors.New("not a core module")
	}
	r := reader{data: binary, off: len(modulePreamble)}
	m := &coreModule{}
	for !r.done() {
		s := section{id: r.byte()}
		s.content = r.bytes(r.u32())
		if r.err != nil {
			break
		}
		if err := m.add(s); err != nil {
			return nil, fmt.Errorf("section %d: %w", s.id, err)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

func (m *coreModule) add(s section) error {
	m.sections = append(m.sections, s)
	r := &reader{data: s.content}
	switch s.id {
	case sectionGlobal:
		m.readGlobals(r)
	case sectionExport:
		m.readExports(r)
	}
	return r.err
}

// supported returns an error for a module that the engine cannot run safely.
func (m *coreModule) supported() error {
	for _, s := range m.sections {
		switch s.id {
		case sectionStart:
			return errors.New("core module has a start function")
		case sectionImport:
			if err := onlyFunctions(&reader{data: s.content}); err != nil {
				return fmt.Errorf("imports of the core module: %w", err)
			}
		}
	}
	return nil
}

func onlyFunctions(r *reader) error {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		from, name := r.name(), r.name()
		if kind := r.byte(); kind != externFunc && r.err == nil {
			return fmt.Errorf("%s %s is not a function", from, name)
		}
		r.u32()
	}
	return r.err
}

func (m *coreModule) readGlobals(r *reader) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.byte() // value type
		if r.byte() == 1 {
			m.mutable = append(m.mutable, m.globals)
		}
		m.globals++
		skipInitializer(r)
	}
}

// skipInitializer skips the constant expression of a global.
func skipInitializer(r *reader) {
	for r.err == nil {
		op := r.byte()
		if op == opEnd {
			return
		}
		skipImmediates(r, op)
	}
}

func (m *coreModule) readExports(r *reader) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		m.exports = append(m.exports, export{name: r.name(), kind: r.byte(), index: r.u32()})
	}
}

func (m *coreModule) exportsAll(names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(m.exports, func(e export) bool { return e.name == name }) {
			return false
		}
	}
	return true
}
