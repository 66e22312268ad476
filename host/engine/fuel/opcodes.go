package fuel

import "fmt"

// skipImmediates moves r past the immediates of op. It fails for instructions other than those
// that the package comment lists.
func skipImmediates(r *reader, op byte) {
	switch {
	case op <= 0x01, op == 0x05, op == opEnd, op == 0x0f, op == 0x1a, op == 0x1b:
		// unreachable, nop, else, end, return, drop, select
	case op >= 0x45 && op <= 0xc4:
		// comparisons, arithmetic, conversions
	case op >= 0x02 && op <= opIf:
		r.skipLEB(5) // block type, 33 bits
	case op == 0x0c, op == 0x0d, op == opCall, op >= 0x20 && op <= 0x24:
		r.u32() // label, function, local or global
	case op == 0x0e:
		skipBranchTable(r)
	case op == opCallInd, op >= 0x28 && op <= 0x3e:
		r.u32() // type and table, or alignment and offset
		r.u32()
	case op == 0x3f, op == 0x40:
		r.byte() // memory
	case op == opI32Const:
		r.skipLEB(5)
	case op == 0x42:
		r.skipLEB(10)
	case op == 0x43:
		r.bytes(4)
	case op == 0x44:
		r.bytes(8)
	case op == opPrefixed:
		skipPrefixed(r)
	default:
		r.fail(fmt.Errorf("instruction 0x%02x is not supported", op))
	}
}

func skipBranchTable(r *reader) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.u32()
	}
	r.u32()
}

// skipPrefixed skips the rest of an instruction that begins with 0xfc.
func skipPrefixed(r *reader) {
	switch op := r.u32(); {
	case op <= 7: // saturating conversions
	case op == subMemoryInit: // segment, memory
		r.u32()
		r.byte()
	case op == subMemoryCopy: // memory, memory
		r.bytes(2)
	case op == subMemoryFill: // memory
		r.byte()
	default:
		r.fail(fmt.Errorf("instruction 0xfc %d is not supported", op))
	}
}

// The instructions after 0xfc that touch as many bytes as the top of the stack says.
const (
	subMemoryInit = 8
	subMemoryCopy = 10
	subMemoryFill = 11
)

// isBulk reports whether an instruction is one of these; rest is what follows its 0xfc.
func isBulk(rest []byte) bool {
	r := reader{data: rest}
	op := r.u32()
	return op == subMemoryInit || op == subMemoryCopy || op == subMemoryFill
}
