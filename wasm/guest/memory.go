package main

import (
	"unsafe"

	"go.bytecodealliance.org/cm"

	"regedge/wasm/bindings/wasi/http/types"
)

// cabiRealloc gives the host memory of the guest for a value that it passes (canonical
// ABI, "realloc"). See the package comment for what it promises. A growing block is
// copied; a shrinking one stays where it is.
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

// textBytes and bytesText change the type of memory that nobody writes to any more.

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
