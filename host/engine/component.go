package engine

import (
	"bytes"
	"errors"
	"fmt"

	"regedge/host/engine/fuel"
)

// componentPreamble begins a component: magic, version, layer.
var componentPreamble = []byte{0, 'a', 's', 'm', 0x0d, 0, 1, 0}

// sectionCoreModule is the id of a component section with one core module.
const sectionCoreModule = 1

// Limits on a component, to reject damaged files.
const (
	maxComponentBytes = 16 << 20
	maxCoreModules    = 64
)

// errNotComponent is returned for a file that does not begin as a component does.
var errNotComponent = errors.New("not a WebAssembly component")

// coreModules returns the core modules of a component, in order, without copying. Nested components
// are not searched: a component made from one core module has that module at its top level.
func coreModules(component []byte) ([][]byte, error) {
	if len(component) > maxComponentBytes {
		return nil, fmt.Errorf("component of %d bytes is over the limit of %d", len(component), maxComponentBytes)
	}
	if fuel.IsModule(component) {
		return nil, fmt.Errorf("%w: it is a core module", errNotComponent)
	}
	if !bytes.HasPrefix(component, componentPreamble) {
		return nil, errNotComponent
	}
	sections, err := fuel.Sections(component[len(componentPreamble):])
	if err != nil {
		return nil, fmt.Errorf("read component: %w", err)
	}
	var modules [][]byte
	for _, s := range sections {
		if s.ID == sectionCoreModule {
			modules = append(modules, s.Content)
		}
	}
	if len(modules) > maxCoreModules {
		return nil, fmt.Errorf("component has over %d core modules", maxCoreModules)
	}
	return modules, nil
}

// mainModule returns the only core module of a component that has all the named exports. The other
// modules adapt its imports and exports, which this engine does itself.
func mainModule(component []byte, exports ...string) (*fuel.Module, error) {
	modules, err := coreModules(component)
	if err != nil {
		return nil, err
	}
	var found *fuel.Module
	for i, content := range modules {
		m, err := fuel.Parse(content)
		if err != nil {
			return nil, fmt.Errorf("read core module %d: %w", i, err)
		}
		if !m.Exports(exports...) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("component has two core modules that export %q", exports)
		}
		found = m
	}
	if found == nil {
		return nil, fmt.Errorf("none of the component's %d core modules exports all of %q", len(modules), exports)
	}
	return found, nil
}
