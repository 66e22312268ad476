package source

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"regedge/schema/importer/record"
)

// states maps names and codes of states and union territories, squashed, to one name.
var states = makeStates(stateSpellings)

// stateSpellings are the codes and other names of each state, squashed, former ones too. A union territory
// that was merged into another keeps its name, under which its companies are registered.
var stateSpellings = map[string]string{
	"Andaman and Nicobar Islands": "an andamannicobar andamanandnicobar andamannicobarislands andamanandnicobarisland andamannicobarisland anislands",
	"Andhra Pradesh":              "ap",
	"Arunachal Pradesh":           "ar",
	"Assam":                       "as",
	"Bihar":                       "br",
	"Chandigarh":                  "ch",
	"Chhattisgarh":                "cg ct chattisgarh chhatisgarh chatisgarh",
	"Dadra and Nagar Haveli":      "dn dadranagarhaveli dadarnagarhaveli dadarandnagarhaveli",
	"Daman and Diu":               "dd damandiu",
	"Dadra and Nagar Haveli and Daman and Diu": "dh dnhdd thedadraandnagarhavelianddamananddiu " +
		"dadranagarhavelianddamandiu dadranagarhavelidamandiu dadraandnagarhavelidamananddiu thedadranagarhavelianddamandiu",
	"Delhi":             "dl newdelhi nctofdelhi nctdelhi delhinct",
	"Goa":               "ga",
	"Gujarat":           "gj gujrat",
	"Haryana":           "hr",
	"Himachal Pradesh":  "hp himanchalpradesh himachalpardesh",
	"Jammu and Kashmir": "jk jammukashmir jammuandkasmir",
	"Jharkhand":         "jh",
	"Karnataka":         "ka karnatka",
	"Kerala":            "kl",
	"Ladakh":            "la lh",
	"Lakshadweep":       "ld",
	"Madhya Pradesh":    "mp",
	"Maharashtra":       "mh maharastra",
	"Manipur":           "mn",
	"Meghalaya":         "ml",
	"Mizoram":           "mz",
	"Nagaland":          "nl",
	"Odisha":            "od or orissa orrisa",
	"Puducherry":        "py pondicherry pondichery pudducherry",
	"Punjab":            "pb",
	"Rajasthan":         "rj",
	"Sikkim":            "sk",
	"Tamil Nadu":        "tn",
	"Telangana":         "tg ts telengana",
	"Tripura":           "tr",
	"Uttar Pradesh":     "up",
	"Uttarakhand":       "uk ut ua ur uttaranchal uttrakhand uttranchal",
	"West Bengal":       "wb",
}

func makeStates(names map[string]string) map[string]string {
	lookup := map[string]string{}
	for name, others := range names {
		lookup[squash(name)] = name
		for _, other := range strings.Fields(others) {
			lookup[other] = name
		}
	}
	return lookup
}

// stateName returns the name of a state given by name or code. No value is NULL; an unknown
// state is kept, in title case, unless isNoPlace.
func stateName(s string) record.Value {
	if isNone(s) {
		return record.Value{}
	}
	if name, ok := states[squash(s)]; ok {
		return record.TextOf(name)
	}
	if name := titledState(s); name != "" {
		return record.TextOf(name)
	}
	if isNoPlace(s) {
		return record.Value{}
	}
	return record.TextOf(properCase(clean(s)))
}

// titledState reads a state that is written with its kind or its code: "Jammu & Kashmir (UT)", "State of Goa", "Goa
// (GA)", "IN-GA", "30-Goa", "Goa (30)".
func titledState(s string) string {
	key := strings.Trim(squash(s), "0123456789")
	if name := states[key]; name != "" {
		return name
	}
	for _, title := range []string{"unionterritory", "ut", "state"} {
		if place, ok := strings.CutPrefix(key, title+"of"); ok && states[place] != "" {
			return states[place]
		}
		if place, ok := strings.CutSuffix(key, title); ok && states[place] != "" {
			return states[place]
		}
	}
	code := key[max(len(key)-2, 0):]
	if name := states[code]; name == states[strings.TrimSuffix(key, code)] || len(s) == len("IN-GA") && strings.EqualFold(s[:3], "IN-") {
		return name
	}
	return ""
}

// maxState is longer than the name of every state, in bytes.
const maxState = 60

// isNoPlace reports whether s can't be the name of a state, but may be an address or a Registrar, because two columns
// are swapped or a row's values are shifted by one.
func isNoPlace(s string) bool {
	return len(s) > maxState || strings.ContainsAny(s, ",0123456789") || isFormulaOrError(s) || isOfAnotherColumn(s)
}

// rocName normalises a Registrar's office to "ROC Delhi". Sources also write "RoC-Delhi", "ROC
// DELHI", "R.O.C. Delhi", "ROC (Delhi)" or "Registrar of Companies, Delhi". No value is NULL.
func rocName(s string) record.Value {
	if isNoText(s) {
		return record.Value{}
	}
	s = clean(s)
	place, _, ok := afterRegistrar(s)
	if ok {
		place = strings.TrimLeft(place, " -,:._")
		if inner, bracketed := strings.CutPrefix(place, "("); bracketed && strings.IndexAny(inner, "()") == len(inner)-1 {
			place = strings.Trim(inner, " )")
		}
	}
	if place == "" {
		return record.Value{}
	}
	if place == strings.ToUpper(place) || place == strings.ToLower(place) {
		place = properCase(place)
	}
	return record.TextOf("ROC " + place)
}

// registrars are the ways to write Registrar of Companies. Sources may write the place directly after the first
// joinable of them ("RoCDelhi").
var registrars = []string{"roc", "registrar of companies", "office of the registrar of companies", "r.o.c", "r o c", "r. o. c"}

const joinable = 2

// afterRegistrar returns what follows the word for a Registrar at the beginning of a text, and whether that begins with
// a letter.
func afterRegistrar(s string) (rest string, isJoined, ok bool) {
	for i, word := range registrars {
		if len(s) < len(word) || !strings.EqualFold(s[:len(word)], word) {
			continue
		}
		c, _ := utf8.DecodeRuneInString(s[len(word):])
		if isJoined = unicode.IsLetter(c); !isJoined || i < joinable {
			return s[len(word):], isJoined, true
		}
	}
	return s, false, false
}

// isRegistrar reports whether a text begins as a Registrar's office, in one of the forms that rocName reads.
func isRegistrar(s string) bool {
	_, isJoined, ok := afterRegistrar(clean(s))
	return ok && !isJoined || strings.HasPrefix(squash(s), "registrarofcompanies")
}

// properCase capitalises the words of s, except "and" and "of".
func properCase(s string) string {
	words := strings.Fields(strings.ToLower(s))
	for i, w := range words {
		if i > 0 && (w == "and" || w == "of") {
			continue
		}
		first, size := utf8.DecodeRuneInString(w)
		words[i] = string(unicode.ToUpper(first)) + w[size:]
	}
	return strings.Join(words, " ")
}
