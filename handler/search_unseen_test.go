package handler

import "testing"

// wantOfUnseen are the shares of each class of testdata/search/unseen.tsv whose company must be among the first five
// matches, or among the suggestions if nothing matches. Registration numbers and beginnings of CINs without the last digits are of many companies.
var wantOfUnseen = map[string]float64{
	"acronym or short form": 0.75, "dots": 1, "half a name": 1, "mail or site": 0.95, "misspelt and split": 0.95, "numbers": 0.95,
	"other scripts": 0.7, "part of a CIN": 0.5, "place or year": 0.95, "plural or singular": 1, "question": 0.9,
}

// TestWhatNobodyLookedAtIsFoundOrSuggested judges 167 queries of people, written by hand from names that no other set has
// before any of them was tried.
func TestWhatNobodyLookedAtIsFoundOrSuggested(t *testing.T) {
	judgeFoundOrSuggested(t, "unseen.tsv", wantOfUnseen)
}

// TestWhatIsTypedOffhandIsFoundOrSuggested judges 203 queries as they came to mind at 150 names drawn from the official
// files, written before any of them was tried, and 13 that were known to be missed.
func TestWhatIsTypedOffhandIsFoundOrSuggested(t *testing.T) {
	judgeFoundOrSuggested(t, "offhand.tsv", map[string]float64{"typed offhand": 0.985, "missed before": 0.75})
}
