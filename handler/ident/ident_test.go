package ident

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ExampleCIN() {
	cin, ok := CIN(" u74999sk2016ptc013232")
	fmt.Println(cin, ok)
	fmt.Println(RegistrationNumber(cin))
	// Output:
	// U74999SK2016PTC013232 true
	// 013232
}

func ExampleDIN() {
	fmt.Println(DIN("123456"))
	// Output: 00123456 true
}

func TestCIN(t *testing.T) {
	for in, want := range map[string]string{
		"U74999SK2016PTC013232":     "U74999SK2016PTC013232",
		" u74999sk2016ptc013232\t ": "U74999SK2016PTC013232",
		// As copied from a page, with no-break spaces.
		"\u00a0U74999SK2016PTC013232\u00a0": "U74999SK2016PTC013232",
	} {
		got, ok := CIN(in)
		require.True(t, ok, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{
		"", "U74999SK2016PTC01323", "U74999SK2016PTC0132322", "U74999SK2O16PTC013232",
		"U74999SK2016PTC01323२", "174999SK2016PTC013232", "U74999SK2016PTC 13232", "ſ74999SK2016PTC01323",
	} {
		_, ok := CIN(in)
		require.False(t, ok, in)
	}
	require.Equal(t, "013232", RegistrationNumber("U74999SK2016PTC013232"))
}

func TestDIN(t *testing.T) {
	for in, want := range map[string]string{"1": "00000001", "00123456": "00123456", " 123456 ": "00123456"} {
		got, ok := DIN(in)
		require.True(t, ok, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", " ", "123456789", "12a", "-1", "१२"} {
		_, ok := DIN(in)
		require.False(t, ok, in)
	}
}

func TestLLPIN(t *testing.T) {
	for _, in := range []string{"ABD-0345", "abd0345", " AbD-0345 ", strings.Repeat(" ", MaxLLPIN-LLPINLength) + "ABD-0345"} {
		got, ok := LLPIN(in)
		require.True(t, ok, in)
		require.Equal(t, "ABD-0345", got)
	}
	for _, in := range []string{
		"", "ABD-345", "ABD--0345", "ABDX0345", "AB-00345", "ABD-03456", "ABD 0345", "ÀBD-0345",
		strings.Repeat(" ", 13) + "ABD-0345",
	} {
		_, ok := LLPIN(in)
		require.False(t, ok, in)
	}
}

func FuzzIdentifiers(f *testing.F) {
	for _, s := range []string{"U74999SK2016PTC013232", "00000001", "ABD-0345", "reg_live_x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range map[string]func(string) (string, bool){"cin": CIN, "din": DIN, "llpin": LLPIN} {
			if got, ok := parse(s); ok {
				again, ok := parse(got)
				require.True(t, ok && again == got, "%s: the canonical form %q is not stable", name, got)
			}
		}
		ValidKey(s)
	})
}
