package handler

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"regedge/handler/names"
	"regedge/internal/testkit/searchtest"
)

// match is one element of a search's data.
type match struct {
	Value string `json:"value"`
	Label string `json:"label"`
	Type  string `json:"type"`
}

// reference finds the matches of a search by comparing every name, the definition of its result
// (docs/contract.md, "Search order").
type reference []known

type known struct {
	match
	inactive bool
	form     string
	squeezed string
	words    []string
}

func newReference(records []searchtest.Record) reference {
	var r reference
	for _, rec := range records {
		k := known{match: match{rec.Value, rec.Name, "company"}, inactive: rec.Status != "ACTIVE", form: names.Name(rec.Name)}
		if strings.Contains(rec.Value, "-") {
			k.Type = "llp"
		}
		k.squeezed, k.words = names.Squeeze(k.form), strings.Fields(k.form)
		r = append(r, k)
	}
	slices.SortFunc(r, func(a, b known) int { return a.compare(&b) })
	return r
}

// compare orders the names of one tier.
func (k *known) compare(o *known) int {
	if k.inactive != o.inactive {
		if k.inactive {
			return 1
		}
		return -1
	}
	if n := utf8.RuneCountInString(k.Label) - utf8.RuneCountInString(o.Label); n != 0 {
		return n
	}
	if n := strings.Compare(k.form, o.form); n != 0 {
		return n
	}
	return strings.Compare(k.Value, o.Value)
}

func (r reference) find(name string, limit int) []match {
	query := names.Query(name)
	beginningsOnly := utf8.RuneCountInString(name) <= 2 || utf8.RuneCountInString(query) <= 2
	var tiers [7][]match
	for i := range r {
		if t := r[i].tier(query); t > 0 && (t <= 3 || !beginningsOnly) {
			tiers[t] = append(tiers[t], r[i].match)
		}
	}
	all := append([]match{}, slices.Concat(tiers[1:]...)...)
	if len(all) == 0 && !beginningsOnly {
		all = r.forgive(query)
	}
	return all[:min(limit, len(all))]
}

// forgive finds the names of the last tier, which is asked for if the others have none.
func (r reference) forgive(query string) []match {
	f := names.Forgive(query)
	var inside, begins []string
	for from, to := range map[string]*[]string{f.Inside: &inside, f.Begins: &begins} {
		if err := json.Unmarshal([]byte(from), to); err != nil {
			panic(err)
		}
	}
	tiers := map[int][]match{}
	for i := range r {
		k := &r[i]
		lacks := func(w string) bool { return !strings.Contains(k.squeezed, w) }
		begun := func(form, w string) bool { return strings.Contains(" "+form, " "+w) }
		lacksBegin := func(w string) bool {
			return !begun(k.form, w) && !begun(strings.ReplaceAll(k.form, " and ", ""), w)
		}
		if len(inside) > 0 && !slices.ContainsFunc(inside, lacks) && !slices.ContainsFunc(begins, lacksBegin) {
			tier := -1
			if !strings.HasPrefix(names.Squeeze(strings.ReplaceAll(k.form, " and ", " ")), f.Start) {
				tier = 0
				for _, w := range inside {
					if !begun(k.form, w) {
						tier++
					}
				}
			}
			tiers[tier] = append(tiers[tier], k.match)
		}
	}
	all := []match{}
	for tier := -1; tier <= len(inside); tier++ {
		all = append(all, tiers[tier]...)
	}
	return all
}

// tier is 1 to 6, or 0 for a name that does not match.
func (k *known) tier(query string) int {
	switch {
	case query == "" || k.form == "":
		return 0
	case slices.Contains([]string{"", " private limited", " limited", " llp", " opc private limited"}, strings.TrimPrefix(k.form, query)) &&
		strings.HasPrefix(k.form, query):
		return 1
	case strings.HasPrefix(k.form, query+" "):
		return 2
	case strings.HasPrefix(k.form, query):
		return 3
	case strings.Contains(k.form, " "+query):
		return 4
	case strings.Contains(query, " ") && k.hasWords(strings.Fields(query)):
		return 5
	case utf8.RuneCountInString(names.Squeeze(query)) > 2 && strings.Contains(k.squeezed, names.Squeeze(query)):
		return 6
	}
	return 0
}

func (k *known) hasWords(words []string) bool {
	last := len(words) - 1
	for _, w := range words[:last] {
		if !slices.Contains(k.words, w) {
			return false
		}
	}
	return slices.ContainsFunc(k.words, func(w string) bool { return strings.HasPrefix(w, words[last]) })
}
