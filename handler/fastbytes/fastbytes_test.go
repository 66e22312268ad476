package fastbytes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoadAndStoreKeepTheOrderOfBytes(t *testing.T) {
	b := make([]byte, 12)
	Store(b, 3, Load("..abcdefgh", 2))
	require.Equal(t, "\x00\x00\x00abcdefgh\x00", string(b))
}

func TestCopyTakesEveryLength(t *testing.T) {
	s := strings.Repeat("0123456789", 5)
	for n := range len(s) + 1 {
		b := make([]byte, len(s)+Size)
		Copy(b, s[:n])
		require.Equal(t, s[:n], string(b[:n]))
		require.Equal(t, make([]byte, len(b)-n), b[n:], "nothing is written after %d bytes", n)
	}
}

// TestSpecialMissesNoByte puts each byte at each position of a word.
func TestSpecialMissesNoByte(t *testing.T) {
	for c := range 256 {
		for position := range Size {
			word := []byte("plain 12")
			word[position] = byte(c)
			loaded := Load(string(word), 0)
			if c < ' ' || c >= 0x80 {
				require.True(t, Control(loaded), "%#x", c)
			}
			if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
				require.True(t, Special(loaded, '"', '\\'), "%#x", c)
			}
		}
	}
	for _, plain := range []string{"A B-C.12", "~~~~~~~~", "        ", "!#[]^_`{"} {
		require.False(t, Special(Load(plain, 0), '"', '\\'), plain)
		require.False(t, Control(Load(plain, 0)), plain)
	}
}

func TestEqualFold(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"RateLimit-Remaining", "ratelimit-remaining", true},
		{"RateLimit-Remaining", "RATELIMIT-REMAINING", true},
		{"Bearer", "bEARER", true},
		{"RateLimit-Limit", "RateLimit-Reset", false},
		{"abcdefgh@", "abcdefgh`", false}, // differ in the bit of a letter's case
		{"a[cdefgh", "a{cdefgh", false},
		{"Retry-After", "Retry-Afte", false},
	} {
		require.Equal(t, test.want, EqualFold(test.a, test.b), "%q and %q", test.a, test.b)
	}
}

func FuzzEqualFold(f *testing.F) {
	f.Add("RateLimit-Reset", "RATELIMIT-RESET")
	f.Add("aaaaaaaa@", "aaaaaaaa`")
	f.Fuzz(func(t *testing.T, a, b string) {
		require.Equal(t, len(a) == len(b) && equalFold(a, b), EqualFold(a, b))
	})
}

func TestUpperChangesASCIILettersOnly(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "AB-1": "AB-1", "ab-1": "AB-1", "Tata Steel @[`{": "TATA STEEL @[`{", "éſx": "éſX",
	} {
		require.Equal(t, want, Upper(in))
	}
}
