package fuel_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"regedge/host/engine/fuel"
)

// leb encodes a number in LEB128.
func leb(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// section frames a section of a module.
func section(id byte, content ...byte) []byte {
	return slices.Concat([]byte{id}, leb(len(content)), content)
}

// module is a core module of one function with a parameter, run, whose body has no locals. It has a page of memory, a table,
// a segment of 64 bytes of data, and the sections that are given.
func module(body []byte, others ...[]byte) []byte {
	code := slices.Concat([]byte{0}, body, []byte{0x0b})
	data := slices.Concat([]byte{1, 1}, leb(64), make([]byte, 64)) // passive
	sections := [][]byte{
		section(1, 1, 0x60, 1, 0x7f, 0), section(3, 1, 0), section(4, 1, 0x70, 0, 1), section(5, 1, 0, 1),
		section(7, 1, 3, 'r', 'u', 'n', 0, 0), section(12, 1), section(10, slices.Concat([]byte{1}, leb(len(code)), code)...), section(11, data...),
	}
	order := []byte{1, 2, 3, 4, 5, 6, 7, 8, 12, 10, 11} // of the sections' ids
	sections = append(sections, others...)
	slices.SortStableFunc(sections, func(a, b []byte) int { return bytes.IndexByte(order, a[0]) - bytes.IndexByte(order, b[0]) })
	return slices.Concat(append([][]byte{{0, 'a', 's', 'm', 1, 0, 0, 0}}, sections...)...)
}

// instrumented instruments a module, and compiles the result.
func instrumented(t *testing.T, core []byte) error {
	t.Helper()
	m, err := fuel.Parse(core)
	if err != nil {
		return err
	}
	binary, err := m.Instrument()
	if err != nil {
		return err
	}
	runtime := wazero.NewRuntime(t.Context())
	defer runtime.Close(t.Context())
	_, err = runtime.CompileModule(t.Context(), binary)
	return err
}

// mutable is a section of two globals: an immutable 11, which is encoded like an end, and a mutable one.
var mutable = section(6, 2, 0x7f, 0, 0x41, 11, 0x0b, 0x7f, 1, 0x41, 11, 0x0b)

// TestEachInstructionIsReadWhole, with the longest form of its immediates: one that was read short would make the rest of
// its function another one. Behind an unreachable instruction operands of every type are there.
func TestEachInstructionIsReadWhole(t *testing.T) {
	instructions := [][]byte{
		{0x01}, {0x02, 0x40, 0x0b}, {0x03, 0x40, 0x0b}, {0x04, 0x40, 0x05, 0x0b}, {0x0c, 0}, {0x0d, 0x80, 0x80, 0x80, 0x80, 0},
		{0x0e, 2, 0, 0, 0}, {0x0f}, {0x10, 0x80, 0}, {0x11, 0x80, 0, 0}, {0x1a}, {0x1b}, {0x20, 0}, {0x21, 0}, {0x22, 0}, {0x23, 1}, {0x24, 1},
		{0x3f, 0}, {0x40, 0}, {0x41, 0xff, 0xff, 0xff, 0xff, 0x7f}, {0x42, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		{0x43, 0x0b, 0x0b, 0x0b, 0x0b}, {0x44, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b}, {0xfc, 8, 0, 0}, {0xfc, 10, 0, 0}, {0xfc, 11, 0},
		{0x02, 0x80, 0x80, 0x00, 0x1a, 0x0b}, {0x02, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a, 0x0b}, // a block of the type of the function
	}
	for op := byte(0x28); op <= 0x3e; op++ {
		instructions = append(instructions, []byte{op, 0, 0x80, 0x80, 0x04})
	}
	for op := byte(0x45); op <= 0xc4; op++ {
		instructions = append(instructions, []byte{op})
	}
	for op := byte(0); op <= 7; op++ {
		instructions = append(instructions, []byte{0xfc, op})
	}
	for _, instruction := range instructions {
		require.NoError(t, instrumented(t, module(slices.Concat([]byte{0x00}, instruction, []byte{0x00}), mutable)), "% x", instruction)
	}
}

// TestInstructionsThatAreNotKnownAreRefused, and so is code that is cut: nobody would count their steps.
func TestInstructionsThatAreNotKnownAreRefused(t *testing.T) {
	for _, instruction := range [][]byte{{0x06}, {0x12, 0}, {0x1c, 1, 0x7f}, {0x25, 0}, {0xc5}, {0xd0, 0x70}, {0xfc, 9, 0}, {0xfc, 12, 0, 0}, {0xfd, 12}, {0xfe, 0}} {
		require.ErrorContains(t, instrumented(t, module(append([]byte{0x00}, instruction...))), "is not supported", "% x", instruction)
	}
	require.ErrorContains(t, instrumented(t, module([]byte{0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0})), "number too long")
	for name, code := range map[string][]byte{"a body": {1, 9, 0, 0x0b}, "one of two": {2, 2, 0, 0x0b}, "locals": {1, 1, 1}} {
		m, err := fuel.Parse(slices.Concat([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(10, code...)))
		require.NoError(t, err)
		_, err = m.Instrument()
		require.ErrorContains(t, err, "unexpected end", name)
	}
	_, err := fuel.Parse([]byte{0, 'a', 's', 'm', 1, 0, 0, 0, 10, 3, 0}) // a section of three bytes, of which one is there
	require.ErrorContains(t, err, "unexpected end")
}

// TestStateThatCanNotBeRestoredIsRefused: a start function, and anything but functions that is imported.
func TestStateThatCanNotBeRestoredIsRefused(t *testing.T) {
	require.ErrorContains(t, instrumented(t, module(nil, section(8, 0))), "core module has a start function")
	for kind, rest := range map[byte][]byte{1: {0x70, 0, 1}, 2: {0, 1}, 3: {0x7f, 1}} {
		imports := section(2, slices.Concat([]byte{1, 1, 'm', 1, 'n', kind}, rest)...)
		require.ErrorContains(t, instrumented(t, module(nil, imports)), "m n is not a function")
	}
	require.NoError(t, instrumented(t, module(nil, section(2, 1, 1, 'm', 1, 'n', 0, 0))))
}

func TestNumbersOfAModuleHave32Bits(t *testing.T) {
	_, err := fuel.Parse([]byte{0, 'a', 's', 'm', 1, 0, 0, 0, 0, 0x81, 0x80, 0x80, 0x80, 0x10, 0}) // 2^32 + 1 bytes
	require.ErrorContains(t, err, "number over 32 bits")
	_, err = fuel.Parse([]byte{0, 'a', 's', 'm', 1, 0, 0, 0, 0, 0x81, 0x80, 0x80, 0x80, 0x00, 0})
	require.NoError(t, err)
}

// TestMutableGlobalsAreFound among the others, since they are restored after each request.
func TestMutableGlobalsAreFound(t *testing.T) {
	m, err := fuel.Parse(module(nil, mutable))
	require.NoError(t, err)
	require.Equal(t, []uint32{1}, m.Mutable)
	require.NoError(t, instrumented(t, module(nil, mutable)))
}

// TestBytesThatOneInstructionCopiesTakeSteps: one for each 16 of them.
func TestBytesThatOneInstructionCopiesTakeSteps(t *testing.T) {
	for name, instruction := range map[string][]byte{"init": {0xfc, 8, 0, 0}, "copy": {0xfc, 10, 0, 0}, "fill": {0xfc, 11, 0}} {
		core := module(slices.Concat([]byte{0x41, 0, 0x41, 0, 0x20, 0}, instruction))
		for size, want := range map[uint64]int32{0: 1000, 15: 1000, 16: 999, 64: 996} {
			left, err := runOf(t.Context(), core, size, 1000)
			require.NoError(t, err, name)
			require.Equal(t, want, left, "%s of %d bytes", name, size)
		}
	}
}
