package fuel

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// The sections of a core module that are read or rewritten.
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

// preamble begins a core module: magic and version.
var preamble = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// IsModule reports whether a binary begins as a core module does.
func IsModule(binary []byte) bool { return bytes.HasPrefix(binary, preamble) }

// Section is one section of a core module, or of a component: both frame them alike.
type Section struct {
	ID byte
	// Content is a part of the binary, not a copy.
	Content []byte
}

// Sections splits what follows a preamble.
func Sections(binary []byte) ([]Section, error) {
	var list []Section
	for r := (reader{data: binary}); !r.done(); {
		s := Section{ID: r.byte()}
		s.Content = r.bytes(r.u32())
		if r.err != nil {
			return nil, r.err
		}
		list = append(list, s)
	}
	return list, nil
}

// Module is the outline of a core module: what it takes to check and rewrite it. The code
// is not validated here; the compiler of the rewritten binary does that.
type Module struct {
	// Mutable holds the indices of the mutable globals that the module defines.
	Mutable  []uint32
	sections []Section
	exports  []string // their names
	globals  uint32
}

// Parse reads the outline of a core module.
func Parse(binary []byte) (*Module, error) {
	if !IsModule(binary) {
		return nil, errors.New("not a core module")
	}
	sections, err := Sections(binary[len(preamble):])
	if err != nil {
		return nil, err
	}
	m := &Module{}
	for _, s := range sections {
		if err := m.add(s); err != nil {
			return nil, fmt.Errorf("section %d: %w", s.ID, err)
		}
	}
	return m, nil
}

func (m *Module) add(s Section) error {
	m.sections = append(m.sections, s)
	r := &reader{data: s.Content}
	switch s.ID {
	case sectionGlobal:
		m.readGlobals(r)
	case sectionExport:
		m.readExports(r)
	}
	return r.err
}

// supported returns an error for a module with a start function, or imports other than
// functions: its state could not be restored after a request.
func (m *Module) supported() error {
	for _, s := range m.sections {
		switch s.ID {
		case sectionStart:
			return errors.New("core module has a start function")
		case sectionImport:
			if err := onlyFunctions(&reader{data: s.Content}); err != nil {
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

func (m *Module) readGlobals(r *reader) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.byte() // value type
		if r.byte() == 1 {
			m.Mutable = append(m.Mutable, m.globals)
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

func (m *Module) readExports(r *reader) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		m.exports = append(m.exports, r.name())
		r.byte() // the kind
		r.u32()  // the index
	}
}

// Exports reports whether the module has exports of all the names.
func (m *Module) Exports(names ...string) bool {
	for _, name := range names {
		if !slices.Contains(m.exports, name) {
			return false
		}
	}
	return true
}
