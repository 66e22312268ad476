package engine

import (
	"bytes"
	"errors"
	"fmt"
)

// snapshot is the guest's state after its initialisation, with which every request starts. All
// instances share one: initialisation calls no import and so always leads to the same state, which
// is checked for each instance.
//
// To restore only what was written, the engine relies on the guest's allocator: cabi_realloc(0, 0,
// 1, 1) returns the end of the heap in use, and nothing above it was ever written. That holds for
// TinyGo's leaking allocator, which only moves a pointer upwards, unless the guest writes through
// wild pointers. A component that might do so has to run with Config.Fresh.
type snapshot struct {
	// memory is the pristine memory up to base; from base to size it is all zeros.
	memory []byte
	base   uint32
	size   uint32
	// heap is the end of the pristine heap, as cabi_realloc(0, 0, 1, 1) returns it.
	heap    uint32
	globals []uint64
}

// takeSnapshot reads the state of a new instance and leaves it unchanged.
func (i *instance) takeSnapshot() (*snapshot, error) {
	whole, err := i.wholeMemory()
	if err != nil {
		return nil, err
	}
	s := &snapshot{size: uint32(len(whole)), memory: bytes.Clone(whole)}
	for _, g := range i.globals {
		s.globals = append(s.globals, g.Get())
	}
	if s.heap, err = i.heapEnd(); err != nil {
		return nil, err
	}
	if i.memory.Size() != s.size {
		return nil, errors.New("guest's memory is full from the start")
	}
	s.base = max(s.heap, uint32(len(bytes.TrimRight(s.memory, "\x00"))))
	if s.base > s.size {
		return nil, fmt.Errorf("cabi_realloc returned %d in a memory of %d bytes", s.heap, s.size)
	}
	s.memory = bytes.Clone(s.memory[:s.base])
	whole, err = i.wholeMemory()
	if err != nil {
		return nil, err
	}
	s.copyTo(whole, s.base)
	s.restoreGlobals(i)
	return s, nil
}

// matches reports whether a new instance is in the pristine state.
func (s *snapshot) matches(i *instance) bool {
	whole, err := i.wholeMemory()
	if err != nil || uint32(len(whole)) != s.size || !bytes.Equal(whole[:s.base], s.memory) {
		return false
	}
	for n, g := range i.globals {
		if g.Get() != s.globals[n] {
			return false
		}
	}
	return len(bytes.Trim(whole[s.base:], "\x00")) == 0
}

// restore returns an instance to the pristine state. After an error the instance cannot be used again.
func (s *snapshot) restore(i *instance) error {
	mark, err := i.heapEnd()
	if err != nil {
		return err
	}
	whole, err := i.wholeMemory()
	if err != nil {
		return err
	}
	if uint32(len(whole)) != s.size {
		return errMemoryGrown
	}
	if mark < s.heap || mark >= s.size {
		return fmt.Errorf("cabi_realloc returned %d for the end of the heap", mark)
	}
	s.copyTo(whole, max(mark+1, s.base))
	s.restoreGlobals(i)
	return nil
}

// heapEnd returns the current end of the guest's heap.
func (i *instance) heapEnd() (end uint32, err error) {
	err = i.limited(func() error {
		end, err = i.realloc(1, 1)
		return err
	})
	i.mayCall = false
	if err != nil {
		return 0, fmt.Errorf("find the end of the heap: %w", err)
	}
	return end, nil
}

// errMemoryGrown is returned for an instance with more memory than the pristine one, which cannot
// shrink.
var errMemoryGrown = errors.New("guest's memory has grown")

// copyTo restores the memory up to end, which is at least base.
func (s *snapshot) copyTo(whole []byte, end uint32) {
	copy(whole, s.memory)
	clear(whole[s.base:end])
}

func (s *snapshot) restoreGlobals(i *instance) {
	for n, g := range i.globals {
		if g.Get() != s.globals[n] {
			g.Set(s.globals[n])
		}
	}
}

// wholeMemory returns a view of all memory, valid until the guest runs again.
func (i *instance) wholeMemory() ([]byte, error) {
	whole, ok := i.memory.Read(0, i.memory.Size())
	if !ok {
		return nil, errors.New("guest's memory cannot be read")
	}
	return whole, nil
}
