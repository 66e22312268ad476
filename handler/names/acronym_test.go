package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAcronymsOfNames(t *testing.T) {
	for typed, list := range map[string][]string{
		"T.N.G.C.": {"TRIPURA NATURAL GAS CO LTD", "TRIPURA NATURAL GAS AND CHEMICALS PRIVATE LIMITED"},
		"tngcl":    {"TRIPURA NATURAL GAS CO LTD"},
		"ONGC":     {"OIL AND NATURAL GAS CORPORATION LIMITED"},
		"OANGC":    {"OIL AND NATURAL GAS CORPORATION LIMITED"},
		"SAIL":     {"STEEL AUTHORITY OF INDIA LIMITED"},
		"SBI":      {"STATE BANK OF INDIA"},
		"abcpl":    {"ALPHA BETA COMPANY PRIVATE LIMITED", "ALPHA BETA CEMENT PAPER LTD"},
		"mpl":      {"MODERN PAPERS LIMITED", "MODERN PRIVATE LIMITED"},
		"MSWDC":    {"MANIPUR STATE WOMEN'S DEVELOPMENT CORPORATION LTD"},
		"abcdefgh": {"A1 B2 C3 D4 E5 F6 G7 H8 LLP"},
		"SAIL Ltd": {"STEEL AUTHORITY OF INDIA LIMITED"}, "tngc (opc) pvt. ltd": {"TRIPURA NATURAL GAS CO LTD"},
		"abcdefghi": nil, "ab": nil, "ab ltd": nil, "a1c": nil, "abc def": nil, "abc def ltd": nil, "भभभ": nil, "": nil,
	} {
		acronym, ok := AcronymOf(Query(typed))
		require.Equal(t, list != nil, ok, typed)
		for _, name := range list {
			require.True(t, acronym.Matches(Name(name)), "%s: %s", typed, name)
		}
		for _, name := range []string{"TRIPURA NATURAL GAS", "STEEL AUTHORITY OF INDIA", "OIL AND NATURAL GAS", "TRIPURA NATURAL CO LTD", "NATURAL TRIPURA GAS CO LTD", "TRIPURA NATURAL GAS CO OF INDIA LTD", "", "LIMITED"} {
			require.False(t, ok && acronym.Matches(Name(name)), "%s: %s", typed, name)
		}
	}
}

func TestAcronymsAreAskedForByTheirRarestLetters(t *testing.T) {
	acronym, _ := AcronymOf("hpsebl")
	require.Equal(t, `(((("^h" AND ".b") NOT "~" AND ".e") NOT "~" AND ".p") NOT "~" AND ".s") NOT "~"`, acronym.Terms)
	require.Equal(t, "h* p* s* e* b* l*", acronym.Pattern)
	require.False(t, acronym.IsOnly())
	acronym, _ = AcronymOf("xxl")
	require.Equal(t, `(("^x" AND ".x") NOT "~" AND ".l") NOT "~"`, acronym.Terms)
	require.True(t, acronym.IsOnly())
}

func FuzzAcronym(f *testing.F) {
	f.Add("ongc", "OIL AND NATURAL GAS CORPORATION LIMITED")
	f.Fuzz(func(t *testing.T, typed, name string) {
		if acronym, ok := AcronymOf(Query(typed)); ok {
			acronym.Matches(Name(name))
		}
	})
}
