package handler

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"regedge/handler/names"
)

// wantOfStrangers are the shares of each class of testdata/search/strangers.tsv whose company must be among
// the first five matches, or among the suggestions if nothing matches. Of acronyms, others have the same.
var wantOfStrangers = map[string]float64{
	"CIN, L for U": 1, "CIN, O for 0": 1, "CIN, first letter lost": 1, "CIN, spaced": 1, "CIN, two digits swapped": 1,
	"CIN, wrong state": 1, "OCR, a digit": 0.95, "OCR, letters": 0.95, "a space inside a word": 0.95, "a vowel left out": 0.95,
	"abbreviations": 0.95, "acronym of the words": 0.3, "acronyms": 0, "case": 1, "doubled letter": 0.95, "first word left out": 0.75,
	"former names": 0.8, "full width": 1, "identifiers": 0.9, "initials": 1, "legal ending": 1, "name and city": 0.9,
	"neighbouring key": 0.95, "no spaces": 1, "no spaces, ending": 1, "numerals": 0.75, "other scripts": 1, "pasted": 0.9,
	"signs": 0.95, "transliteration": 0.97, "two slips": 0.9, "words reversed": 1,
}

// TestWhatStrangersTypeIsFoundOrSuggested judges 553 queries, written or derived from names that no other set has before any
// of them was tried. They are quoted, since many have what can't be seen.
func TestWhatStrangersTypeIsFoundOrSuggested(t *testing.T) {
	judgeFoundOrSuggested(t, "strangers.tsv", wantOfStrangers)
}

// judgeFoundOrSuggested checks that of each class of a file at least the wanted share is among the first five matches, or
// among the suggestions if nothing matches. It logs every miss.
func judgeFoundOrSuggested(t *testing.T, file string, wanted map[string]float64) {
	t.Helper()
	classes := readClasses(t, file)
	require.Len(t, classes, len(wanted))
	s := searcherOf(t, classes)
	for class, want := range wanted {
		set := classes[class]
		require.NotEmpty(t, set, class)
		var first, five, suggested int
		for _, q := range set {
			query, err := strconv.Unquote(q.query)
			require.NoError(t, err, q.query)
			found, suggestions := s.search(t, strings.TrimSpace(query), defaultLimit)
			switch rank := rankAmong(found, q); {
			case rank == 1:
				first++
			case rank > 1:
				five++
			case found == "[]" && rankOf(q.name, suggestions) <= names.MaxSuggestions:
				suggested++
			default:
				t.Logf("%s: %s wants %q, got %s %s", class, q.query, q.name, gjson.Get(found, "#.label"), suggestions)
			}
		}
		t.Logf("%s: of %d first %d, among five %d, suggested %d", class, len(set), first, first+five, suggested)
		require.GreaterOrEqual(t, float64(first+five+suggested)/float64(len(set)), want, class)
	}
}

// rankAmong returns the position, from 1, of the wanted company or one of the same name among matches; 0 if there is none.
func rankAmong(found string, wanted judged) int {
	for i, m := range gjson.Parse(found).Array() {
		if m.Get("value").String() == wanted.cin || names.Name(m.Get("label").String()) == names.Name(wanted.name) {
			return i + 1
		}
	}
	return 0
}
