package names

import "strings"

// ending is a legal ending as names have it, without spaces, and its form.
type ending struct {
	squeezed string
	form     []string
	// within says that it may begin inside a word, as in STEELPRIVATE LIMITED.
	within bool
}

// endings has longer endings before shorter ones, so that the longest match is found.
var endings = []ending{
	{"limitedliabilitypartnership", []string{"llp"}, false},
	{"privatelimited", []string{"private", "limited"}, true},
	{"pvtlimited", []string{"private", "limited"}, true},
	{"privateltd", []string{"private", "limited"}, true},
	{"pvtltd", []string{"private", "limited"}, true},
	{"limited", []string{"limited"}, true},
	{"ltd", []string{"limited"}, false},
	{"llp", []string{"llp"}, false},
}

// minBefore is how many bytes a word must have before an ending inside it. With fewer, the
// whole is a word of its own, such as UNLIMITED.
const minBefore = 3

// cutEnding removes the legal ending from words, however it is spaced (PR IVATE LIMITED,
// PRIVATELIMITED, PVT LT D), and returns it in its form.
func cutEnding(words []string) (rest, form []string) {
	for i, w := range words {
		if long(w) == limited { // also before "liability partnership"
			words[i] = limited
		}
	}
	for i := range endings {
		e := &endings[i]
		if rest, ok := e.cut(words); ok {
			return e.before(rest)
		}
	}
	return words, nil
}

// cut removes the ending from the last words, comparing from right to left.
func (e *ending) cut(words []string) ([]string, bool) {
	left := e.squeezed
	for i := len(words) - 1; i >= 0; i-- {
		w := words[i]
		if len(w) > len(left) {
			return e.cutWithin(words[:i+1], left)
		}
		if !strings.HasSuffix(left, w) {
			return nil, false
		}
		left = left[:len(left)-len(w)]
		if left == "" {
			return words[:i], true
		}
	}
	return nil, false
}

// cutWithin removes left from the end of the last word.
func (e *ending) cutWithin(words []string, left string) ([]string, bool) {
	last := words[len(words)-1]
	head, ok := strings.CutSuffix(last, left)
	if !ok || !e.within || len(head) < minBefore {
		return nil, false
	}
	rest := append([]string{}, words...)
	rest[len(rest)-1] = head
	return rest, true
}

// before treats the "p" of "(P) LIMITED" as private.
func (e *ending) before(rest []string) ([]string, []string) {
	n := len(rest)
	if n > 1 && len(e.form) == 1 && e.form[0] == "limited" && rest[n-1] == "p" {
		return rest[:n-1], []string{"private", "limited"}
	}
	return rest, e.form
}
