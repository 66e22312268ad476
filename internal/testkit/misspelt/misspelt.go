package misspelt

import (
	"math/rand/v2"
	"regexp"
	"strings"
)

// Typo makes a query from a name by one or two wrong, missing, doubled or swapped letters in one
// of its words. It returns "" for a name without a suitable word.
func Typo(random *rand.Rand, name string) string {
	words := core(name)
	at := suitable(random, words)
	if at < 0 {
		return ""
	}
	word := words[at]
	for range 1 + random.IntN(2) {
		word = slip(random, word)
	}
	if word == words[at] {
		return ""
	}
	words[at] = word
	return strings.Join(words, " ")
}

var (
	other   = regexp.MustCompile(`[^a-z0-9]+`)
	ending  = regexp.MustCompile(`( opc| pri ?vate| pvt| p| limited| ltd| llp)+$`)
	letters = regexp.MustCompile(`^[a-z]+$`)
)

// core returns the words of a name in lower case, without its legal ending.
func core(name string) []string {
	name = strings.ReplaceAll(strings.ToLower(name), "'", "")
	name = strings.TrimSpace(other.ReplaceAllString(name, " "))
	return strings.Fields(ending.ReplaceAllString(name, ""))
}

// suitable returns the index of a word of at least five letters, or -1.
func suitable(random *rand.Rand, words []string) int {
	for range 8 {
		if len(words) == 0 {
			break
		}
		if at := random.IntN(len(words)); len(words[at]) >= 5 && letters.MatchString(words[at]) {
			return at
		}
	}
	return -1
}

// slip makes one mistake in a word.
func slip(random *rand.Rand, word string) string {
	i := random.IntN(len(word))
	switch random.IntN(4) {
	case 0: // a neighbour on the keyboard, or any letter
		keys := "qwertyuiopasdfghjklzxcvbnm"
		wrong := keys[random.IntN(len(keys))]
		if at := strings.IndexByte(keys, word[i]); random.IntN(2) == 0 && at > 0 {
			wrong = keys[at-1]
		}
		return word[:i] + string(wrong) + word[i+1:]
	case 1:
		return word[:i] + word[i+1:]
	case 2:
		return word[:i+1] + word[i:]
	}
	if i == 0 {
		i = 1
	}
	return word[:i-1] + word[i:i+1] + word[i-1:i] + word[i+1:]
}

// spellings are pairs of spellings that stand for each other in Indian names.
var spellings = [][2]string{
	{"shree", "shri"}, {"shree", "sri"}, {"shri", "sri"}, {"sree", "shri"}, {"mahavir", "mahaveer"}, {"chaudhary", "choudhury"},
	{"chowdhury", "chaudhari"}, {"v", "w"}, {"ph", "f"}, {"ee", "i"}, {"oo", "u"}, {"sh", "s"}, {"ksh", "x"}, {"ll", "l"}, {"tt", "t"},
	{"nn", "n"}, {"mm", "m"}, {"ss", "s"}, {"dd", "d"}, {"laxmi", "lakshmi"}, {"th", "t"}, {"dh", "d"}, {"bh", "b"}, {"y", "i"}, {"aa", "a"},
}

// Respelling makes a query by writing one to three of a name's words another way.
func Respelling(random *rand.Rand, name string) string {
	words := core(name)
	changed := 0
	for _, i := range random.Perm(len(words)) {
		for range 20 {
			pair := spellings[random.IntN(len(spellings))]
			if n := random.IntN(2); n == 1 {
				pair[0], pair[1] = pair[1], pair[0]
			}
			if len(words[i]) < 4 || !strings.Contains(words[i], pair[0]) {
				continue
			}
			words[i] = strings.Replace(words[i], pair[0], pair[1], 1)
			changed++
			break
		}
		if changed > random.IntN(3) {
			break
		}
	}
	if changed == 0 {
		return ""
	}
	return strings.Join(words, " ")
}
