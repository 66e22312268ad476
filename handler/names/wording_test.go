package names

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumbersAreReadAsTheyAreWritten: each number in words is the same number in digits, with other words after it.
func TestNumbersAreReadAsTheyAreWritten(t *testing.T) {
	for number := 1; number <= maxNumber; number++ {
		for _, ordinal := range []bool{false, true} {
			words := inWords(number, ordinal)
			if ordinal && number%100 == 0 {
				continue // "hundredth" is in no name
			}
			got, isOrdinal, n := spelled(append(words, "star"))
			require.Equal(t, number, got, words)
			require.Equal(t, ordinal, isOrdinal, words)
			require.Equal(t, len(words), n, words)
		}
	}
}

func TestOtherWordings(t *testing.T) {
	for query, want := range map[string]string{
		"36 events": "thirty six events", "thirty six events": "36 events", "21st century art": "twenty first century art",
		"twenty first century art": "21st century art", "vision twenty one": "vision 21", "20th mile": "twentieth mile", "twentieth mile": "20th mile",
		"three hundred sixty five days": "365 days", "three sixty five days": "365 days", "three sixty": "360", "one zero eight": "108",
		"seven eight six star": "786 star", "seven eight star": "7 8 star", "hundred": "", "11th hour": "eleventh hour", "112th street": "one hundred twelfth street",
		"jk bank": "jammu kashmir bank", "jammu kashmir bank": "jk bank", "hp tools": "himachal tools", "himachal tools": "", "up": "uttar pradesh",
		"12st": "", "007 films": "", "1000 trees": "", "2021": "", "star": "", "thirty": "30", "dust": "", "rd": "",
		"4th 5th 8th 9th": "fourth fifth eighth ninth", "12th 13th": "twelfth thirteenth", "113th": "one hundred thirteenth", "40 80 90": "forty eighty ninety",
		"14 15 18 19": "fourteen fifteen eighteen nineteen", "40th 90th": "fortieth ninetieth", "22nd 23rd": "twenty second twenty third",
		"up mp ap": "uttar pradesh madhya pradesh andhra pradesh", "tn wb": "tamil nadu west bengal", "guj": "gujarat", "j k": "jammu kashmir",
		"1 2 3 4 5 6": "one two three four five six", "365 366": "three hundred sixty five three hundred",
	} {
		require.Equal(t, want, strings.Join(otherWording(strings.Fields(query)), " "), query)
	}
	for query, want := range map[string]string{
		"Six Sixty Six Films": "666 films", "two twenty two": "222", "one zero one": "101", "one nine four seven star": "1947 star",
	} {
		require.Equal(t, want, strings.Join(otherWording(suggestible(Query(query))), " "), query)
	}
}

// TestDigitsThatWereLetters are read as letters in words that are mostly letters.
func TestDigitsThatWereLetters(t *testing.T) {
	for query, want := range map[string]string{
		"g0al g0ods": "goal goods", "l0gist1cs": "logistics", "h0te1 5hiva": "hotel shiva", "1ogic 8akers": "logic bakers", "1nd1a": "india",
		"b2b": "b2b", "a1 foods": "a1 foods", "3m0": "3m0", "krishk23": "krishk23", "108 star": "108 star", "1st 5th 8th": "1st 5th 8th", "g0d21": "g0d21", "pavilion11": "pavilion11", "pavi1ion com": "pavi1ion com", "mi11s": "mills",
	} {
		words, typed := meant(Query(query))
		require.Equal(t, want, strings.Join(words, " "))
		if query == want {
			require.Nil(t, typed)
		} else {
			require.Equal(t, query, strings.Join(typed, " "))
		}
	}
}

func TestTheNameInAnAddress(t *testing.T) {
	for typed, want := range map[string]string{
		"cs@goashipyard.co.in": "csgoashipyard goashipyard", "https://techtiks.com/": "techtiks", "www.prismirrigation.com": "prismirrigation",
		"shop.example.org.in": "shopexample example", "https://www.goashipyard.co.in/contact-us": "goashipyard", "www.techtiks.com/about/in": "techtiks", "acmefoods.biz": "acmefoods", "acmefoods.info": "acmefoods",
		"goashipyard.cs@gmail.com": "goashipyardcs goashipyard", "acmefoods@yahoo.co.in": "acmefoods", "gmail.com": "gmail", "info@hill-top.in": "hilltop", "surat-golf-club.in": "golfclub",
		"acmefoods.firm.in": "acmefoods", "acmefoods.net.in": "acmefoods", "acmefoods.org": "acmefoods", "acmefoods.de": "", "amul.in": "", "made in": "", "goa shipyard": "", "com": "", "prismirrigation": "",
	} {
		require.Equal(t, want, strings.Join(sitesOf(suggestible(Query(typed))), " "), typed)
	}
}

