package names

import (
	"slices"
	"strings"
)

// Name returns the form of a registered name. It is idempotent: Name(Name(s)) == Name(s).
func Name(s string) string { return normalise(s, false) }

// Query returns the form of what a person typed. It differs from Name in the last word, which
// may be unfinished: a short form that is a prefix of its long form, as "co" is of "company",
// stays as typed. It is idempotent too.
func Query(s string) string { return normalise(s, true) }

// Squeeze returns a form without its spaces.
func Squeeze(form string) string { return strings.ReplaceAll(form, " ", "") }

func normalise(s string, unfinished bool) string {
	words := strings.Fields(fold(s))
	words, ending := cutEnding(words)
	words = joinInitials(words)
	words = append(words, ending...)
	if unfinished {
		finishShort(words)
	}
	return strings.Join(expand(words, unfinished), " ")
}

// joinInitials joins each run of single ASCII letters into one word: "u k" becomes "uk".
func joinInitials(words []string) []string {
	out := words[:0]
	run := false // the last word of out is made of initials only
	for _, w := range words {
		initial := len(w) == 1 && w[0] >= 'a' && w[0] <= 'z'
		if initial && run {
			out[len(out)-1] += w
		} else {
			out = append(out, w)
		}
		run = initial
	}
	return out
}

// finishShort replaces a last word that is a prefix of "pvt" or "ltd" only, as while they are
// being typed, by a prefix of the long form.
func finishShort(words []string) {
	if len(words) < 2 {
		return
	}
	switch last := &words[len(words)-1]; *last {
	case "pv":
		*last = "pri"
	case "lt":
		*last = "lim"
	}
}

// longForms are the long forms of usual abbreviations, and of misspellings of "private" and "limited" that the registry
// has. "co" is handled by expand, since it is an abbreviation only after another word.
var longForms = [...][2]string{
	{"pvt", "private"}, {"prvt", "private"}, {"privat", "private"}, {"privte", "private"}, {"privited", "private"},
	{"pravite", "private"}, {"priavte", "private"}, {"privtae", "private"}, {"priate", "private"},
	{"pprivate", "private"},
	{"ltd", "limited"}, {"limted", "limited"}, {"limtied", "limited"}, {"limitd", "limited"}, {"limitted", "limited"},
	{"lmited", "limited"}, {"limied", "limited"}, {"limitied", "limited"},
	{"pvtltd", "private limited"}, {"privatelimited", "private limited"}, {"pvtlimited", "private limited"},
	{"privateltd", "private limited"},
	{"corp", "corporation"}, {"corpn", "corporation"},
	{"intl", "international"},
	{"mfg", "manufacturing"},
	{"engg", "engineering"},
	{"bros", "brothers"},
}

// long returns the long form of an abbreviation, "" for any other word.
func long(w string) string {
	for i := range longForms {
		if longForms[i][0] == w {
			return longForms[i][1]
		}
	}
	return ""
}

// expand replaces the abbreviations among words by their long forms.
func expand(words []string, unfinished bool) []string {
	out := words[:0:0]
	for i, w := range words {
		if w == "co" && i+1 < len(words) && strings.HasPrefix(words[i+1], "operativ") {
			continue
		}
		if i > 0 && words[i-1] == "co" && strings.HasPrefix(w, "operativ") {
			w = "co" + w
		}
		l := long(w)
		if w == "co" && i > 0 {
			l = "company"
		}
		last := unfinished && i == len(words)-1
		if l == "" || last && strings.HasPrefix(l, w) {
			l = w
		}
		out = append(out, l)
	}
	return out
}

// has reports whether a list has a word. It is not inlined, as slices.Contains is: the component is 3.6 KB smaller
// (30 November 2026).
//
//go:noinline
func has(list []string, word string) bool { return index(list, word) >= 0 }

// index returns where a list has a word, -1 if it has not. It is not inlined either.
//
//go:noinline
func index(list []string, word string) int { return slices.Index(list, word) }
