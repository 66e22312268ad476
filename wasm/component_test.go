package wasm_test

import (
	"encoding/binary"
	"errors"
)

// The sections of a component's binary that the tests read (component model, Binary.md).
const (
	sectionCoreModule = 1
	sectionImport     = 10
	sectionExport     = 11
)

var errTruncated = errors.New("truncated component")

// contents are the parts of a component that the tests check.
type contents struct {
	imports, exports []string
	coreModules      [][]byte
}

// parse reads the sections of a component. It supports only imports and exports of instances, all
// that a component for an HTTP trigger may have.
func parse(component []byte) (contents, error) {
	if len(component) < 8 || string(component[:8]) != "\x00asm\x0d\x00\x01\x00" {
		return contents{}, errors.New("not a component")
	}
	var found contents
	for rest := component[8:]; len(rest) > 0; {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return contents{}, errTruncated
		}
		body := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]

		var err error
		switch id {
		case sectionCoreModule:
			found.coreModules = append(found.coreModules, body)
		case sectionImport:
			found.imports, err = appendNames(found.imports, body, skipImported)
		case sectionExport:
			found.exports, err = appendNames(found.exports, body, skipExported)
		}
		if err != nil {
			return contents{}, err
		}
	}
	return found, nil
}

// appendNames reads a vector of names, each followed by a description, which skip skips.
func appendNames(names []string, body []byte, skip func([]byte) ([]byte, error)) ([]string, error) {
	count, n := binary.Uvarint(body)
	if n <= 0 {
		return nil, errTruncated
	}
	body = body[n:]
	for range count {
		if len(body) < 2 {
			return nil, errTruncated
		}
		size, n := binary.Uvarint(body[1:])
		if n <= 0 || size > uint64(len(body)-1-n) {
			return nil, errTruncated
		}
		names = append(names, string(body[1+n:1+n+int(size)]))
		var err error
		if body, err = skip(body[1+n+int(size):]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

const instanceSort = 5

// skipImported skips the description of an imported instance: its sort and its type.
func skipImported(b []byte) ([]byte, error) { return skipInstance(b) }

// skipExported skips the description of an exported instance: its sort and its index, without a
// type.
func skipExported(b []byte) ([]byte, error) {
	b, err := skipInstance(b)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 || b[0] != 0 {
		return nil, errors.New("an export with a type of its own")
	}
	return b[1:], nil
}

func skipInstance(b []byte) ([]byte, error) {
	if len(b) < 2 {
		return nil, errTruncated
	}
	if b[0] != instanceSort {
		return nil, errors.New("an import or export is not an instance")
	}
	_, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return nil, errTruncated
	}
	return b[1+n:], nil
}