// TestSuggestionsInOtherWordings compares names with a query that is written otherwise.
func TestSuggestionsInOtherWordings(t *testing.T) {
	labels := []string{
		"THIRTY SIX EVENTS PRIVATE LIMITED", "21ST CENTURY ARTS LIMITED", "JAMMU AND KASHMIR BANK LIMITED", "GOA SHIPYARD LIMITED", "GOA SHIPYARD HOTELS LIMITED",
		"HIMACHAL TOOLS LIMITED", "JAGAN SHOES PVT LTD", "SURYADWEEP ISPAT UDHYOG PRIVATE LIMITED", "VIKALP EXIM PRIVATE LIMITED", "VINEXA REALTY SOLUTIONS LLP",
		"JAGAN A LTD", "JAGAN B LTD", "JAGAN C LTD", "JAGAN D LTD", "JAGAN E LTD", "JAGAN F LTD", "IL FORNO RESTAURANT LIMITED", "JAGAN TEA LIMITED",
	}
	for query, want := range map[string]string{
		"36 events": labels[0], "twenty first century arts": labels[1], "21 first century": "", "jk bank": labels[2], "j&k bank": labels[2],
		"sales@goashipyard.com": labels[3] + "," + labels[4], "goashipyardhotels.in": labels[4], "hp tools": labels[5], "cin number of jagan shoes": labels[6],
		"jagan shoes solan himachal pradesh": labels[6], "jagan shoes solan uttar goa": labels[6], "jagan tea solan himachal pradesh": labels[17], "jagan tea solan uttar goa": "", "surya dweep ispatt udyog": labels[7],
		"vikalp export & import": labels[8], "vikalp imports exports pvt ltd": labels[8], "vinexa real estate": labels[9], "ilforno resturant": labels[16],
	} {
		s := NewSuggestions(Query(query))
		for _, label := range labels {
			s.Add(Name(label), label)
		}
		require.Equal(t, want, strings.Join(s.Labels(), ","), query)
	}
}

// TestTwoWordsAreAskedForAsOne, by their sound.
func TestTwoWordsAreAskedForAsOne(t *testing.T) {
	terms, _ := LikeTerms("surya dweep ispatt")
	require.Contains(t, terms, quoted(markSound+soundKey("suryadweep"))+" AND "+quoted(markSound+soundKey("ispat")))
	require.Contains(t, terms, quoted(markSound+soundKey("dweepispat"))+" AND "+quoted(markSound+soundKey("surya")))
	terms, _ = LikeTerms("ilforno resturant")
	require.Contains(t, terms, quoted("ilfor")+" AND "+quoted(markSound+soundKey("restaurant")))
	terms, _ = LikeTerms("ilfo resturant") // too short for a run of five characters
	require.NotContains(t, terms, quoted("ilfo")+" AND "+quoted(markSound+soundKey("restaurant")))
}

// TestCharactersAtTheEndsOfTheirRanges: the last accent, the other apostrophe, East Asian commas and stops.
func TestCharactersAtTheEndsOfTheirRanges(t *testing.T) {
	for registered, form := range map[string]string{"na\u036fme": "name", "D`Souza": "dsouza", "上海、公司。": "上海 公司"} {
		require.Equal(t, form, Name(registered))
	}
}

// TestTheLastNumbersHaveOtherWordings.
func TestTheLastNumbersHaveOtherWordings(t *testing.T) {
	require.Equal(t, []string{"nine", "hundred", "ninety", "nine", "events"}, otherWording([]string{"999", "events"}))
	require.Nil(t, otherWording([]string{"1000", "events"}))
	for n := 1; n <= 10; n++ {
		require.Contains(t, synonyms(ordinals[n]), units[n])
	}
}

// TestAnAnusvaraBeforeALabialIsM, before each of them.
func TestAnAnusvaraBeforeALabialIsM(t *testing.T) {
	for indic, latin := range map[string]string{"संमान": "samman", "संपत": "sampat", "संत": "sant"} {
		got, ok := inLatin(indic)
		require.True(t, ok)
		require.Equal(t, latin, got)
	}
}

func TestABarBesideASmallLetterMayBeAnL(t *testing.T) {
	for typed, want := range map[string]string{
		"cerea|s |td": "cereals ltd", "g|obal pane|, a||ied": "global panel, allied", "pane|": "panel", "|acme|": "lacmel",
		"ACME|GOA|Acme | home|1": "ACME|GOA|Acme | home|1", "acme": "acme", "": "",
	} {
		require.Equal(t, want, BarsAsLetters(typed))
	}
}
