package directors

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNextReadsDirectorsInOrder(t *testing.T) {
	text := "00000001\tMADE-UP ASHA\tDirector\t2020-01-02\n00000002\tMADE-UP RAVI\t\t"
	require.Equal(t, 2, Len(text))
	first, rest, ok := Next(text)
	require.True(t, ok)
	require.Equal(t, Director{"00000001", "MADE-UP ASHA", "Director", "2020-01-02"}, first)
	second, rest, ok := Next(rest)
	require.True(t, ok)
	require.Equal(t, Director{DIN: "00000002", Name: "MADE-UP RAVI"}, second)
	require.Empty(t, rest)
	require.Zero(t, Len(rest))
}

func TestMalformedListsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":           "",
		"too few fields":  "00000001\tA\tDirector",
		"too many fields": "00000001\tA\tDirector\t2020-01-02\tx",
		"no DIN":          "\tA\tDirector\t",
		"no name":         "00000001\t\tDirector\t",
		"a last newline":  "00000001\tA\t\t\n",
	} {
		_, _, ok := Next(text)
		require.False(t, ok, name)
	}
}

func TestTheExpressionHasTheCap(t *testing.T) {
	sql := Of("c.cin")
	require.Contains(t, sql, "a.cin = c.cin AND")
	require.Contains(t, sql, "LIMIT "+strconv.Itoa(Max)+")")
	require.NotContains(t, sql, "{")
}

// FuzzNext compares Next with a plain implementation: split at newlines, then at tabs.
func FuzzNext(f *testing.F) {
	f.Add("00000001\tA B\tDirector\t2020-01-02\n00000002\tB\t\t")
	f.Add("\n\t\t\t")
	f.Add("1\té\t\t\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := Len(text)
		for rest := text; rest != ""; lines-- {
			line, left, more := strings.Cut(rest, "\n")
			fields := strings.Split(line, "\t")
			valid := len(fields) == 4 && fields[0] != "" && fields[1] != "" && more == (left != "")
			d, after, ok := Next(rest)
			require.Equal(t, valid, ok)
			if !ok {
				return
			}
			require.Equal(t, Director{fields[0], fields[1], fields[2], fields[3]}, d)
			require.Equal(t, left, after)
			rest = after
		}
		require.Zero(t, lines)
	})
}
