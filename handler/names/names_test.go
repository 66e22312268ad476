package names_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"regedge/handler/names"
)

func ExampleName() {
	fmt.Println(names.Name("M/s. TANU & SONS CO. PVT.LTD."))
	// Output: tanu and sons company private limited
}

// A query keeps its last word as typed, since it may be unfinished.
func ExampleQuery() {
	fmt.Println(names.Query("Tanu & Sons Co"))
	fmt.Println(names.Query("Tanu & Sons Co Pvt"))
	// Output:
	// tanu and sons co
	// tanu and sons company private
}

func TestNameForms(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"TATA STEEL LIMITED", "tata steel limited"},
		{"Tanu Textiles Pvt.Ltd.", "tanu textiles private limited"},
		{"MEGHALAYA SPICE AND AGRO EXTRACTS PVT LT D", "meghalaya spice and agro extracts private limited"},
		{"S P INVESTMENT AND DEVELOPMENT COMPANY P VT LTD", "sp investment and development company private limited"},
		{"COMPANY PR IVATE LIMITED", "company private limited"},
		{"RESORTS PRIVATELIMITED", "resorts private limited"},
		{"HOTELSPRIVATE LIMITED", "hotels private limited"},
		{"FOAMS PVTLTD", "foams private limited"},
		{"SUNRISE POWERLIMITED", "sunrise power limited"},
		{"SHARMA (P) LTD.", "sharma private limited"},
		{"A. P. LTD", "a private limited"},
		{"P LTD", "p limited"},
		{"UNITED FRUIT CO LTD", "united fruit company limited"},
		{"SHARMA & CO", "sharma and company"},
		{"SHARMA & CO., TRADERS", "sharma and company traders"},
		{"CO OPTEX INDIA LIMITED", "co optex india limited"},
		{"SHIPPING CO (GOA)", "shipping company goa"},
		{"ZEN CO-WORKING SPACES", "zen coworking spaces"},
		{"CO-OP STORES", "coop stores"},
		{"DISCO-TECH", "disco tech"},
		{"NORTH CO-OPERATIVE MILLS", "north cooperative mills"},
		{"NORTH CO OPERATIVES", "north cooperatives"},
		{"NO-FROST -A CA-TECH", "no frost a ca tech"},
		{"HANDICRAFTS DEVELOPMENT CORPN LTD", "handicrafts development corporation limited"},
		{"GLOBE INTL PVT. LTD", "globe international private limited"},
		{"GUPTA BROS MFG AND ENGG CO LTD", "gupta brothers manufacturing and engineering company limited"},
		{"M/S. U.K. FOODS", "uk foods"},
		{"M/S", ""},
		{"ACME|GOA|Acme | home|1", "acme goa acme home 1"},
		{"acme foods pvt ltd|", "acme foods private limited"},
		{"|acme foods|goa", "acme foods goa"},
		{"M/SOFT TECH", "m soft tech"},
		{"FOAM/S TECH", "foam s tech"},
		{"J.U.D. CEMENTS LTD", "jud cements limited"},
		{"S B REFINERIES & CHEMICALS", "sb refineries and chemicals"},
		{"ALLEN'S CAFE", "allens cafe"},
		{"ALLEN\u2019S CAFE", "allens cafe"},
		{"ALLEN&#39;S CAFE &amp; BAR", "allens cafe and bar"},
		{"Allen's%20Cafe%20%26%20Bar 20%", "allens cafe and bar 20"},
		{"\U0001D400\U0001D41C\U0001D426\U0001D41E \U0001D56D\U0001D670\U0001D6A3", "acme baz"},
		{"क्\u200dष श्\u200cरी", "क्ष श्री"},
		{"CAFÉ ÆON STRAßE", "cafe aeon strasse"},
		{"ŚRĪ KṚṢṆA FOODS", "sri krsna foods"},
		{"s\u0301ri\u0304 kr\u0323s\u0323n\u0323a foods", "sri krsna foods"},
		{"TRẦN STRAẞE", "tran strasse"},
		{"O\uFB03CE WA\uFB04E \uFB05REET", "office waffle street"},
		{"ΑΘΗΝΆ ναυτικός", "αθηνα ναυτικοσ"},
		{"Ромашка ЁЛКА", "ромашка елка"},
		{"ＡＢＣ １２", "abc 12"},
		{"भारत स्टील", "भारत स्टील"},
		{"東京ソニー\u3000ア", "東京ソニー ア"},
		{"\uFEFFACME\u2BFFAA\U0001F000BB\U0001FAFFCC\uFE0FDD", "acme aa bb cc dd"},
		{"ＡＢ～Ｃ", "ab c"},
		{"SUNRISE FOODSLTD", "sunrise foodsltd"},
		{"FUN UNLIMITED", "fun unlimited"},
		{"FUNLIMITED", "fun limited"},
		{"ROYAL LIMITED LIABILITY PARTNERSHIP", "royal llp"},
		{"ROYAL LTD. LIABILITY PARTNERSHIP", "royal llp"}, {"ROYAL LIMTED LIABILITYPARTNERSHIP", "royal llp"},
		{"ROYAL L.L.P", "royal llp"},
		{"SOURCE DOT COM PRIVATE LIMTED", "source dot com private limited"},
		{"%\"*'_ \x00\xff", ""},
		{"", ""},
	} {
		require.Equal(t, c.want, names.Name(c.in), c.in)
	}
}

