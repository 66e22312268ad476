package handler

import (
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/handler/names"
	"regedge/internal/testkit/searchtest"
)

func TestNumbersInNames(t *testing.T) {
	const cin = "U74999TR2019PTC013706"
	for name, want := range map[string]string{
		cin: cin, "cin: u74999 tr 2019 ptc 013706": cin, "Ｕ７４９９９ＴＲ２０１９ＰＴＣ０１３７０６": cin, "Sculpin (U74999TR2019PTC013706)": cin,
		"AAA-1234": "AAA-1234", "aaa1234": "AAA-1234", "AAA - 1234": "AAA-1234", "AAA–1234.": "AAA-1234", "ＡＡＡ－１２３４": "AAA-1234",
		"LLPIN AAA 1234": "AAA-1234", "llpin: aaa1234": "AAA-1234",
		"aaa 1234": "", "a.a.a. 1234": "", "a a a 1 2 3 4": "", "AAA-123": "", "U74999TR2019PTC0137O6": "", "": "",
	} {
		require.Equal(t, want, numberIn(name), name)
	}
}

func TestNumbersLikeAMistakenOne(t *testing.T) {
	const cin = "U74999TR2019PTC013706"
	for _, typed := range []string{
		cin, "U74999TR2O19PTCO137O6", "L74999TR2019PTC013706", "U74999TR2019PLC013706", "U74999TP2019PTC013706", "U74999TR2019PTC013760",
		"U74999TR2019PTC013796", "74999TR2019PTC013706", "U7499TR2019PTC013706", "U74999TR2019PTC0137066", "CINU74999TR2019PTC01370",
		"U749999TR2019PTC013706",
	} {
		require.Contains(t, numbersLike(typed), cin, typed)
	}
	require.Equal(t, cin, numbersLike("U74999TR2O19PTCO137O6")[0], "what was misread comes first")
	require.Equal(t, []string{"AAA-1234"}, numbersLike("AAA1234"))
	for _, typed := range []string{"", "TATASTEELINDIALIMITED", "000000000000000000000", "AAA1235B", "27AAACR5055K1ZV", "U74999TR2019"} {
		require.Empty(t, numbersLike(typed), typed)
	}
	most := 0
	for _, typed := range []string{cin, cin[1:], cin + "0"} {
		for _, number := range numbersLike(typed) {
			_, ok := ident.CIN(number)
			require.True(t, ok, number)
		}
		most = max(most, len(numbersLike(typed)))
	}
	require.Less(t, most, 300, "each is looked up")
	require.Equal(t, strconv.Itoa(names.MaxSuggestions), maxNumberSuggestions)
}

func TestPartsOfNumbers(t *testing.T) {
	const cin = "U74999TR2019PTC013706"
	for typed, want := range map[string][2]string{
		cin[:12]: {beginNumberStatement, cin[:12]}, cin[:19]: {beginNumberStatement, cin[:19]}, "CIN" + cin[:13]: {beginNumberStatement, cin[:13]},
		cin[6:]: {endNumberStatement, cin[6:]}, cin[2:]: {endNumberStatement, cin[6:]},
		cin[:11]: {}, cin[:20]: {}, cin[1:]: {}, cin: {}, cin[7:]: {}, "TATASTEELINDIA": {}, "U74999TRPTC013706": {}, "": {},
	} {
		statement, part := partOfNumber(typed)
		require.Equal(t, want, [2]string{statement, part}, typed)
	}
}

