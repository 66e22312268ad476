package main

import (
	"unsafe"

	"go.bytecodealliance.org/cm"

	"regedge/wasm/bindings/wasi/http/types"
)

// cabiRealloc allocates memory for values that the host passes to the guest (canonical ABI,
// "realloc"); the package comment has its guarantees. A block that grows is copied, one that
// shrinks stays in place.
//
//export cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	if size <= oldSize {
		if size == 0 && oldSize == 0 {
			return unsafe.Add(unsafe.Pointer(nil), align)
		}
		return old
	}
	block := make([]byte, size)
	if oldSize > 0 {
		copy(block, unsafe.Slice((*byte)(old), oldSize))
	}
	return unsafe.Pointer(unsafe.SliceData(block))
}

// textBytes and bytesText convert without a copy. Nothing may write to the memory afterwards.

func textBytes(text string) cm.List[uint8] {
	return cm.NewList(unsafe.StringData(text), len(text))
}

func bytesText(list cm.List[uint8]) string {
	return unsafe.String(list.Data(), list.Len())
}

func fieldText(value types.FieldValue) string {
	return bytesText(cm.List[uint8](value))
}

func newField(name, value string) field {
	return field{F0: types.FieldKey(name), F1: types.FieldValue(textBytes(value))}
}
