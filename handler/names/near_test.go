package names

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestSoundsOfIndianSpellings(t *testing.T) {
	for _, same := range [][]string{
		{"shree", "shri", "sri", "sree"}, {"mahavir", "mahaveer", "mahaweer"}, {"chaudhary", "choudhury", "chowdhary", "chaudhari"},
		{"philips", "filips"}, {"laxmi", "lakshmi", "lakshmee", "laksmi"}, {"vadilal", "wadilal"}, {"kshatriya", "xatriya"},
		{"reliance", "relianse", "relyance"}, {"krishna", "krishnaa", "krisna"}, {"pooja", "puja"}, {"udyog", "oodyog", "udhyog"},
		{"india", "yndia"}, {"brahma", "brama"}, {"cycle", "sycle"}, {"cement", "sement"}, {"kamar", "qamar"},
	} {
		for _, word := range same[1:] {
			require.True(t, soundAlike(same[0], word), "%s and %s: %s, %s", same[0], word, soundKey(same[0]), soundKey(word))
		}
	}
	require.Equal(t, "sr", soundKey("shree"))
	require.Equal(t, "kdr", soundKey("chaudhary"))
	require.False(t, soundAlike("tata", "dada"))
	require.False(t, soundAlike("yoga", "oga"))
}

// TestKeysMeetAfterOneMistake checks that a word has a key in common with itself after one wrong,
// missing, doubled or swapped letter.
func TestKeysMeetAfterOneMistake(t *testing.T) {
	keys := func(word string) map[string]bool {
		set := map[string]bool{}
		eachKey(word, func(key []byte) { set[string(key)] = true })
		return set
	}
	random := rand.New(rand.NewPCG(1, 1))
	met, all := 0, 0
	for _, word := range []string{"reliance", "infosys", "zerodha", "mahindra", "hindustan", "technologies", "tata", "ambuja", "sundaram", "krishnamurthy", "pidilite"} {
		for range 200 {
			i := random.IntN(len(word) - 1)
			wrong := []string{
				word[:i] + string(rune('a'+random.IntN(26))) + word[i+1:], word[:i] + word[i+1:],
				word[:i+1] + word[i:], word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:],
			}[random.IntN(4)]
			all++
			for key := range keys(wrong) {
				if keys(word)[key] {
					met++
					break
				}
			}
		}
	}
	require.Greater(t, float64(met)/float64(all), 0.93)
	require.Contains(t, keys("nanavati"), "nnv", "each letter is left out, also after two of one sound")
}

func TestDistanceOfWords(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"steel", "steel", 0}, {"steel", "stele", 1}, {"steel", "stel", 1}, {"steel", "steell", 1}, {"steel", "steal", 1},
		{"steel", "tsele", 2}, {"steel", "st", 3}, {"a", "", 1}, {"", "", 0}, {"reliance", "alliance", 2}, {"tata", "steel", 3},
	} {
		require.Equal(t, c.want, distance(c.a, c.b, 2), "%s and %s", c.a, c.b)
		require.Equal(t, c.want, distance(c.b, c.a, 2), "%s and %s", c.b, c.a)
	}
}

func TestSuggestionsAreInTheOrderOfLikeness(t *testing.T) {
	s := NewSuggestions("relianse industies")
	for _, label := range []string{
		"ALLIANCE INDUSTRIES LIMITED", "RELIANCE POWER LIMITED", "RELIANCE INDUSTRIES AND TRADERS LIMITED", "TATA STEEL LIMITED",
		"RELIANCE INDUSTRIES LIMITED", "RELIANCE INDUSTRIES LIMITED", "RELIANCE INDUSTRIES INDIA PRIVATE LIMITED",
	} {
		s.Add(Name(label), label)
	}
	require.Equal(t, []string{
		"RELIANCE INDUSTRIES LIMITED", "RELIANCE INDUSTRIES AND TRADERS LIMITED", "RELIANCE INDUSTRIES INDIA PRIVATE LIMITED",
	}, s.Labels())
}

