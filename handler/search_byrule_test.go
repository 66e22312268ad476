package handler

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/names"
	"regedge/internal/testkit/searchtest"
)

// wantOfEach is how many of the queries that are made by a rule from registered names must suggest the name, or one for
// which the rule makes the same query.
const wantOfEach = 0.95

// TestQueriesByRuleSuggestTheirNames makes queries by rules from names that nobody chose.
func TestQueriesByRuleSuggestTheirNames(t *testing.T) {
	records := append(searchtest.Real(t), searchtest.Others(t)...)
	if len(records) == 0 {
		t.Log("without ../shared/data: searching the names of testdata")
		records = searchtest.Sample(t)
	}
	s := newSearcher(t, records)
	called := map[string][]searchtest.Record{}
	for _, r := range records {
		called[r.Name] = append(called[r.Name], r)
	}
	for name, make := range map[string]func(r searchtest.Record) string{
		"acronyms":             acronymByRule,
		"numbers and ordinals": numeralByRule,
		"Tamil":                tamilByRule,
		"beginnings of CINs":   func(r searchtest.Record) string { return cinByRule(r, 0, 19) },
		"ends of CINs":         func(r searchtest.Record) string { return cinByRule(r, 6, 21) },
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(27, 11))
			asked, hits := 0, 0
			for _, i := range random.Perm(len(records)) {
				query := make(records[i])
				if query == "" {
					continue
				}
				found, suggestions := s.search(t, query, 10)
				if found != "[]" {
					continue
				}
				same := func(encoded string) bool {
					label, err := url.PathUnescape(encoded)
					require.NoError(t, err)
					return slices.ContainsFunc(called[label], func(r searchtest.Record) bool { return make(r) == query })
				}
				switch labels := strings.Split(strings.Trim(suggestions, `"`), `", "`); {
				case slices.ContainsFunc(labels, same):
					hits++
				default:
					t.Logf("%q wants %s, got %s", query, records[i].Name, suggestions)
				}
				if asked++; asked == 200 {
					break
				}
			}
			t.Logf("%d of %d", hits, asked)
			require.NotZero(t, asked)
			require.GreaterOrEqual(t, float64(hits), wantOfEach*float64(asked))
		})
	}
}

// plainWords returns the words of a name without its legal ending, nil if one has not only letters or fewer than least.
func plainWords(name string, least int) []string {
	words := strings.Fields(names.Name(name))
	for len(words) > 0 && slices.Contains([]string{"private", "limited", "opc", "llp"}, words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	for _, w := range words {
		if len(w) < least || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
			return nil
		}
	}
	return words
}

// acronymByRule is the first letters of the words of a name but "and", four to seven.
func acronymByRule(r searchtest.Record) string {
	acronym := ""
	for _, w := range plainWords(r.Name, 2) {
		if w != "and" {
			acronym += strings.ToUpper(w[:1])
		}
	}
	if len(acronym) < 4 || len(acronym) > 7 {
		return ""
	}
	return acronym
}

// numeralByRule is a name with the first of its numbers up to ten, in any form, as a digit.
func numeralByRule(r searchtest.Record) string {
	forms := strings.Fields("one first 1st two second 2nd three third 3rd four fourth 4th five fifth 5th six sixth 6th seven seventh 7th " +
		"eight eighth 8th nine ninth 9th ten tenth 10th")
	words := strings.Fields(names.Name(r.Name))
	for i, w := range words {
		if at := slices.Index(forms, w); at >= 0 && len(words) > 3 {
			words[i] = strings.Fields("1 2 3 4 5 6 7 8 9 10")[at/3]
			return strings.Join(words[:len(words)-1], " ")
		}
	}
	return ""
}

func cinByRule(r searchtest.Record, from, to int) string {
	if len(r.Value) < to {
		return ""
	}
	return r.Value[from:to]
}

// tamilByRule writes a name of two or three words in Tamil, which has one letter for k and g, t and d, p and b.
func tamilByRule(r searchtest.Record) string {
	words := plainWords(r.Name, 4)
	if len(words) < 2 || len(words) > 3 {
		return ""
	}
	for i, w := range words {
		words[i] = inTamil(w)
	}
	return strings.Join(words, " ")
}

