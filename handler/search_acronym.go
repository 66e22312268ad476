package handler

import (
	"slices"
	"strings"

	"regedge/handler/fastbytes"
	"regedge/handler/names"
)

// acronymStatement finds names by the first letters of their words. It returns their forms and labels in turn, with the
// record separator between them.
//
//	?1 an expression for names with words of these letters   ?2 a GLOB pattern for their order
//
// A name may have further words between them; the caller compares.
const acronymStatement = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT group_concat(name || char(30) || label, char(30)) FROM (
    SELECT n.name AS name, iif(n.label = '', upper(n.name), replace(n.label, char(30), ' ')) AS label
    FROM (SELECT rowid AS place FROM search_index WHERE search_index MATCH ?1 ORDER BY rowid LIMIT ` + maxInitials + `) c
    CROSS JOIN search_name n ON n.place = c.place
    WHERE n.name GLOB ?2
    ORDER BY c.place LIMIT ` + maxSpelledOut + `))`

// maxInitials bounds the names with words of these letters, in any order, whose order is then checked.
const maxInitials = "500"

// maxSpelledOut bounds the names that are compared. Search order puts names with few further words first.
const maxSpelledOut = "60"

// isSpelledOut reports whether to look for names whose acronym the query may be: if it has no vowels, was typed in
// capitals, its legal ending aside, or fewer than MaxSuggestions names are like it.
func isSpelledOut(name string, acronym names.Acronym, like []string) bool {
	first, _, _ := strings.Cut(name, " ")
	return acronym.IsOnly() || len(like) < names.MaxSuggestions || fastbytes.Upper(first) == first
}

// spelledOut returns the suggestions for an acronym: like, the names similar to the query, then those that it may be
// the acronym of, at least one if there are any. lines has the latter as forms and labels in turn. If the acronym has
// no vowels, like is left out.
func spelledOut(acronym names.Acronym, lines string, like []string) []string {
	spelled := make([]string, 0, names.MaxSuggestions)
	for lines != "" && len(spelled) < names.MaxSuggestions {
		var name, label string
		name, label, lines = cutName(lines)
		if acronym.Matches(name) && !slices.Contains(like, label) && !slices.Contains(spelled, label) {
			spelled = append(spelled, label)
		}
	}
	switch {
	case len(spelled) == 0:
		return like
	case acronym.IsOnly():
		return spelled
	}
	kept := min(len(like), names.MaxSuggestions-1)
	return append(like[:kept:kept], spelled[:min(len(spelled), names.MaxSuggestions-kept)]...)
}