// TestSuggestionsMayLackAWord: the last two, such as a place, or the first one, if the name begins with the
// others; elsewhere one of three.
func TestSuggestionsMayLackAWord(t *testing.T) {
	for query, want := range map[string]string{
		"peer networks srinagar":                    "PEER NETWORKS PRIVATE LIMITED",
		"peer networks pvt ltd srinagar":            "PEER NETWORKS PRIVATE LIMITED",
		"saini tools and forgings himachal pradesh": "SAINI TOOLS AND FORGINGS PVT LTD",
		"the tribe of humans":                       "TRIBE OF HUMANS FOUNDATION",
		"green tourism n consultancy":               "GREEN TOURISM AND CONSULTANCY PRIVATE LIMITED",
		"rupam srinagar":                            "RUPAM (OPC) PRIVATE LIMITED",
		"9 starz hospitality":                       "NINE STARS HOSPITALITY LLP",
		"nine stars hospitalty":                     "NINE STARS HOSPITALITY LLP",
		"pondy granites":                            "PUDUCHERRY GRANITES LIMITED",
		"tribe humans foundaion pvt ltd 12 mg road": "TRIBE OF HUMANS FOUNDATION",
		"tribe humans foundaion llp 12 mg road":     "TRIBE OF HUMANS FOUNDATION",
		"greentourism consultency":                  "GREEN TOURISM AND CONSULTANCY PRIVATE LIMITED",
		"puducherry gra nites":                      "PUDUCHERRY GRANITES LIMITED",
		"the old tribe of humans":                   "TRIBE OF HUMANS FOUNDATION",
		"himachal pradesh peer networks":            "PEER NETWORKS PRIVATE LIMITED",
		"peer srinagar networks":                    "PEER NETWORKS PRIVATE LIMITED",
		"the hospitalty rupam":                      "",
		"peer srinagar":                             "",
		"peer networks himachal pradesh shimla":     "PEER NETWORKS PRIVATE LIMITED", // a part, as partsOf has them; the next name is too short
		"peer tea himachal pradesh":                 "PEER TEA LIMITED",
		"peer tea himachal pradesh shimla":          "",
		"a very old tribe of humans":                "",
		"srinagar jammu networks":                   "",
		"old gren tourism consultancy":              "GREEN TOURISM AND CONSULTANCY PRIVATE LIMITED", // a place may stand before it
		"old gren tourism consultncy":               "",                                              // but one mistake is enough then
	} {
		s := NewSuggestions(Query(query))
		for _, label := range []string{
			"PEER NETWORKS PRIVATE LIMITED", "SAINI TOOLS AND FORGINGS PVT LTD", "TRIBE OF HUMANS FOUNDATION",
			"GREEN TOURISM AND CONSULTANCY PRIVATE LIMITED", "RUPAM (OPC) PRIVATE LIMITED", "RUPAM HOTELS LIMITED",
			"NINE STARS HOSPITALITY LLP", "PUDUCHERRY GRANITES LIMITED", "PEER TEA LIMITED",
		} {
			s.Add(Name(label), label)
		}
		for number := range fewBegin { // so many that the first word alone says too little
			label := "PEER " + strings.Repeat("X", number+3) + " LIMITED"
			s.Add(Name(label), label)
		}
		require.Equal(t, want, strings.Join(s.Labels(), ","), query)
	}
}

// TestTheFirstWordOfFewNamesSuggestsThem, if no name is more like the query, and other words tell them apart.
func TestTheFirstWordOfFewNamesSuggestsThem(t *testing.T) {
	kapardi := []string{"KAPARDI ALCOBEV PRIVATE LIMITED", "KAPARDI MEDIA LLP", "KAPARDIA HOTELS LLP", "NEW KAPARDI LIMITED"}
	for query, want := range map[string][]string{
		"kapardi beverages": kapardi[:2], "kapardi beverages and foods": kapardi[:2], "kapardi alcobev goa": kapardi[:1],
		"kapardi 12": {}, "ka beverages": {}, "beverages kapardi": {}, "kapardi": {kapardi[0], kapardi[1], kapardi[3]},
	} {
		s := NewSuggestions(Query(query))
		for _, label := range kapardi {
			s.Add(Name(label), label)
		}
		require.Equal(t, want, s.Labels(), query)
	}
	for others, want := range map[int]int{0: 0, 1: 1, fewBegin: MaxSuggestions, fewBegin + 1: 0} {
		s := NewSuggestions("kapardi beverages")
		for number := range others {
			label := "KAPARDI " + strings.Repeat("X", number+1)
			s.Add(Name(label), label)
		}
		require.Len(t, s.Labels(), want)
	}
	terms, _ := LikeTerms("kapardi beverages")
	require.Contains(t, terms, quoted("^kapar")+" AND "+quoted("=kapardi"))
	s := NewSuggestions("kapardi beverages")
	s.Add("kapardi x", "KAPARDI X")
	s.Add("kapardi x", "KAPARDI X")
	require.Equal(t, []string{"KAPARDI X"}, s.Labels())
}