// inTamil writes a word of Latin letters in Tamil as they are mostly said.
func inTamil(word string) string {
	consonants := strings.Fields("sh ஷ ch ச th த dh த kh க gh க bh ப ph ப jh ஜ ck க x க்ஸ k க g க c க q க s ஸ z ஸ j ஜ t ட d ட n ன p ப b ப " +
		"f ப m ம y ய r ர l ல v வ w வ h ஹ")
	vowels := strings.Fields("aa ஆ ா ee ஈ ீ oo ஊ ூ ou ஔ ௌ ai ஐ ை ea ஈ ீ a அ - e எ ெ i இ ி o ஒ ொ u உ ு")
	var b strings.Builder
	open := false // the last letter was a consonant, whose vowel is not known yet
next:
	for word != "" {
		for i := 0; i < len(vowels); i += 3 {
			if rest, ok := strings.CutPrefix(word, vowels[i]); ok {
				switch {
				case !open:
					b.WriteString(vowels[i+1])
				case vowels[i+2] != "-":
					b.WriteString(vowels[i+2])
				}
				word, open = rest, false
				continue next
			}
		}
		if open {
			b.WriteString("்")
		}
		for i := 0; i < len(consonants); i += 2 {
			if rest, ok := strings.CutPrefix(word, consonants[i]); ok {
				letter := consonants[i+1]
				if word[0] == 'c' && (strings.HasPrefix(rest, "e") || strings.HasPrefix(rest, "i") || strings.HasPrefix(rest, "y")) {
					letter = "ச"
				}
				b.WriteString(letter)
				word, open = rest, true
				continue next
			}
		}
		return ""
	}
	if open {
		b.WriteString("்")
	}
	return b.String()
}

// TestAcronymsAndNamesLikeThem: what looks like a word is compared as one first.
func TestAcronymsAndNamesLikeThem(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U10000GJ2000PTC000001", Name: "GUJARAT INDUSTRIAL PAPER SUPPLY LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000002", Name: "GIPK ONE LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000003", Name: "GIPT TWO LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000004", Name: "GIPY THREE LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000005", Name: "GOA TOWN PAPER SUPPLY LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000006", Name: "GTPT FOUR LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000007", Name: "GOLD TIN PAPER SAND LIMITED", Status: "ACTIVE"},
	})
	for query, want := range map[string]string{
		"gips":         `"GIPK ONE LIMITED", "GIPT TWO LIMITED", "GIPY THREE LIMITED"`,
		"GIPS":         `"GIPK ONE LIMITED", "GIPT TWO LIMITED", "GUJARAT INDUSTRIAL PAPER SUPPLY LIMITED"`,
		"gtps":         `"GOLD TIN PAPER SAND LIMITED", "GOA TOWN PAPER SUPPLY LIMITED"`,
		"gtps pvt ltd": `"GOLD TIN PAPER SAND LIMITED", "GOA TOWN PAPER SUPPLY LIMITED"`,
		"GIPS Ltd":     `"GIPK ONE LIMITED", "GIPT TWO LIMITED", "GUJARAT INDUSTRIAL PAPER SUPPLY LIMITED"`,
		"gtpx":         ``,
	} {
		found, suggestions := s.search(t, query, 5)
		require.Equal(t, "[]", found, query)
		require.Equal(t, want, suggestions, query)
	}
}

// TestAnAcronymIsFree: names that it may be of are suggestions.
func TestAnAcronymIsFree(t *testing.T) {
	b := newBench()
	b.registry.rows[searchStatement][1] = text("[]")
	const same = "tripura gas company limited\x1eTRIPURA GAS CO LTD" // of two companies, and suggested once
	b.registry.rows[acronymStatement] = []Value{text("r-1"), text(same + "\x1e" + same)}
	r := b.get("/v1/search/companies?name=tgc")
	require.Contains(t, string(r.Body), `"data":[]`)
	require.Equal(t, `"TRIPURA GAS CO LTD"`, header(t, r, HeaderSearchSuggestion))
	require.Equal(t, charge.NotFound, b.meter.asked[0].Outcome)
	require.Equal(t, []string{searchStatement, forgivingStatement, acronymStatement}, b.registry.asked)

	b.registry.rows[acronymStatement] = nil
	require.Equal(t, RegistryUnavailable, problemOf(t, b.get("/v1/search/companies?name=tgc")))
}
