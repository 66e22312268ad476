package fuel

import (
	"errors"
	"fmt"
)

// errTruncated is returned when a binary ends inside an element.
var errTruncated = errors.New("unexpected end")

// reader decodes a Wasm binary. After the first failure its methods return zeros, and err is set.
type reader struct {
	data []byte
	off  int
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.off, err)
	}
}

func (r *reader) done() bool { return r.err != nil || r.off >= len(r.data) }

func (r *reader) byte() byte {
	if r.err == nil && r.off >= len(r.data) {
		r.fail(errTruncated)
	}
	if r.err != nil {
		return 0
	}
	b := r.data[r.off]
	r.off++
	return b
}

// bytes returns the next n bytes, not copied.
func (r *reader) bytes(n uint32) []byte {
	if r.err == nil && uint64(n) > uint64(len(r.data)-r.off) {
		r.fail(errTruncated)
	}
	if r.err != nil {
		return nil
	}
	b := r.data[r.off : r.off+int(n)]
	r.off += int(n)
	return b
}

// name reads a string with its length before it.
func (r *reader) name() string { return string(r.bytes(r.u32())) }

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	var n uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if n > 0xffffffff {
				break
			}
			return uint32(n)
		}
	}
	r.fail(errors.New("number over 32 bits"))
	return 0
}

// skipLEB skips a LEB128 number of at most size bytes.
func (r *reader) skipLEB(size int) {
	for i := 0; i < size; i++ {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail(errors.New("number too long"))
}

// appendU32 appends n in LEB128.
func appendU32(b []byte, n uint32) []byte {
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}
