package handler

import (
	"strings"

	"regedge/handler/charge"
	"regedge/handler/fastbytes"
	"regedge/handler/names"
)

// sandboxRecord returns the columns of the made-up record with a number, in its canonical form, as
// the record's statement would; nil if there is none.
func sandboxRecord(value string) []Value {
	switch value {
	case SandboxDirector, SandboxColleague, SandboxResigned:
		return sandboxPerson(value)
	}
	switch m := findMadeUp(value); {
	case m == nil:
		return nil
	case m.isLLP():
		return m.llp()
	default:
		return m.company()
	}
}

// match writes a record as a search match.
func (m *madeUp) match(w *writer) {
	kind := "company"
	if m.isLLP() {
		kind = "llp"
	}
	w.fields(matchFields, []Value{text(m.value), text(m.registered()), text(kind)})
	w.raw("}")
}

var matchFields = []field{
	{`{"value":`, (*writer).value},
	{`,"label":`, (*writer).value},
	{`,"type":`, (*writer).value},
}

// sandboxMatch finds the made-up company or LLP with a number, and returns it as a JSON array; nil if there is
// none.
func sandboxMatch(number string) []byte {
	m := findMadeUp(number)
	if m == nil {
		return nil
	}
	w := writer{}
	w.raw("[")
	m.match(&w)
	w.raw("]")
	return w.buf
}

// sandboxMatches finds the made-up records whose names match, at most limit, best first, and
// returns them as a JSON array and their count. Only a query that begins with the word SANDBOX
// finds any, so that they never mix with other names. name has no spaces around it.
func sandboxMatches(name string, limit int) (matches []byte, count int) {
	if len(name) < len(sandboxWord)-1 || !fastbytes.EqualFold(name[:len(sandboxWord)-1], sandboxWord[:len(sandboxWord)-1]) {
		return nil, 0 // spares other queries the next step
	}
	query := names.Query(name)
	if query+" " != sandboxForm && !strings.HasPrefix(query, sandboxForm) {
		return nil, 0
	}
	w := writer{}
	separator := "["
	for tier := range noSandboxTier {
		for i := range madeUps {
			if count == limit || sandboxTier(query, madeUps[i].form()) != tier {
				continue
			}
			w.raw(separator)
			separator = ","
			madeUps[i].match(&w)
			count++
		}
	}
	if count > 0 {
		w.raw("]")
	}
	return w.buf, count
}

// withMatches puts made-up matches, a JSON array that may be empty, before those of a search that did not
// fail.
func withMatches(made []byte, search answer) answer {
	if len(made) == 0 || search.outcome == charge.Failed {
		return search
	}
	if search.outcome == charge.Found {
		made[len(made)-1] = ','
		made = append(made, search.data[1:]...)
	}
	return found(made)
}

// noSandboxTier is what sandboxTier returns when no rule matches.
const noSandboxTier = 4

// sandboxTier tells by which of the rules of docs/contract.md, "Search order", a form matches a
// query that begins with the same word: the lower the better.
func sandboxTier(query, form string) int {
	switch {
	case form == query || form == query+" private limited" || form == query+" llp":
		return 0
	case strings.HasPrefix(form, query+" "):
		return 1
	case strings.HasPrefix(form, query):
		return 2
	case hasWords(form, query):
		return 3
	}
	return noSandboxTier
}

// hasWords reports whether a form has all words of a query; the last may be the beginning of one.
func hasWords(form, query string) bool {
	form = " " + form + " "
	for word, rest, more := strings.Cut(query, " "); ; word, rest, more = strings.Cut(rest, " ") {
		if !more {
			return strings.Contains(form, " "+word)
		}
		if !strings.Contains(form, " "+word+" ") {
			return false
		}
	}
}
