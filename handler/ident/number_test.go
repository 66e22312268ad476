package ident

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCINNumber(t *testing.T) {
	for cin, want := range map[string]int64{ // databases hold these
		"L00000AA1800FLC000000": 1 << 60,
		"U74999SK2016PTC013232": 2122033489511860208,
		"U99999ZZ2055ULT999999": 2260479904587846975,
		"":                      3166765993278186277,
		"U74999SK2016XYZ013232": 2424222109097666369,
		"U74999SK2016LCF013232": 3976432006340261959,
	} {
		require.Equal(t, want, CINNumber(cin), cin)
	}
	for _, cin := range []string{"", "x", "U74999SK2016XYZ013232", "U74999SK1799PTC013232", "U74999SK2056PTC013232", "A74999SK2016PTC013232", "U74999SK2016LCF013232", "U7499XSK2016PTC013232", "U74999S12016PTC013232"} {
		n := CINNumber(cin)
		require.GreaterOrEqual(t, n, int64(2<<60), cin)
		require.Less(t, n, int64(4<<60), cin)
	}
}

func TestCINNumbersRiseWithTheCINs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	codes := strings.Fields("FLC FTC GAP GAT GOI NPL OPC PLC PLN PTC SGC ULL ULT")
	draw := func() string {
		return fmt.Sprintf("%c%05d%c%c%04d%s%06d", "LU"[random.IntN(2)], random.IntN(1e5), 'A'+random.IntN(26), 'A'+random.IntN(26),
			1800+random.IntN(256), codes[random.IntN(len(codes))], random.IntN(1e6))
	}
	for range 100_000 {
		a, b := draw(), draw()
		if at := random.IntN(CINLength); random.IntN(2) == 0 { // alike up to a place
			b = a[:at] + b[at:]
		}
		if _, ok := cinNumber(b); !ok {
			continue // b has parts of two codes
		}
		require.Equal(t, strings.Compare(a, b) < 0, CINNumber(a) < CINNumber(b), "%s %s", a, b)
		require.Equal(t, a == b, CINNumber(a) == CINNumber(b), "%s %s", a, b)
	}
}

func FuzzCINNumber(f *testing.F) {
	f.Add("U74999SK2016PTC013232")
	f.Fuzz(func(t *testing.T, text string) {
		n := CINNumber(text)
		if n < 1<<60 || n >= 4<<60 {
			t.Fatal(text, n)
		}
	})
}
