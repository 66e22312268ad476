package engine

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// fault is what a host function panics with to trap the guest: something that a
// component which keeps the canonical ABI never does.
type fault struct{ reason string }

func (f *fault) Error() string { return f.reason }

func trap(format string, args ...any) {
	panic(&fault{fmt.Sprintf(format, args...)})
}

// maxLiftBytes bounds what the guest gives to one call, and maxLowerBytes what one
// request puts into the guest's memory.
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

// list returns a view of count elements of size bytes each.
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

// text returns a view of a string of the guest, checked to be UTF-8.
func (i *instance) text(ptr, size uint32) []byte {
	b := i.bytes(ptr, size)
	if !utf8.Valid(b) {
		trap("string is not UTF-8")
	}
	return b
}

// out returns the size bytes at ptr into which a result goes.
func (i *instance) out(ptr, size, align uint32) []byte {
	i.aligned(ptr, align)
	return i.bytes(ptr, size)
}

// alloc takes memory from the guest by its cabi_realloc. Every view is invalid after it.
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

// checkedRealloc calls the guest and checks that it returned what is memory of its own.
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

// realloc calls the guest, which must not call the host meanwhile.
func (i *instance) realloc(size, align uint32) (uint32, error) {
	i.mayCall = false
	i.reallocStack = [4]uint64{0, 0, uint64(align), uint64(size)}
	if err := i.reallocFunc.CallWithStack(i, i.reallocStack[:]); err != nil {
		return 0, err
	}
	i.mayCall = true
	return uint32(i.reallocStack[0]), nil
}

// lower puts bytes into guest memory and returns where they are.
func (i *instance) lower(s string) (ptr, size uint32) {
	if s == "" {
		return 0, 0
	}
	b := i.newBlock(uint64(len(s)))
	return b.put(s)
}

// lowerText is lower for what the guest is told to be a string.
func (i *instance) lowerText(s string) (ptr, size uint32) { return i.lower(validText(s)) }

// validText returns s, with U+FFFD for each byte that is not UTF-8.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// block is memory of the guest into which the parts of one result are laid out. By the
// canonical ABI each list and string has an allocation of its own; the guest frees none
// (see package guest of wasm), so that one for all of a result does.
type block struct {
	memory []byte
	base   uint32
	used   uint32
}

// newBlock takes size bytes of the guest's memory, as long as there is enough of what it
// gave before: to call it takes as long as to lay out a small result. No other block may be
// taken before this one is filled.
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

// spareBytes is as much as the results of a lookup take, in bytes.
const spareBytes = 2048

// span is a piece of the guest's memory.
type span struct{ ptr, size uint32 }

// take cuts size bytes off the beginning, so that the rest is aligned again.
func (s *span) take(size uint32) (ptr uint32) {
	ptr = s.ptr
	size = min((size+blockAlign-1)&^(blockAlign-1), s.size)
	s.ptr, s.size = s.ptr+size, s.size-size
	return ptr
}

// blockAlign is the largest alignment that a part of a result needs.
const blockAlign = 8

// list takes the next size bytes. Lists come before texts, the most aligned first.
func (b *block) list(size uint32) (view []byte, ptr uint32) {
	view, ptr = b.memory[b.used:b.used+size], b.base+b.used
	b.used += size
	return view, ptr
}

// put adds a text.
func (b *block) put(s string) (ptr, size uint32) {
	if s == "" {
		return 0, 0
	}
	view, ptr := b.list(uint32(len(s)))
	copy(view, s)
	return ptr, uint32(len(s))
}

// put32 and put64 write into a view, as the canonical ABI lays numbers out.
func put32(b []byte, off int, v uint32) { binary.LittleEndian.PutUint32(b[off:], v) }
func put64(b []byte, off int, v uint64) { binary.LittleEndian.PutUint64(b[off:], v) }

func get32(b []byte, off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
func get64(b []byte, off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
