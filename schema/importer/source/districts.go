package source

import (
	_ "embed"
	"strings"
)

// districtTable has the districts of the post office directory and the spellings of them that other
// files use: a line per district, of state, name and squashed spellings, separated by tabs. The
// program internal/districts makes it and names its sources.
//
//go:embed districts.txt
var districtTable string

// districts maps squashed spellings to the districts with that spelling.
var districts = readDistricts(districtTable)

// place is a district in its state.
type place struct{ district, state string }

func readDistricts(table string) map[string][]place {
	list := map[string][]place{}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, "\t")
		if len(cells) != 3 {
			continue // the comment, and the end
		}
		for _, spelling := range strings.Fields(cells[2]) {
			list[spelling] = append(list[spelling], place{cells[1], cells[0]})
		}
	}
	return list
}

// formerStates are the states under which the register lists places that now belong to another state.
var formerStates = map[string]string{
	"Dadra and Nagar Haveli": "Dadra and Nagar Haveli and Daman and Diu",
	"Daman and Diu":          "Dadra and Nagar Haveli and Daman and Diu",
	"Jammu and Kashmir":      "Ladakh",
	"Andhra Pradesh":         "Telangana",
	"Uttar Pradesh":          "Uttarakhand",
	"Bihar":                  "Jharkhand",
	"Madhya Pradesh":         "Chhattisgarh",
}

// districtOf returns the district that a text names, as the post office directory spells it: the
// state's own, or, if the state has none of that name, the country's only one. It is "" for any other
// text, and for a name that several other states share.
func districtOf(text, state string) string {
	if district := districtIn(text, state); district != "" {
		return district
	}
	if found := districts[districtKey(text)]; len(found) == 1 {
		return found[0].district
	}
	return ""
}

// districtIn returns the district of a state that a text names, "" if there is none.
func districtIn(text, state string) string {
	found := districts[districtKey(text)]
	for _, p := range found {
		if p.state == state {
			return p.district
		}
	}
	for _, p := range found {
		if p.state == formerStates[state] {
			return p.district
		}
	}
	return ""
}

// longestCode is the length of the register's longest state code, five letters, with its brackets.
const longestCode = 7

// districtKey squashes a text without a state's code in brackets, as in "Raigarh(MH)". A name that is
// written twice counts once.
func districtKey(text string) string {
	if open := strings.LastIndexByte(text, '('); open > 0 && strings.HasSuffix(text, ")") && len(text)-open <= longestCode {
		text = text[:open]
	}
	key := squash(text)
	if half := len(key) / 2; len(key)%2 == 0 && half > 2 && key[:half] == key[half:] {
		return key[:half]
	}
	return key
}

// isDistrict reports whether a part of an address is a district. The MCA register takes districts from
// a list and, unlike many cities, never writes them in all capitals.
func isDistrict(part string) bool {
	return part != strings.ToUpper(part) && districts[districtKey(part)] != nil
}

// homonyms are cities that share a district's name but lie mostly outside that district.
var homonyms = map[string]bool{"newdelhi": true}

// cityDistrict returns the district named after a city, "" if there is none. A postal zone number or a
// pincode may follow the city.
func cityDistrict(city, state string) string {
	city = strings.TrimRight(city, " .-0123456789")
	if homonyms[squash(city)] {
		return ""
	}
	return districtOf(city, state)
}

// withoutDistrictWord returns a district that its column names as "Pune District" or "Dist. Pune" without that word.
func withoutDistrictWord(text string) string {
	words := addressWords(text)
	isWord := func(i int) bool { return len(words) > 1 && namesOfDistricts[strings.ToLower(words[i])] }
	switch {
	case isWord(0):
		words = words[1:]
	case isWord(len(words) - 1):
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}

var namesOfDistricts = map[string]bool{"district": true, "dist": true, "distt": true, "disst": true, "dt": true}

// districtWords is the largest number of words in a district's name.
const districtWords = 3

// saidDistrict returns the district that follows "Dist.", "Distt." or "District" in a text, even if
// joined to another word, "" if there is none.
func saidDistrict(text, state string) string {
	if !strings.Contains(text, "ist") && !strings.Contains(text, "IST") { // false for most lines
		return ""
	}
	words := addressWords(text)
	for i := range words {
		w := strings.ToLower(words[i])
		if !strings.HasSuffix(w, "dist") && !strings.HasSuffix(w, "distt") && w != "disst" && w != "district" {
			continue
		}
		for n := min(districtWords, len(words)-i-1); n > 0; n-- {
			if d := districtOf(strings.Join(words[i+1:i+1+n], " "), state); d != "" {
				return d
			}
		}
	}
	return ""
}

// endDistrict returns the district of the state that the last words of a text name (before the state, if the
// text repeats it), "" if there is none.
func endDistrict(text, state string) string {
	words := addressWords(strings.TrimRight(text, " .-0123456789"))
	for n := min(districtWords, len(words)); n > 0; n-- {
		end := strings.Join(words[len(words)-n:], " ")
		if states[squash(end)] == state && districtOf(end, state) == "" {
			words = words[:len(words)-n]
			break
		}
	}
	for n := min(districtWords, len(words)); n > 0; n-- {
		end := strings.Join(words[len(words)-n:], " ")
		if d := districtIn(end, state); d != "" && !homonyms[squash(end)] {
			return d
		}
	}
	return ""
}

func addressWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,.:;-/()[]", r) })
}