// TestLettersLoseTheirAccents compares each letter of the tables with its canonical decomposition.
func TestLettersLoseTheirAccents(t *testing.T) {
	own := map[string]string{
		"æ": "ae", "ð": "d", "ø": "o", "þ": "th", "ß": "ss", "đ": "d", "ħ": "h", "ı": "i", "i": "i", "ĳ": "ij", "ĸ": "k", "ŀ": "l", "ł": "l",
		"ŉ": "n", "ŋ": "n", "œ": "oe", "ŧ": "t", "s": "s", "ẚ": "a", "ẜ": "s", "ẝ": "s", "ẟ": "d", "ỻ": "l", "ỽ": "v", "ỿ": "y",
	}
	for _, letters := range [][2]rune{{0xC0, 0x17F}, {0x386, 0x3CE}, {0x400, 0x45F}, {0x1E00, 0x1EFF}} {
		for r := letters[0]; r <= letters[1]; r++ {
			plain := strings.Map(func(c rune) rune {
				if unicode.Is(unicode.Mn, c) {
					return -1
				}
				return unicode.ToLower(unicode.ToUpper(c)) // the long s and the sigma at the end of a word too
			}, norm.NFD.String(string(r)))
			switch got := names.Name(string(r)); {
			case !unicode.IsLetter(r):
				require.Empty(t, got, "%c", r)
			case plain != strings.ToLower(string(r)) || r >= 0x386 && r <= 0x45F:
				require.Equal(t, plain, got, "%c", r)
			default: // no letter with an accent
				require.Equal(t, own[plain], got, "%c", r)
			}
		}
	}
}

func TestMisspeltEndingsAreRead(t *testing.T) {
	for form, spellings := range map[string]string{
		"private": "pvt prvt privat privte privited pravite priavte privtae priate pprivate",
		"limited": "ltd limted limtied limitd limitted lmited limied limitied",
	} {
		for spelling := range strings.FieldsSeq(spellings) {
			require.Equal(t, "acme "+form+" b", names.Name("ACME "+spelling+" B"))
		}
	}
	require.Equal(t, "acme private limited private limited private limited b", names.Name("ACME PVTLTD PVTLIMITED PRIVATELTD B"))
}

func TestQueryKeepsAnUnfinishedLastWord(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"sharma & co", "sharma and co"},
		{"sharma co pvt", "sharma company private"},
		{"sharma co pri", "sharma company pri"},
		{"globe corp", "globe corp"},
		{"globe intl", "globe international"},
		{"globe pv", "globe pri"},
		{"globe pvt lt", "globe private lim"},
		{"globe lt", "globe lim"},
		{"lt", "lt"},
		{"globe p ltd", "globe private limited"},
		{"pvt ltd", "private limited"},
		{"co", "co"},
		{"octaphores \U0001F3E2", "octaphores"},
	} {
		require.Equal(t, c.want, names.Query(c.in), c.in)
	}
}

func FuzzForms(f *testing.F) {
	for _, s := range []string{
		"TATA STEEL LIMITED", "A P VT LT D", "M/s. U.K. & CO. (P) LTD", "x pvtltd", "co operative co", "p p p limited",
		"pv", "é\u0301\u200d", "\x00\xff%", "unlimited", "limitedliability partnership", "abclimitedlimited", "co co op", "c o l t d", "ltd liabilitypartnership",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, query := names.Name(s), names.Query(s)
		require.Equal(t, name, names.Name(name), "Name is idempotent")
		require.Equal(t, query, names.Query(query), "Query is idempotent")
		require.True(t, utf8.ValidString(name))
		for _, form := range []string{name, query} {
			require.Equal(t, strings.Join(strings.Fields(form), " "), form, "one space between words")
			require.NotContains(t, form, "\"")
		}
		whole := s + " foods"
		require.Equal(t, names.Name(whole), names.Query(whole), "a finished last word")
	})
}