// TestAnotherWordForTheTradeIsSuggestedLast: names with a mistake in the first word leave it a place.
func TestAnotherWordForTheTradeIsSuggestedLast(t *testing.T) {
	near := []string{"KAZIM INDUSTRIES", "KASIM INDUSTRIES", "QASSIM INDUSTRIES"}
	for _, more := range []int{0, 1, fewBegin, fewBegin + 1} {
		s := NewSuggestions("qasim industries")
		for number := range more {
			label := "QASIM " + strings.Repeat("X", number+8)
			s.Add(Name(label), label)
		}
		for _, label := range near {
			s.Add(Name(label), label)
		}
		want := slices.Clone(near)
		if more > 0 && more <= fewBegin {
			want[2] = "QASIM XXXXXXXX"
		}
		require.Equal(t, want, s.Labels(), more)
	}
	s := NewSuggestions("qasim industries")
	for _, label := range []string{"QASIM INDUSTRY", "QASIM HOTELS", near[0], near[1]} {
		s.Add(Name(label), label)
	}
	require.Equal(t, []string{"QASIM INDUSTRY", near[0], near[1]}, s.Labels(), "the first word is right already")
}

// TestAPlaceBeforeAPartOfANameIsLeftOut if few names have the other words in a row, and none is more like the query.
func TestAPlaceBeforeAPartOfANameIsLeftOut(t *testing.T) {
	for query, want := range map[string]string{
		"shillong diocesan trust": "NORTH DIOCESAN TRUST ASSOCIATION", "shillong trust diocesan": "", "shillong trust": "",
		"shillong diocesan trusts": "", "north diocesan truss": "NORTH DIOCESAN TRUST ASSOCIATION",
	} {
		s := NewSuggestions(query)
		s.Add("north diocesan trust association", "NORTH DIOCESAN TRUST ASSOCIATION")
		require.Equal(t, want, strings.Join(s.Labels(), ","), query)
		for number := range fewBegin {
			s.Add("x diocesan trust", "X "+strings.Repeat("X", number))
		}
		if !strings.HasPrefix(query, "north") {
			require.Empty(t, s.Labels(), query)
		}
	}
}

// TestWordsMayBeCutShortOrLackTheirVowels, but are rather joined with their neighbours.
func TestWordsMayBeCutShortOrLackTheirVowels(t *testing.T) {
	for typed, name := range map[string]string{
		"ifninicare ent ind": "infinicare enterprises india", "dsgn collaborative": "design collaborative", "arvindd htls": "arvind hotels",
		"bha ani bhog": "bhawani bhog", "vk film": "veekay films",
	} {
		s := NewSuggestions(typed)
		s.Add(name, name)
		require.Equal(t, []string{name}, s.Labels(), typed)
	}
	for typed, word := range map[string]string{"snhl": "snehal", "dsgn": "design", "htls": "hotels", "ekt": "ekta"} {
		require.True(t, lacksVowels(typed, word), typed)
	}
	for typed, word := range map[string]string{"sn": "sena", "snhl": "snehals", "snhls": "snehal", "dsgn": "dsgn", "esgn": "design", "sna": "sana", "h2l": "hotel"} {
		require.False(t, lacksVowels(typed, word), typed)
	}
	s := NewSuggestions("in ma")
	s.Add("india manufacturing", "it")
	require.Empty(t, s.Labels(), "two letters are too few")
}

// TestAPluralMayBeMisspelt, and be typed for one word and not for the other.
func TestAPluralMayBeMisspelt(t *testing.T) {
	s := NewSuggestions("parwatkar industry")
	s.Add("parvatkar industries private limited", "it")
	require.Equal(t, []string{"it"}, s.Labels())
	for typed, word := range map[string]string{"cookwear": "cookwares", "electricals": "electric", "digitas": "digital"} {
		require.Less(t, s.wordCost(typed, word, false), costAbsent, typed)
	}
	require.Equal(t, costAbsent, s.wordCost("gas", "goods", false))
	require.Less(t, s.wordCost("hotel", "hotels", false), s.wordCost("hotle", "hotels", false))
}

