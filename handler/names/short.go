package names

import "strings"

// long gives the form of a word that is a usual short form, or a misspelling of a legal
// word that the register has; "" for any other word. "co" is treated by expand: it is one
// unless it comes first.
func long(w string) string {
	switch w {
	case "pvt", "prvt", "privat", "privte", "privited", "pravite", "priavte", "privtae", "priate", "pprivate":
		return "private"
	case "ltd", "limted", "limtied", "limitd", "limitted", "lmited", "limied", "limitied":
		return "limited"
	case "pvtltd", "privatelimited", "pvtlimited", "privateltd":
		return "private limited"
	case "corp", "corpn":
		return "corporation"
	case "intl":
		return "international"
	case "mfg":
		return "manufacturing"
	case "engg":
		return "engineering"
	case "bros":
		return "brothers"
	}
	return ""
}

// expand replaces the short forms among words.
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
