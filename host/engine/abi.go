package engine

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// fault is the panic value with which a host function traps a guest that violates the canonical
// ABI.
type fault struct{ reason string }

func (f *fault) Error() string { return f.reason }

func trap(format string, args ...any) {
	panic(&fault{fmt.Sprintf(format, args...)})
}

// maxLiftBytes bounds the arguments that the guest passes in one call, and maxLowerBytes the results
// that the host writes into the guest's memory in one request.
const (
	maxLiftBytes  = 1 << 20
	maxLowerBytes = 4 << 20
)

// bytes returns a view of guest memory; it is valid until the guest runs again.
func (i *instance) bytes(ptr, size uint32) []byte {
	if size > maxLiftBytes {
		trap("%d bytes are over the limit of %d", size, maxLiftBytes)
	}
	b, ok := i.memory.Read(ptr, size)
	if !ok {
		trap("pointer out of range: %d bytes at %d", size, ptr)
	}
	return b
}

// list returns a view of count elements of size bytes each. Like bytes, it is valid until the guest
// runs again.
func (i *instance) list(ptr, count, size, align uint32) []byte {
	if uint64(count)*uint64(size) > maxLiftBytes {
		trap("list of %d elements is over the limit", count)
	}
	i.aligned(ptr, align)
	return i.bytes(ptr, count*size)
}

func (i *instance) aligned(ptr, align uint32) {
	if ptr&(align-1) != 0 {
		trap("pointer %d is not aligned to %d", ptr, align)
	}
}

// text returns a view of a string in guest memory. It traps if that is not UTF-8.
func (i *instance) text(ptr, size uint32) []byte {
	b := i.bytes(ptr, size)
	if !utf8.Valid(b) {
		trap("string is not UTF-8")
	}
	return b
}

// out returns a view of the size bytes at ptr, for a result.
func (i *instance) out(ptr, size, align uint32) []byte {
	i.aligned(ptr, align)
	return i.bytes(ptr, size)
}

// alloc allocates guest memory with the guest's cabi_realloc, which invalidates all views.
func (i *instance) alloc(size, align uint32) uint32 {
	i.lowered += uint64(size)
	if i.lowered > maxLowerBytes {
		trap("results are over the limit of %d bytes", maxLowerBytes)
	}
	ptr, err := i.checkedRealloc(size, align)
	if err != nil {
		panic(err)
	}
	return ptr
}

// checkedRealloc calls the guest's allocator and checks that the result is aligned and within its
// memory.
func (i *instance) checkedRealloc(size, align uint32) (uint32, error) {
	ptr, err := i.realloc(size, align)
	if err != nil {
		return 0, fmt.Errorf("guest's cabi_realloc: %w", err)
	}
	if ptr&(align-1) != 0 || uint64(ptr)+uint64(size) > uint64(i.memory.Size()) {
		return 0, &fault{fmt.Sprintf("cabi_realloc returned %d for %d bytes, aligned to %d", ptr, size, align)}
	}
	return ptr, nil
}

// realloc calls the guest's allocator, which must not call the host.
func (i *instance) realloc(size, align uint32) (uint32, error) {
	i.mayCall = false
	i.reallocStack = [4]uint64{0, 0, uint64(align), uint64(size)}
	if err := i.reallocFunc.CallWithStack(i, i.reallocStack[:]); err != nil {
		return 0, err
	}
	i.mayCall = true
	return uint32(i.reallocStack[0]), nil
}

// lower copies bytes into guest memory.
func (i *instance) lower(s string) (ptr, size uint32) {
	if s == "" {
		return 0, 0
	}
	b := i.newBlock(uint64(len(s)))
	return b.put(s)
}

// lowerText is lower for strings, which must be UTF-8.
func (i *instance) lowerText(s string) (ptr, size uint32) { return i.lower(validText(s)) }

// validText returns s, with U+FFFD for each byte that is not UTF-8.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// block is an area of guest memory for all parts of one result. By the canonical ABI each list and
// string has an allocation of its own. But this guest frees none (see wasm/guest), so one for the
// whole result is enough.
type block struct {
	memory []byte
	base   uint32
	used   uint32
}

// newBlock allocates size bytes of guest memory, from the spare area if they fit: a call of the
// guest's allocator takes as long as writing a small result. The block must be filled before the
// next one is allocated.
func (i *instance) newBlock(size uint64) block {
	if size > maxLowerBytes {
		trap("result of %d bytes is over the limit of %d", size, maxLowerBytes)
	}
	if size == 0 {
		return block{}
	}
	if uint64(i.spare.size) < size {
		take := max(uint32(size), spareBytes)
		i.spare = span{i.alloc(take, blockAlign), take}
	}
	ptr := i.spare.take(uint32(size))
	memory, ok := i.memory.Read(ptr, uint32(size))
	if !ok {
		trap("pointer out of range: %d bytes at %d", size, ptr)
	}
	return block{memory: memory, base: ptr}
}

// spareBytes is the size of the spare area. The results of a lookup fit.
const spareBytes = 2048

// span is an area of guest memory.
type span struct{ ptr, size uint32 }

// take removes size bytes, rounded up to blockAlign, from the beginning.
func (s *span) take(size uint32) (ptr uint32) {
	ptr = s.ptr
	size = min((size+blockAlign-1)&^(blockAlign-1), s.size)
	s.ptr, s.size = s.ptr+size, s.size-size
	return ptr
}

// blockAlign is the largest alignment that a part of a result needs.
const blockAlign = 8

// list takes the next size bytes. Lists have to be placed before texts, the largest alignment first.
func (b *block) list(size uint32) (view []byte, ptr uint32) {
	view, ptr = b.memory[b.used:b.used+size], b.base+b.used
	b.used += size
	return view, ptr
}

// put appends a text.
func (b *block) put(s string) (ptr, size uint32) {
	if s == "" {
		return 0, 0
	}
	view, ptr := b.list(uint32(len(s)))
	copy(view, s)
	return ptr, uint32(len(s))
}

// put32 and put64 write a number into a view, in the byte order of the canonical ABI.
func put32(b []byte, off int, v uint32) { binary.LittleEndian.PutUint32(b[off:], v) }
func put64(b []byte, off int, v uint64) { binary.LittleEndian.PutUint64(b[off:], v) }

func get32(b []byte, off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
func get64(b []byte, off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