func TestAbbreviationsAreLettersOfAWord(t *testing.T) {
	for short, word := range map[string]string{
		"mgmt": "management", "mgt": "management", "std": "standard", "dr": "doctor", "govt": "government", "engrs": "engineers", "inds": "industries",
		"svcs": "services", "natl": "national", "pdts": "products", "mktg": "marketing", "trdg": "trading", "bldrs": "builders", "fdn": "foundation",
	} {
		require.True(t, abbreviates(short, word), "%s is %s", short, word)
	}
	for short, word := range map[string]string{
		"mir": "miramar", "dr": "dear", "d": "dead", "std": "studies", "mgmt": "measurement x", "gmmt": "government", "xgmt": "management", "mntnnce": "maintenance",
		"gvot": "government", "mnmgt": "management", "goet": "government",
	} {
		require.False(t, abbreviates(short, word), "%s is %s", short, word)
	}
	s := NewSuggestions("std soln")
	s.Add("standard solutions limited", "it")
	require.Equal(t, []string{"it"}, s.Labels())
	for short, word := range map[string]string{"pdts": "products", "bldrs": "builders", "mfrs": "manufacturers", "soln": "solutions", "mktg": "marketing"} {
		require.Equal(t, costShort, s.wordCost(short, word, false), "%s is %s", short, word)
	}
}

// TestAFurtherWordIsLessThanAWrongLetter, and of names that are equally alike the first is first.
func TestAFurtherWordIsLessThanAWrongLetter(t *testing.T) {
	s := NewSuggestions("tata steal")
	for _, name := range []string{"tata steel", "tata steal works"} {
		s.Add(name, name)
	}
	require.Equal(t, []string{"tata steal works", "tata steel"}, s.Labels())
}

func TestShortWordsHaveOneWrongLetter(t *testing.T) {
	require.Equal(t, costAbsent, wordCost("tata", "dada", false))
	require.Equal(t, costLetter, wordCost("tata", "tada", false))
	require.Equal(t, 2*costLetter, wordCost("steel", "stead", false))
}

func TestDoubledVowelsAreLongOnes(t *testing.T) {
	for word, want := range map[string]string{"mahaveer": "mahavir", "pooja": "puja", "shree": "sri"} {
		require.Equal(t, want, string(appendPlain(nil, word)))
	}
}

// TestWhatALikeNameIsAskedForBy has one expression of each kind.
func TestWhatALikeNameIsAskedForBy(t *testing.T) {
	for query, want := range map[string]string{
		"bombay foundry": `("=bombay" OR "=mumbai") AND ".found"`,
		"36 events":      `".thirt" AND ".event") NOT "~") AND "=six"`,
		"tata misteel":   `"=tata" AND "teel"`,
		"बालाजी":         `"~blj"`,
	} {
		terms, _ := LikeTerms(Query(query))
		require.Contains(t, strings.ReplaceAll(terms, `\"`, `"`), want, query)
	}
}

func TestWhatIsNotOfANameIsLeftOut(t *testing.T) {
	for query, want := range map[string]string{
		"rupam opc pvt ltd": "rupam", "acme 400001": "acme", "acme 012345": "acme 012345", "acme 4000011": "acme 4000011",
		"acme +91 98220 12345": "acme", "acme 0832-2412345 403001": "acme", "acme 24 7": "acme 24 7", "9822012345": "9822012345",
		"https://acme.net.in/a/b": "acme net in", "https://acme/a/b": "acme ab",
		"https://www.walk-in-wardrobes.com/contact": "walk in wardrobes com", "https://goashipyard.in/contact?mail=x@gmail.com": "goashipyard in",
		"https://goashipyard.in/built-in-india":   "goashipyard in",
		"https://www.drive-in-cinemas.co.in/menu": "drive in cinemas company", "studio 7 9876543210": "studio 7", "milestone 72, 98765 43210": "milestone 72",
		"acme 022 2345 6789": "acme", "acme +91 98765 43210": "acme", "acme 2345678": "acme 2345678", "are you who you are": "are you who",
		"https www the acme": "acme", "messrs acme": "acme", "400001": "400001",
	} {
		require.Equal(t, want, strings.Join(suggestible(Query(query)), " "))
	}
}

