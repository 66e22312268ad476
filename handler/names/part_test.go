package names

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPartsOfAQuery(t *testing.T) {
	texts := func(query string) (texts []string) {
		for _, p := range partsOf(query) {
			texts = append(texts, p.text)
		}
		return texts
	}
	require.Equal(t, []string{"acmefoods", "acmefoodsto", "foodstogoa"}, texts("acme foods to goa"), "of nine letters and more, but not all words")
	require.Empty(t, texts("acmefoodsandsons"), "it is one word")
	require.Contains(t, texts("to acme foods private limited vs goa"), "acmefoods", "without its legal ending")
	require.Contains(t, texts("to "+strings.Repeat("acme ", 9)+"goa"), strings.Repeat("acme", 8), "as long as the term of a name")
	require.Equal(t, []string{"acmefoods"}, texts("acme foods private limited to"), "once")
	require.LessOrEqual(t, len(partsOf(manyWords(40))), maxParts)
	require.Len(t, partsOf(manyWords(400)), maxParts)
}

// manyWords returns words that differ.
func manyWords(n int) string {
	var words []string
	for i := range n {
		words = append(words, "word"+strconv.Itoa(i))
	}
	return strings.Join(words, " ")
}

// TestPartsAreSharedByAllWords: a name at the end of a long query has some, too.
func TestPartsAreSharedByAllWords(t *testing.T) {
	for _, query := range []string{
		"in the matter of the petition under section 7 of the ibc 2016 filed by state bank of india against perfect cookwares limited",
		manyWords(18) + " perfect cookwares",
		strings.Repeat("acme foods ", 30) + "perfect cookwares",
	} {
		_, ok := NewSuggestions(query).partCost("perfect cookwares private limited")
		require.True(t, ok, query)
	}
}

// TestAPartIsAWholeNameAlone: names that share words with a query are not suggested.
func TestAPartIsAWholeNameAlone(t *testing.T) {
	s := NewSuggestions("legal name of business goldenharvest foods")
	for name, suggested := range map[string]bool{
		"golden harvest private limited": true, "golden harvest foods llp": true, "business golden harvest limited": true,
		"goldenharvest limited": false, "goldenharvest foods and dairy limited": false, "golden harvests limited": false,
	} {
		_, ok := s.partCost(name)
		require.Equal(t, suggested, ok, name)
	}
	_, ok := NewSuggestions("goldenharvest").partCost("golden harvest limited")
	require.False(t, ok, "the search finds it")
	for query, suggested := range map[string]bool{
		"goldenharvest private limited vs goa": true, "to goldenharvest limited": true, "private goldenharvest limited goa": true,
		"to goldenharvest of goa limited": false, "goldenharvest vs goa": false,
	} {
		_, ok = NewSuggestions(query).partCost("goldenharvest limited")
		require.Equal(t, suggested, ok, query)
	}
}

// TestTheLastWordMayBeAWholeName, or one before a legal ending: these are shorter than other parts.
func TestTheLastWordMayBeAWholeName(t *testing.T) {
	for query, suggested := range map[string]bool{
		"ceo emperos": true, "data scientist ex emperos": true, "for emperos private limited sd director": true, "director emperos llp": true,
		"to emperos limited of goa": true, "ceo emperos goa": false, "ceo emper": false, "to emper llp of goa": false, "private emperos goa": false,
	} {
		for _, name := range []string{"emperos private limited", "emper llp"} {
			if strings.Contains(query+" ", " "+strings.Fields(name)[0]+" ") {
				_, ok := NewSuggestions(query).partCost(name)
				require.Equal(t, suggested, ok, query)
			}
		}
	}
}

// TestAPartComesAfterWhatIsLikeTheQuery, and more of it before less.
func TestAPartComesAfterWhatIsLikeTheQuery(t *testing.T) {
	s := NewSuggestions("golden harvest foods delhi")
	s.Add("golden harvest limited", "PART")
	s.Add("harvest foods delhi limited", "LONGER PART")
	s.Add("golden harvest food delhi limited", "LIKE")
	require.Equal(t, []string{"LIKE", "LONGER PART", "PART"}, s.Labels())
}

// TestALongerNameAmongTheWordsComesFirst, also if it counts for more as one that lacks two words.
func TestALongerNameAmongTheWordsComesFirst(t *testing.T) {
	s := NewSuggestions("sumptuous food products new delhi")
	s.Add("food products private limited", "PART")
	s.Add("sumptuous food products private limited", "LONGER PART")
	require.Equal(t, []string{"LONGER PART", "PART"}, s.Labels())
}

// TestPartsLeaveTheOthersTheirShare: the names to compare are divided among the other expressions.
func TestPartsLeaveTheOthersTheirShare(t *testing.T) {
	for query, readings := range map[string]int{"zenith and m hospitality private limited": 1, "acme f00ds and hospitality goa": 2} {
		terms, count := LikeTerms(query)
		var list []string
		require.NoError(t, json.Unmarshal([]byte(terms), &list))
		require.Len(t, list, readings*count+1, query)
		require.Contains(t, list[len(list)-1], markWhole)
	}
}

// TestNamesThatHaveAllWordsButTheFirstComeBeforeAPart, and are three with it.
func TestNamesThatHaveAllWordsButTheFirstComeBeforeAPart(t *testing.T) {
	s := NewSuggestions("zenith sky hawks aviation india private limited")
	s.Add("aviation india private limited", "PART")
	s.Add("hawks aviation limited", "ANOTHER PART")
	s.Add("aditi sky hawks aviation india private limited", "REST")
	require.Equal(t, []string{"REST", "PART", "ANOTHER PART"}, s.Labels())
	s.Add("aditya sky hawks aviation india limited", "MORE REST")
	require.Equal(t, []string{"REST", "MORE REST", "PART"}, s.Labels())
	require.Equal(t, s.Labels(), s.Labels(), "they stay")
}
