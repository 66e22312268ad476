// Package names brings the name of a company or an LLP to the one form that the search
// index holds and that a query is compared with, so that case, punctuation, spacing and
// the usual short forms do not matter. docs/search.md has the rules as a table.
//
// The result is words of lower-case ASCII letters, digits and non-ASCII letters with
// one space between; it may be empty. It is plain string work, small enough for the
// component.
package names

import "strings"

// Name is the form of a registered name. It is idempotent: Name(Name(s)) == Name(s).
func Name(s string) string { return normalise(s, false) }

// Query is the form of what a person typed. It is Name, but for the last word, which
// may be unfinished: it stays as typed where it is a beginning of its long form, as "co"
// is of "company". It is idempotent too.
func Query(s string) string { return normalise(s, true) }

// Squeeze is a form without its spaces.
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

// joinInitials makes one word of each run of single ASCII letters: "u k" is "uk".
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

// finishShort cuts the last word to a beginning of a long form where it is the
// beginning of a short one only, as it is while "pvt" or "ltd" are being typed.
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