// TestWhatIsSeldomOfANameIsAlsoKept: a company may be called so.
func TestWhatIsSeldomOfANameIsAlsoKept(t *testing.T) {
	for query, want := range map[string]struct{ words, typed string }{
		"acme foods (formerly known as Zeta Ltd)":           {"acme foods", "acme foods formerly known as zeta"},
		"acme foods erstwhile zeta":                         {"acme foods", "acme foods erstwhile zeta"},
		"acme foods, GSTIN 30AABCU9603R1ZX":                 {"acme foods", "acme foods gstin 30aabcu9603r1zx"},
		"acme group of companies":                           {"acme", "acme group of companies"},
		"acme group":                                        {"acme group", ""},
		"a1b2 c3d4 foods india group of companies":          {"a1b2 c3d4 foods india", "a1b2 c3d4 foods india group of"},
		"agro foods india exports house group of companies": {"agro foods india exports house", "agro foods india exports house group"},
		"formerly acme":                                     {"acme", ""},
		"group of companies":                                {"group of companies", ""},
	} {
		words, typed := meant(Query(query))
		require.Equal(t, want.words, strings.Join(words, " "))
		require.Equal(t, want.typed, strings.Join(typed, " "), query)
		require.Equal(t, want.typed == "", typed == nil, "nil if they are the same: %s", query)
	}
}

func TestSynonyms(t *testing.T) {
	for typed, want := range map[string]string{
		"9": "9 nine 9th ninth ix", "seven": "7 seven 7th seventh vii", "100": "100 hundred", "3rd": "3 three 3rd third iii", "ii": "2 two 2nd second ii",
		"i": "", "v": "", "x": "", "x100": "", "mumbai": "bombay mumbai", "pune": "poona pune",
		"chennai": "madras chennai", "kolkata": "calcutta kolkata", "vadodara": "baroda vadodara", "pondy": "pondicherry puducherry pondy",
		"bengaluru": "bangalore bengaluru", "gurugram": "gurgaon gurugram", "shimla": "simla shimla", "odisha": "orissa odisha", "aum": "om aum",
		"inds": "inds industries", "engrs": "engrs engineers", "svcs": "svcs services", "soln": "soln solutions", "fpo": "fpo producer", "fpc": "fpc producer",
		"const": "const construction constructions", "industries": "", "producer": "", "goa": "",
	} {
		require.Equal(t, want, strings.Join(synonyms(typed), " "))
	}
}

func TestTheEndOfALongNameIsCompared(t *testing.T) {
	s := NewSuggestions(Query("all india handloom weavers welfare asociation"))
	s.Add("all india handloom weavers welfare association", "LONG")
	require.Equal(t, []string{"LONG"}, s.Labels())
	s = NewSuggestions("steel")
	s.Add("aa ab ac ad ae af ag ah ai aj ak al am an ao ap aq ar at au av aw ax stel", "THE LAST OF 24")
	require.Equal(t, []string{"THE LAST OF 24"}, s.Labels())
}

func TestLettersOfOneSoundAreAskedFor(t *testing.T) {
	for typed, meant := range map[string]string{"zeevan": "j", "jenith": "z", "jems": "g", "gaipur": "j"} {
		terms, _ := LikeTerms(typed + " udyog")
		require.Contains(t, terms, `"udy.`+meant+`\"`, typed)
	}
}

func TestSuggestionsOfALegalEndingThatIsMisspelt(t *testing.T) {
	s := NewSuggestions(Query("tata stel pirvate limitde"))
	s.Add("tata steel private limited", "TATA STEEL PRIVATE LIMITED")
	require.Equal(t, []string{"TATA STEEL PRIVATE LIMITED"}, s.Labels())
}

