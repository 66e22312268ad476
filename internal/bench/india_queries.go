package main

import (
	"math/rand/v2"
	"net/url"
	"strings"
)

// typed makes a query of a registered name as people type: a beginning, words, an inner
// piece, wrong spacing, short forms.
func typed(random *rand.Rand, name string) string {
	words := strings.Fields(name)
	switch random.IntN(7) {
	case 0: // a beginning
		return name[:min(len(name), 3+random.IntN(len(name)))]
	case 1: // one word and the beginning of another
		one, other := words[random.IntN(len(words))], words[random.IntN(len(words))]
		return one + " " + other[:1+random.IntN(len(other))]
	case 2: // from a word on
		return strings.Join(words[random.IntN(len(words)):], " ")
	case 3: // an inner piece
		from := random.IntN(max(1, len(name)-4))
		return name[from:min(len(name), from+3+random.IntN(12))]
	case 4: // joined
		return strings.Join(words[:min(len(words), 2)], "")
	case 5: // split
		at := 1 + random.IntN(min(len(name)-1, 12))
		return name[:at] + " " + name[at:]
	}
	return strings.NewReplacer("PRIVATE", "Pvt.", "LIMITED", "Ltd.", " AND ", " & ", "COMPANY", "Co.").Replace(name)
}

// typedQueries are so many of them, from a seed.
func typedQueries(names []string, count int) (list []string) {
	random := rand.New(rand.NewPCG(5, 6))
	for range count {
		list = append(list, typed(random, names[random.IntN(len(names))]))
	}
	return list
}

// worstQueries are what people and programs send besides names, and what is hardest.
var worstQueries = []string{
	"limited", "private", "private limited", "pvt ltd", "limited private", "limited p", "private l", "ltd", "llp", "lim", "li", "l",
	"a", "e", "s", "ab", "a b", "a b c d e f g", "in", "india", "india limited", "india private limited", "and", "and sons", "the",
	"company limited", "producer company limited", "services", "services private", "services limited private", "solutions pvt ltd",
	"tion", "ent", "ing", "rivat", "mited", "ateli", "privatelimited", "te lim", "s p", "s private", "e limited", "a limited",
	"enterprises trading", "trading enterprises", "consultants services solutions", "private solutions services",
	"%", "%%%", "_", "*", "\"", "\"\"\"", "'", "\\", "(", "^", "$", "-", "...", "AND", "OR", "NOT", "NEAR(a b)", "tata*", "a OR b", "\x00",
	"😀", "😀😀😀", "भारत", "भारत स्टील लिमिटेड", "é", "ＴＡＴＡ", "\u200b\u200b\u200b", "m/s", "&", "& co",
	strings.Repeat("a", 200), strings.Repeat("a ", 100), strings.Repeat("ab ", 66), strings.Repeat("limited ", 25),
	strings.Repeat("privatelimited", 14), strings.Repeat("भ", 200), strings.Repeat("%", 200), strings.Repeat("private limited india ", 9),
	strings.Repeat("services ", 22), strings.Repeat("ing", 66), strings.Repeat("&", 200),
}

// searchTarget is the request of a search.
func searchTarget(name string) string {
	return "/v1/search/companies?limit=5&name=" + url.QueryEscape(name)
}
