package generate

import (
	"slices"
	"strings"
)

const (
	// coinedWords is the number of invented words that several names share. They are the middle of the
	// vocabulary, rank 250 to 8,000: rarer than trades, more common than words that occur in one name.
	coinedWords = 8000
	// coinedShift is the rank of the most common coined word.
	coinedShift = 250
	// lineEnd is the line length of an old form: longer names have a stray space there.
	lineEnd = 40
)

// namer makes up names of companies and people.
type namer struct {
	seed                       uint64
	coined                     []string
	returning, openers, trades shares[string]
}

func newNamer(seed uint64) *namer {
	n := &namer{seed: seed, openers: ranked(openers, 12), trades: ranked(trades, 12)}
	r := stream(seed, ofWords, 0)
	for seen := map[string]bool{}; len(n.coined) < coinedWords; {
		if word := string(coin(nil, &r, 1)); !seen[word] {
			seen[word] = true
			n.coined = append(n.coined, word)
		}
	}
	n.returning = ranked(n.coined, coinedShift)
	return n
}

// ranked weights words by 1/(rank+shift), Zipf's law with a flattened top: shift is chosen so that no
// word is more frequent than in the official names (about 4% for trades).
func ranked(words []string, shift int) shares[string] {
	var list []share[string]
	for i, word := range words {
		list = append(list, share[string]{word, 1 / float64(i+shift)})
	}
	return newShares(list)
}

// coin appends an invented word of length middle syllables.
func coin(b []byte, r *random, length int) []byte {
	b = append(b, pick(r, heads)...)
	for range length {
		b = append(b, pick(r, middles)...)
	}
	return append(b, pick(r, tails)...)
}

// word appends an invented word: a shared one (40%) or a new one.
func (n *namer) word(b []byte, r *random) []byte {
	if r.chance(0.4) {
		return append(b, n.returning.draw(r)...)
	}
	return coin(b, r, pick(r, coinedLengths))
}

// coinedLengths are the possible numbers of middle syllables. Two give a million words, too few for
// a country with millions of names that have a word of their own.
var coinedLengths = []int{1, 2, 2, 2, 3}

// company returns the name of company number i. A few have the name of an earlier company.
func (n *namer) company(i int64, form form) string {
	r := stream(n.seed, ofName, i)
	if r.chance(sameName) && i > 0 { // take an earlier company's name
		r = stream(n.seed, ofName, i-1-int64(r.below(int(min(i, 1000)))))
		r.next()
	}
	b := n.opening(make([]byte, 0, 64), &r)
	trades := n.tradeWords(&r)
	if trades == 0 { // else many names would be just one common word
		b = coin(append(b, ' '), &r, pick(&r, coinedLengths))
	}
	for k := trades; k > 0; k-- {
		if k == 1 && r.chance(0.12) {
			b = append(b, pick(&r, conjunctions)...)
		}
		b = n.trade(append(b, ' '), &r)
	}
	if r.chance(0.03) {
		b = append(b, " (INDIA)"...)
	}
	b = append(b, n.ending(&r, form)...)
	return spoil(&r, b)
}

// sameName is the share of companies that take an earlier company's name. As many again share a name
// by chance.
const sameName = 0.0003

// trade appends a word for what a company does: a common one, or one from the middle of the vocabulary.
func (n *namer) trade(b []byte, r *random) []byte {
	if r.chance(0.35) {
		return append(b, n.returning.draw(r)...)
	}
	return append(b, n.trades.draw(r)...)
}

var conjunctions = []string{" AND", " AND", " AND", " &", " &"}

func (n *namer) opening(b []byte, r *random) []byte {
	switch u := r.unit(); {
	case u < 0.12:
		return n.word(append(append(b, n.openers.draw(r)...), ' '), r)
	case u < 0.17:
		b = append(b, 'A'+byte(r.below(26)), ' ', 'A'+byte(r.below(26)), ' ')
		return append(b, n.returning.draw(r)...)
	case u < 0.30:
		return n.word(append(n.word(b, r), ' '), r)
	}
	return n.word(b, r)
}

func (n *namer) tradeWords(r *random) int {
	switch u := r.unit(); {
	case u < 0.04:
		return 0
	case u < 0.70:
		return 1
	case u < 0.96:
		return 2
	}
	return 3
}

// form is a legal form, which decides the ending of the name.
type form int

const (
	private form = iota
	public
	onePerson
	producer
	nonProfit
	partnership
)

func (n *namer) ending(r *random, form form) string {
	switch form {
	case public:
		return pick(r, []string{" LIMITED", " LIMITED", " LIMITED", " LTD", " LTD."})
	case onePerson:
		return " (OPC) PRIVATE LIMITED"
	case producer:
		return pick(r, []string{" PRODUCER COMPANY LIMITED", " FARMER PRODUCER COMPANY LIMITED"})
	case nonProfit:
		return " " + pick(r, honours)
	case partnership:
		return " LLP"
	}
	if r.chance(0.92) {
		return " PRIVATE LIMITED"
	}
	return pick(r, []string{" PVT LTD", " PVT LTD", " PVT LTD", " PVT. LTD.", " PVT.LTD.", " PRIVATE LIMITED.", " PVT LIMITED"})
}

// spoil damages a few names as in the official files: a space inside a word, a missing or a double
// space.
func spoil(r *random, name []byte) string {
	u := r.unit()
	switch {
	case u < 0.012 && len(name) > lineEnd && name[lineEnd-1] != ' ' && name[lineEnd] != ' ':
		return string(slices.Insert(name, lineEnd, ' '))
	case u > 1-gluedNow:
		return strings.Replace(string(name), "PRIVATE LIMITED", "PRIVATELIMITED", 1)
	case u > 0.9995-gluedNow:
		return strings.Replace(string(name), " ", "  ", 1)
	}
	return string(name)
}

// The shares of names with a glued PRIVATELIMITED, in the current export and in the older one.
const (
	gluedNow   = 0.01
	gluedOlder = 0.04
)

// person appends a person's name that ends in (MADE-UP).
func (n *namer) person(b []byte, r *random) []byte {
	b = append(b, n.coined[r.skewed(len(n.coined)/4)]...)
	if r.chance(0.3) {
		b = append(append(b, ' '), n.coined[r.below(len(n.coined))]...)
	}
	b = append(append(b, ' '), n.coined[len(n.coined)/2+r.skewed(len(n.coined)/2)]...)
	return append(b, " (MADE-UP)"...)
}