// TestBeginningsOfAllWordsAreAskedForOnce counts the expressions of pairs that hold the beginnings of all
// words: any two of the three pairs of three words select the same names.
func TestBeginningsOfAllWordsAreAskedForOnce(t *testing.T) {
	pairs := regexp.MustCompile(`"([a-z]{3})\.([a-z]{3})"`)
	for _, query := range []string{"tata stel works", "tata stel works calcutta", "tata stel works calcutta eastern"} {
		terms, _ := LikeTerms(query)
		var expressions []string
		require.NoError(t, json.Unmarshal([]byte(terms), &expressions))
		asked := 0
		for _, expression := range expressions {
			expression = strings.ReplaceAll(expression, `"~"`, "") // see noName
			begun := map[string]bool{}
			for _, pair := range pairs.FindAllStringSubmatch(expression, -1) {
				begun[pair[1]], begun[pair[2]] = true, true
			}
			onlyPairs := !strings.Contains(pairs.ReplaceAllString(expression, ""), `"`)
			if onlyPairs && len(begun) == min(len(strings.Fields(query)), likeWords) {
				asked++
			}
		}
		require.Equal(t, 1, asked, "%q: %q", query, expressions)
	}
}

// FuzzSuggestions checks that what a suggestion asks for is well formed, whatever was typed, and that
// its comparison ends.
func FuzzSuggestions(f *testing.F) {
	f.Add("relianse industies", "RELIANCE INDUSTRIES LIMITED")
	f.Add("y", "Y")
	f.Add("A0A", "0")
	f.Add("w yw xx x", "XW")
	f.Add(strings.Repeat("xa", 12), strings.Repeat("xe", 12))
	f.Add(strings.Repeat("aé ", 90), strings.Repeat("é", 300))
	f.Fuzz(func(t *testing.T, typed, registered string) {
		query, name := Query(typed), Name(registered)
		terms, count := LikeTerms(query)
		var list []string
		require.NoError(t, json.Unmarshal([]byte(terms), &list))
		if len(heard(query)) == 0 && partsOf(query) != nil {
			list = list[:len(list)-1]
		}
		if _, misread := meant(query); misread == nil || len(heard(query)) > 0 {
			require.Len(t, list, count)
		} else {
			require.Less(t, count, len(list), "those of the other reading are not counted")
			require.Positive(t, count)
		}
		for _, expression := range list {
			require.Zero(t, strings.Count(expression, `"`)%2, expression)
			require.True(t, utf8.ValidString(expression), expression)
		}
		s := NewSuggestions(query)
		s.Add(name, registered)
		require.LessOrEqual(t, len(s.Labels()), 1)
	})
}

// TestDistanceIsThatOfTheWholeTable compares distance with a full table, computed without bounds.
func TestDistanceIsThatOfTheWholeTable(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	word := func() string {
		b := make([]byte, random.IntN(9))
		for i := range b {
			b[i] = "abc"[random.IntN(3)]
		}
		return string(b)
	}
	for range 20_000 {
		a, b := word(), word()
		require.Equal(t, min(wholeDistance(a, b), 3), distance(a, b, 2), "%s and %s", a, b)
	}
}

func wholeDistance(a, b string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0 || j == 0:
				table[i][j] = i + j
			case a[i-1] == b[j-1]:
				table[i][j] = table[i-1][j-1]
			default:
				table[i][j] = 1 + min(table[i-1][j-1], table[i-1][j], table[i][j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					table[i][j] = min(table[i][j], 1+table[i-2][j-2])
				}
			}
		}
	}
	return table[len(a)][len(b)]
}

// TestManyNamesThatBeginAsReadLeaveThoseThatBeginAsTyped: they are too many to tell something, these are not.
func TestManyNamesThatBeginAsReadLeaveThoseThatBeginAsTyped(t *testing.T) {
	s := NewSuggestions("mand1 zzzzz")
	for _, other := range []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"} {
		s.Add("mandi "+other, "MANDI "+other)
	}
	s.Add("mand1 crystals", "MAND1 CRYSTALS")
	require.Equal(t, []string{"MAND1 CRYSTALS"}, s.Labels())
}

// TestAJoinedWordIsComparedFromEightLettersOn: a shorter one has no part that few names have.
func TestAJoinedWordIsComparedFromEightLettersOn(t *testing.T) {
	for query, asked := range map[string]bool{"zerodhas": true, "zerodha": false} {
		terms, count := NewSuggestions(query).FurtherTerms()
		require.Equal(t, asked, terms != NoTerms, query)
		require.Equal(t, asked, count > 0, query)
	}
}
