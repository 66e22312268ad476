package names

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTermsOfAName(t *testing.T) {
	require.Equal(t, []string{
		"!tatacoal", "$", ".c", ".co", ".coa", ".t", ".ta", ".tat", "=coal", "=tata", "^t", "^ta", "^tat",
		"acoa", "acoal", "acoalpri", "al_p", "al_pr", "alpr", "alpri", "alprivat", "atac", "ataco", "atacoalp",
		"coa.t", "coa.tat", "coal", "coalp", "coalpriv", "lpri", "lpriv", "lprivate", "oalp", "oalpr", "oalpriva",
		"ta_c", "ta_co", "taco", "tacoa", "tacoalpr", "tat.c", "tata", "tatac", "tatacoal",
		"~^ata", "~^taa", "~^tat", "~^tata", "~^tt", "~^tta", "~kl", "~tt",
	}, Terms("tata coal private limited"))
	require.Equal(t, []string{"!é", ".é", "=é", "^é", "~^é", "~é"}, Terms("é"))
	require.Empty(t, Terms(""))
}

// TestTermsOfALongNameAreBounded: databases hold these terms, so that other lengths would find nothing in them.
func TestTermsOfALongNameAreBounded(t *testing.T) {
	words := strings.Fields("bcdfgjklmnp aab aac aad aae aaf aag aah aai aaj aak aal aam aan aao aap aaq aar")
	terms := Terms(strings.Join(words, " "))
	require.Contains(t, terms, "!bcdfgjklmnpaabaacaadaaeaafaagaah")
	require.Contains(t, terms, "aaq.bcd", "16 words apart")
	require.NotContains(t, terms, "aar.bcd", "17 words apart")
	require.Contains(t, terms, ".bcdfg")
	require.Contains(t, terms, "^bcdfg")
	require.Contains(t, terms, "bcdfgjkl")
	require.Contains(t, terms, "~bkdfgjklm", "nine letters of the sound")
	var keys []string
	for _, term := range terms {
		if key, ok := strings.CutPrefix(term, markKey); ok {
			keys = append(keys, key)
		}
	}
	require.Equal(t, strings.Fields("bdfgjklmn bkdfgjklm bkdfgjkln bkdfgjkmn bkdfgjlmn bkdfgklmn bkdfjklmn bkdgjklmn bkfgjklmn kdfgjklmn"), keys)
	require.Equal(t, "100", soundKey("100"), "digits sound as they are")
	require.False(t, soundAlike("100", "1000"))
}

// TestTermsWithinPrivateLimited checks that the ending adds one term of its own, and those that
// span its beginning.
func TestTermsWithinPrivateLimited(t *testing.T) {
	alone := Terms("steel")
	for _, term := range Terms("steel private limited") {
		if !slices.Contains(alone, term) {
			require.Contains(t, []string{
				"$", "el_p", "el_pr", "stee", "teel", "eelp", "elpr", "lpri", "teelp", "eelpr", "elpri", "lpriv",
				"steelpri", "teelpriv", "eelpriva", "elprivat", "lprivate",
			}, term)
		}
	}
}

// selects reports whether a name with these terms is a candidate of a list.
func selects(t *testing.T, list string, terms []string) bool {
	elements := decode(t, list)
	for _, e := range elements {
		some := false
		for term := range strings.SplitSeq(e, " OR ") {
			term, beginning := strings.CutSuffix(term, " *")
			require.True(t, strings.HasPrefix(term, `"`) && strings.HasSuffix(term, `"`), list)
			term = strings.Trim(term, `"`)
			require.NotContains(t, term, `"`)
			at, exact := slices.BinarySearch(terms, term)
			some = exact || beginning && at < len(terms) && strings.HasPrefix(terms[at], term)
			if some {
				break
			}
		}
		if !some {
			return false
		}
	}
	return len(elements) > 0
}

