package names

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLettersAreSpelledInBothDirections, and words that only look like it stay.
func TestLettersAreSpelledInBothDirections(t *testing.T) {
	for typed, want := range map[string]string{
		"vee kay steels": "vk steels", "veekay steels": "vk steels", "shri vee kay": "shri vk", "ess dee s computec": "sds computec", "jay jay fitness": "jj fitness",
		"vee kay": "", "vee steels": "", "s kay steels": "", "essential oils": "", "veekays steels": "",
	} {
		require.Equal(t, want, strings.Join(lettersSpelled(suggestible(Query(typed))), " "), typed)
	}
	for typed, want := range map[string]string{
		"a v are steels": "avr steels", "a v are see steels": "avrc steels", "see k steels": "ck steels", "bee see eye in goa": "bci in goa", "av steels": "",
		"shri om steels": "", "tea steels": "", "abc are steels": "",
	} {
		require.Equal(t, want, strings.Join(lettersHeard(suggestible(Query(typed))), " "), typed)
	}
	for typed, want := range map[string]string{
		"v k steels": "vee kay steels", "shri vk steels": "shri vee kay steels", "krk hotels": "kay aar kay hotels", "pvt traders": "",
		"vk": "", "gem stones": "", "oil india": "", "io mills": "", "k9 kennels": "", "vkrs steels": "",
	} {
		require.Equal(t, want, strings.Join(letterNamesIn(suggestible(Query(typed))), " "), typed)
	}
	require.Len(t, letterNamesIn(strings.Fields("a b c d e krk")), maxSounds)
}

// TestTheFirstNameOfALetterThatFitsIsTheRightOne: no other way to read a word leads further.
func TestTheFirstNameOfALetterThatFitsIsTheRightOne(t *testing.T) {
	for i, n := range letterNames {
		for _, longer := range letterNames[i+1:] {
			require.False(t, strings.HasPrefix(longer.name, n.name), "%s comes before %s", n.name, longer.name)
		}
		for _, longer := range letterNames[:i] {
			rest, shorter := strings.CutPrefix(longer.name, n.name)
			for _, next := range letterNames {
				require.False(t, shorter && (strings.HasPrefix(next.name, rest) || strings.HasPrefix(rest, next.name)), "%s is also %s and %s", longer.name, n.name, next.name)
			}
		}
	}
	require.Equal(t, strings.Repeat("e", 100), lettersOf(strings.Repeat("ee", 100), false))
}

// TestNamesOfLettersAreAskedForApartAndJoined, each by every spelling.
func TestNamesOfLettersAreAskedForApartAndJoined(t *testing.T) {
	for typed, want := range map[string]string{
		"rk steels":      `("=aar" OR "=ar") AND ("=kay") OR "=aarkay") AND ".steel"`,
		"jj steels":      `("=jay") OR "=jayjay") AND ".steel"`,
		"veekay steels":  `"=vk"`,
		"vee kay steels": `"=vk"`,
	} {
		terms, _ := LikeTerms(Query(typed))
		require.Contains(t, strings.ReplaceAll(terms, `\"`, `"`), want, typed)
	}
}

// TestInitialsMayBeThoseOfTheFirstWords, in their order, before the other words.
func TestInitialsMayBeThoseOfTheFirstWords(t *testing.T) {
	for typed, names := range map[string][]string{
		"g s telecommunication":   {"gold seal telecommunication limited", "gold and seal telecommunications private limited"},
		"gs telecomunication ltd": {"gold seal telecommunication limited"},
		"kpr food":                {"khanna peas rice food limited", "khanna peas rice foods india limited"},
	} {
		for _, name := range names {
			s := NewSuggestions(Query(typed))
			s.Add(name, name)
			require.Equal(t, []string{name}, s.Labels(), typed)
		}
	}
	for typed, name := range map[string]string{
		"g s telecommunication": "seal gold telecommunication limited", "gs telecom": "gold seal limited", "g s": "gold seal",
		"gsm telecommunication": "gold seal telecommunication limited",
		"oil telecom":           "our india limited telecom",
	} {
		s := NewSuggestions(Query(typed))
		s.Add(name, name)
		require.Empty(t, s.Labels(), typed)
	}
	terms, _ := LikeTerms(Query("gs telecom"))
	require.Contains(t, strings.ReplaceAll(terms, `\"`, `"`), `("tel.g" AND "tel.s") NOT "~") AND ".telec") NOT "~") AND "^g"`)
}