func TestAPartOfANumberSuggestsNames(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "L10000TR2019PTC013706", Name: "ONE LIMITED", Status: "ACTIVE"},
		{Value: "U74999TR2019PTC013706", Name: "TWO LIMITED", Status: "ACTIVE"},
		{Value: "U74999TR2019PTC013707", Name: "THREE LIMITED", Status: "ACTIVE"},
		{Value: "U74999TR2020PTC013708", Name: "FOUR LIMITED", Status: "ACTIVE"},
		{Value: "U99999WB2020PTC013709", Name: "FIVE LIMITED", Status: "ACTIVE"},
	})
	for query, want := range map[string]string{
		"u74999 tr 2019": `"TWO LIMITED", "THREE LIMITED"`, "U74999TR2020PTC01": `"FOUR LIMITED"`, "TR2019PTC013706": `"ONE LIMITED", "TWO LIMITED"`,
		"99WB2020PTC013709": `"FIVE LIMITED"`, "U74999TR2018": "", "TR2018PTC013706": "",
	} {
		found, suggestions := s.search(t, query, 5)
		require.Equal(t, "[]", found, query)
		require.Equal(t, want, suggestions, query)
	}
}

func TestAMistakenNumberSuggestsNames(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U74999TR2019PTC013706", Name: "MADE-UP ONE PRIVATE LIMITED", Status: "ACTIVE"},
		{Value: "AAA-1234", Name: "MADE-UP TWO LLP", Status: "ACTIVE"},
		{Value: "AAA-1235", Name: "AAA 1235 LLP", Status: "ACTIVE"},
	})
	for query, want := range map[string]string{
		"U74999TR2019PTC013760": `"MADE-UP ONE PRIVATE LIMITED"`, "CIN U74999 TR 2O19 PTC 013706": `"MADE-UP ONE PRIVATE LIMITED"`,
		"aaa 1234": `"MADE-UP TWO LLP"`, "U74999TR2018PTC999999": "", "aaa 9999": "",
	} {
		found, suggestions := s.search(t, query, 5)
		require.Equal(t, "[]", found, query)
		require.Equal(t, want, suggestions, query)
	}
	require.Contains(t, s.find(t, "aaa-1234", 5), "MADE-UP TWO LLP")
	require.Contains(t, s.find(t, "aaa 1235", 5), "AAA 1235 LLP", "a name comes first")
}

// TestLikelyNumbersAreSuggestedFirst, whatever the names are: two digits are exchanged more often than the state is wrong.
func TestLikelyNumbersAreSuggestedFirst(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U74999KA2019PTC013760", Name: "ALPHA LIMITED", Status: "ACTIVE"},
		{Value: "U74999TR2019PTC013706", Name: "ZETA LIMITED", Status: "ACTIVE"},
	})
	_, suggestions := s.search(t, "U74999TR2019PTC013760", 5)
	require.Equal(t, `"ZETA LIMITED", "ALPHA LIMITED"`, suggestions)
}

// TestAMistakenNumberIsFree: nothing is guessed and charged.
func TestAMistakenNumberIsFree(t *testing.T) {
	b := newBench()
	b.registry.rows[searchStatement][1] = text("[]")
	b.registry.rows[likeNumberStatement] = []Value{text("r-1"), text("MADE-UP ONE\x1eMADE-UP TWO")}
	r := b.get("/v1/search/companies?name=" + url.QueryEscape("aaa 1234"))
	require.Equal(t, 200, r.Status)
	require.Contains(t, string(r.Body), `"data":[]`)
	require.Equal(t, `"MADE-UP ONE", "MADE-UP TWO"`, header(t, r, HeaderSearchSuggestion))
	require.Equal(t, charge.NotFound, b.meter.asked[0].Outcome)
	require.Equal(t, []string{searchStatement, likeNumberStatement}, b.registry.asked)

	b.registry.rows[likeNumberStatement] = nil
	require.Equal(t, RegistryUnavailable, problemOf(t, b.get("/v1/search/companies?name=aaa+1234")))
}

// TestEveryDashJoinsAnLLPIN, with blanks around it too: documents have hyphens that don't break, and long dashes.
func TestEveryDashJoinsAnLLPIN(t *testing.T) {
	for _, dash := range []string{"-", "\u2010", "\u2011", "\u2013", "\u2014"} {
		require.Equal(t, "AAA-0345", numberIn("aaa "+dash+" 0345"), "%U", []rune(dash))
	}
	require.Empty(t, numberIn("aaa 0345"), "it may be a name")
}