// FuzzTerms checks that each list of terms selects every name of its tier.
func FuzzTerms(f *testing.F) {
	for _, s := range [][2]string{
		{"TATA STEEL PRIVATE LIMITED", "tata st"}, {"TATA STEEL PRIVATE LIMITED", "tata steel private"}, {"PRIVATE LIMITED", "private"}, {"X LIMITED PRIVATE LIMITED", "limited p"},
		{"UNITED PRIVATE LIMITED", "ated"}, {"PRIVATEERS PRIVATE LIMITED", "private"}, {"A PRIVATE LIMITED", "a private l"},
		{"भारत स्टील", "रत स्"}, {"LIMITED L PRIVATE LIMITED", "limited l"}, {"A B", "ab"}, {"ABCभ", "abc"}, {"XABC", "abc"}, {"भारत", "ारत"}, {"X", ""}, {"A OPC PRIVATE LIMITED", "a opc"}, {"A LIMITED PRIVATE LIMITED", "a limited"}, {"A PRIVATE LLP", "a private"}, {"TATA STEEL LIMITED", "tata steel"}, {"TE LIMITED LI", "te li"},
		{"SAMSUN CERAMIC INDIA", "samsun ceramics"}, {"A PRIVATELY LIMITED", "privates a"}, {"J AND K BIO FUELS", "jk bio fuel"}, {"UNLIMITEDS", "unlimited"},
		{"AND BY CO DE EL FA GO HA IN JO KA LA MA NA OX PA QUICK", "and quick"}, // as far apart as pairs reach
		{strings.Repeat("telimite", 7) + " PRIVATE LIMITED", strings.Repeat("telimite", 7) + " privatel"},
		{"ACME PRIVATE LIMITED", "vate"}, {"ACME PRIVATE LIMITED", "imited"}, {"ACME PRIVATE LIMITED", "ate"},
	} {
		f.Add(s[0], s[1])
	}
	for _, follower := range "abcdefghijklmnopqrstuvwxyz0123456789" {
		f.Add("QXYZ"+string(follower), "xyz")
	}
	f.Fuzz(func(t *testing.T, registered, typed string) {
		name, query := Name(registered), Query(typed)
		terms := Terms(name)
		if query == "" || name == "" {
			return
		}
		for _, ending := range append([]string{""}, legalEndings...) {
			if name == query+ending {
				require.True(t, selects(t, ExactTerms(query), terms), "%q is %q", name, query)
			}
		}
		if strings.HasPrefix(name, query+" ") {
			require.True(t, selects(t, WholeTerms(query), terms), "%q starts with the words %q", name, query)
		}
		if strings.HasPrefix(name, query) {
			require.True(t, selects(t, StartTerms(query), terms), "%q starts with %q", name, query)
		}
		if strings.Contains(" "+name, " "+query) {
			require.True(t, selects(t, PhraseTerms(query), terms), "%q has the phrase %q", name, query)
		}
		if strings.Contains(query, " ") && strings.Count(name, " ") <= pairReach && hasWords(name, query) {
			require.True(t, selects(t, WordsTerms(query), terms), "%q has the words %q", name, query)
		}
		if f := Forgive(query); f.Terms != NoTerms && forgiven(t, f, name) {
			require.True(t, selects(t, f.Terms, terms), "%q forgives %q", name, query)
		}
		if text := Squeeze(query); len([]rune(text)) > 2 && strings.Contains(Squeeze(name), text) {
			require.True(t, selects(t, InsideTerms(query), terms), "%q contains %q", name, query)
		}
	})
}

// forgiven reports whether a name belongs to the last tier.
func forgiven(t *testing.T, f Forgiven, name string) bool {
	for _, w := range decode(t, f.Inside) {
		if !strings.Contains(Squeeze(name), w) {
			return false
		}
	}
	for _, w := range decode(t, f.Begins) {
		if !strings.Contains(" "+name, " "+w) && !strings.Contains(" "+strings.ReplaceAll(name, " and ", ""), " "+w) {
			return false
		}
	}
	return true
}

func decode(t *testing.T, list string) (elements []string) {
	require.NoError(t, json.Unmarshal([]byte(list), &elements), list)
	return elements
}

func hasWords(name, query string) bool {
	for w := range strings.FieldsSeq(query[:strings.LastIndexByte(query, ' ')]) {
		if !strings.Contains(" "+name+" ", " "+w+" ") {
			return false
		}
	}
	_, last := CutLast(query)
	return strings.Contains(" "+name, " "+last)
}

func TestForgivenWordsAreSingular(t *testing.T) {
	for word, want := range map[string]string{
		"ceramics": "ceramic", "industries": "industr", "industry": "industr", "boxes": "box", "glass": "glass", "business": "business", "gas": "gas", "buses": "bus",
		"branches": "branch", "brushes": "brush", "quizzes": "quizz",
	} {
		require.Equal(t, want, singular(word))
	}
}

// TestTheBestForgivenNamesBeginAsTheQuery: with all of its words up to the first plural, which may end otherwise.
func TestTheBestForgivenNamesBeginAsTheQuery(t *testing.T) {
	for query, want := range map[string]string{
		"anand foundation private limited": "anandfoundation", "samsun ceramics india": "samsunceramic", "j k bio and fuel": "jkbiofuel", "dev": "dev",
	} {
		require.Equal(t, want, Forgive(Query(query)).Start, query)
	}
}

// TestARepeatedWordIsLookedForOnce: a query has room for forty, and up to 2,000 names are read for each.
func TestARepeatedWordIsLookedForOnce(t *testing.T) {
	once, often := Forgive("dev ceramic"), Forgive("dev ceramic ceramics dev ceramics")
	require.Equal(t, once.Inside, often.Inside)
	require.Equal(t, once.Begins, often.Begins)
	require.Equal(t, "devceramicceramic", often.Start, "a name may repeat it")
}

// TestALegalEndingMayBeLeftOut of a whole name, and is ignored by Forgive too.
func TestALegalEndingMayBeLeftOut(t *testing.T) {
	for _, ending := range []string{"", " llp", " limited", " private limited", " opc private limited"} {
		require.True(t, selects(t, ExactTerms("acme foods"), Terms("acme foods"+ending)), ending)
		require.Equal(t, Forgive("acme foods"), Forgive("acme foods"+ending), ending)
	}
	require.False(t, selects(t, ExactTerms("acme foods"), Terms("acme foods company")))
	require.Equal(t, Forgive("acme sons"), Forgive("acme and sons"))
}
