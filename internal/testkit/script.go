package testkit

import "math/rand/v2"

// Script draws choices from a fuzzer's bytes. Once they are used up, it gives zeros.
type Script struct{ rest []byte }

// NewScript is the script of a fuzzer's bytes.
func NewScript(choices []byte) *Script { return &Script{choices} }

// RandomScript returns the bytes of a script of random choices, of a length that a fuzzer takes long to find.
func RandomScript(seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	choices := make([]byte, 400)
	for i := range choices {
		choices[i] = byte(random.Uint32())
	}
	return choices
}

// More reports whether choices are left.
func (s *Script) More() bool { return len(s.rest) > 0 }

func (s *Script) Byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// Below draws a number from 0 to n-1; n is at most 256.
func (s *Script) Below(n int) int { return int(s.Byte()) % n }

// One is true once in so many draws.
func (s *Script) One(in int) bool { return s.Below(in) == 1 }

// Near draws a number near n, or one at the limits of a message between edge and writer.
func (s *Script) Near(n int64) int64 {
	const largest = 1<<47 - 1
	switch b := s.Byte(); {
	case b < 128:
		return min(max(n+int64(b)-64, 0), largest)
	case b < 192:
		return int64(b - 128)
	case b < 224:
		return largest - int64(b-192)
	default:
		return int64(1) << (b - 224)
	}
}
