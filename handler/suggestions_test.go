package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/handler/names"
	"regedge/internal/testkit/searchtest"
)

// lines is what forgivingStatement returns of names: forms and labels in turn.
func lines(pairs ...string) string { return strings.Join(pairs, "\x1e") }

func TestSuggestionsAreStringsOfAStructuredField(t *testing.T) {
	for label, want := range map[string]string{
		"":                 `""`,
		"TATA ~ STEEL":     `"TATA ~ STEEL"`,
		`"QUOTED" \ NAME`:  `"\"QUOTED\" \\ NAME"`,
		"100% \x1f\x7f":    `"100%25 %1F%7F"`,
		"É":                `"%C3%89"`,
		"a\r\nX-Other: 1":  `"a%0D%0AX-Other: 1"`,
		"\x00\xff, \"last": `"%00%FF, \"last"`,
	} {
		require.Equal(t, "x"+want, string(appendHeaderString([]byte("x"), label)), "%q", label)
	}
}

// TestALongSuggestionIsLeftOutAlone: the header stays small, and has the others.
func TestALongSuggestionIsLeftOutAlone(t *testing.T) {
	const first, last = "tata steel", "tata steels"
	quotes := 2
	for length, kept := range map[int]bool{maxSuggestion - quotes: true, maxSuggestion - quotes + 1: false} {
		long := strings.Repeat("X", length)
		for name, c := range map[string]struct{ lines, with, without string }{
			"alone":    {lines(first, long), `"` + long + `"`, ""},
			"at first": {lines(first, long, last, "OTHER"), `"` + long + `", "OTHER"`, `"OTHER"`},
			"at last":  {lines(first, "ONE", last, long), `"ONE", "` + long + `"`, `"ONE"`},
		} {
			want := c.without
			if kept {
				want = c.with
			}
			require.Equal(t, want, headerList(alike(names.NewSuggestions("tata steel"), c.lines)), "%s, %d bytes", name, length)
		}
	}
	require.Empty(t, headerList(alike(names.NewSuggestions("tata steel"), "")))
	require.Empty(t, headerList(alike(names.NewSuggestions("tata steel"), lines("another name", "ANOTHER NAME"))))
}

// TestASearchWithoutAMatchSuggestsNames, in a header of its answer alone.
func TestASearchWithoutAMatchSuggestsNames(t *testing.T) {
	b := newBench()
	b.registry.rows[searchStatement][1] = text("[]")
	b.registry.rows[forgivingStatement][2] = text(lines("tata steel", "TATA STEEL LIMITED"))
	r := b.get("/v1/search/companies?name=tata+stele&limit=3")
	require.Equal(t, 200, r.Status)
	require.Contains(t, string(r.Body), `"data":[]`)
	require.Equal(t, `"TATA STEEL LIMITED"`, header(t, r, HeaderSearchSuggestion))
	require.Equal(t, charge.NotFound, b.meter.asked[0].Outcome, "it is free")
	require.Equal(t, []string{searchStatement, forgivingStatement}, b.registry.asked)
	require.Equal(t, forgivingArgs("tata stele", 3), b.registry.args[1])

	b.registry.rows[forgivingStatement][1] = text(`[{"value":"y"}]`)
	r = b.get("/v1/search/companies?name=tata+stele")
	require.Contains(t, string(r.Body), `"data":[{"value":"y"}]`)
	require.Empty(t, header(t, r, HeaderSearchSuggestion))
	require.Equal(t, charge.Found, b.meter.asked[1].Outcome)

	b.registry.rows[forgivingStatement] = nil
	require.Equal(t, RegistryUnavailable, problemOf(t, b.get("/v1/search/companies?name=tata+stele")))
}

// TestShortNamesAreNotForgiven: everything is like them.
func TestShortNamesAreNotForgiven(t *testing.T) {
	for name, again := range map[string]bool{"ab": false, "%C3%A9%C3%A9": false, "a.b": true, "abc": true, "((ab))": true, "%C3%A9%C3%A9%C3%A9": true} {
		b := newBench()
		b.registry.rows[searchStatement][1] = text("[]")
		b.registry.rows[acronymStatement] = []Value{text("r-1"), {}}
		r := b.get("/v1/search/companies?name=" + name)
		require.Equal(t, 200, r.Status)
		require.Equal(t, again && len([]rune(names.Query(unescaped(name)))) > prefixOnlyRunes, slices.Contains(b.registry.asked, forgivingStatement), name)
		require.Equal(t, charge.NotFound, b.meter.asked[0].Outcome, name)
	}
}

func unescaped(s string) string {
	s, _ = unescape(s, true)
	return s
}

// TestNamesAreComparedInEqualParts: an expression that many names fit must not crowd out the others.
func TestNamesAreComparedInEqualParts(t *testing.T) {
	for _, query := range []string{"tata stele", "a", "reliance industries limited", "zzz"} {
		_, expressions := names.LikeTerms(query)
		args := forgivingArgs(query, 7)
		require.Equal(t, integer(7), args[3])
		require.Equal(t, integer(int64(240/max(1, expressions))), args[5], query)
	}
}

// TestFewFurtherNamesAreCompared, also for a query that is read as a scanner may have misread it.
func TestFewFurtherNamesAreCompared(t *testing.T) {
	for query, misread := range map[string]bool{"tata stele": false, "autohoome mktg of goa": false, "rightholidayhmoes": false, "rnodern clinic furniture vvorks": true} {
		b := newBench()
		b.registry.rows[searchStatement][1], b.registry.rows[forgivingStatement][1] = text("[]"), text("[]")
		b.registry.rows[forgivingStatement][2], b.registry.rows[acronymStatement] = Value{}, []Value{text("r-1"), {}}
		b.get("/v1/search/companies?name=" + strings.ReplaceAll(query, " ", "+"))
		var compared []int64
		for i, asked := range b.registry.asked {
			if asked == forgivingStatement {
				var expressions []string
				args := b.registry.args[i]
				require.NoError(t, json.Unmarshal([]byte(args[4].Text), &expressions))
				require.LessOrEqual(t, int(args[5].Int)*len(expressions), 480, query)
				compared = append(compared, args[5].Int)
			}
		}
		require.Equal(t, int64(60), compared[1], query)
		require.Len(t, compared, map[bool]int{false: 2, true: 3}[misread], query)
	}
}

// TestTheSandboxSeesMaskedContacts, and live keys whole ones.
func TestTheSandboxSeesMaskedContacts(t *testing.T) {
	b := newBench()
	row := b.registry.rows[companyStatement]
	row[1+companyCIN], row[1+companyEmail], row[1+companyPhone] = text("U72900KA2015PTC990001"), text("registry@example.com"), text("+919876543210")
	contact := func(key string) (email, phone string) {
		r := b.Serve(request("GET", "/v1/companies/U72900KA2015PTC990001", "Authorization", "Bearer "+key))
		require.Equal(t, 200, r.Status, "%s", r.Body)
		var answer struct {
			Data struct{ Contact struct{ Email, Phone string } }
		}
		require.NoError(t, json.Unmarshal(r.Body, &answer))
		return answer.Data.Contact.Email, answer.Data.Contact.Phone
	}
	email, phone := contact(liveKey)
	require.Equal(t, "registry@example.com +919876543210", email+" "+phone)
	email, phone = contact(ident.SandboxKey)
	require.Equal(t, "r****@e******.com +91******3210", email+" "+phone)
	require.Equal(t, []Value{integer(1), integer(1)}, b.registry.args[1][1:3], "its made-up plan includes both")
}

// TestAFailedLookupWithoutAVerdictIsNotVoided: there is nothing to take back.
func TestAFailedLookupWithoutAVerdictIsNotVoided(t *testing.T) {
	lost := errors.New("no answer")
	for target, voids := range map[string]int{"/v1/directors/x": 0, "/v1/search/companies?name=abc": 1} {
		meter := &meterScript{charges: []error{lost, lost}}
		h := &Handler{Registry: emptySearch{}, Meter: meter, Clock: fixedClock(1), Random: &countingRandom{}, DocsURL: func() string { return "" }}
		r := h.Serve(request("GET", target, "Authorization", "Bearer "+ident.SandboxKey))
		require.Equal(t, 503, r.Status)
		require.Len(t, meter.asked, 2)
		require.Len(t, meter.voided, voids, target)
	}
}

// TestANameOfTwoCharactersFindsBeginningsAlone, also if its compared form is longer.
func TestANameOfTwoCharactersFindsBeginningsAlone(t *testing.T) {
	require.Equal(t, "fix", names.Query("\ufb01x"))
	for name, more := range map[string]bool{"\ufb01x": false, "fi": false, "fix": true} {
		args := searchArgs(name, 5)
		for _, at := range []int{5, 7} {
			require.Equal(t, more, args[at].Text != names.NoTerms, "%s, ?%d", name, at+1)
		}
	}
}

// TestASeparatorInANameIsASpaceOfTheSuggestion: names are read from one text, and would be cut there.
func TestASeparatorInANameIsASpaceOfTheSuggestion(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U10000GJ2000PTC000001", Name: "GUJARAT\x1eINDUSTRIAL PAPER SUPPLY LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000002", Name: "BRIGHTWAVA\x1eHOMES LIMITED", Status: "ACTIVE"},
		{Value: "U74999WB2020PTC013709", Name: "MADE-UP\x1eONE LIMITED", Status: "ACTIVE"},
	})
	for query, name := range map[string]string{
		"GIPS":                  "GUJARAT INDUSTRIAL PAPER SUPPLY LIMITED", // an acronym
		"brightwavx homes":      "BRIGHTWAVA HOMES LIMITED",                // misspelt
		"U74999WB2020PTC013708": "MADE-UP ONE LIMITED",                     // another digit
		"U74999WB2020":          "MADE-UP ONE LIMITED",                     // the beginning of a CIN
		"WB2020PTC013709":       "MADE-UP ONE LIMITED",                     // the end
	} {
		_, suggested := s.search(t, query, 5)
		require.Equal(t, `"`+name+`"`, suggested, query)
	}
}

// TestManyWordsTakeNoLongerThanSome: each name that has them all is searched for each of them.
func TestManyWordsTakeNoLongerThanSome(t *testing.T) {
	records := make([]searchtest.Record, 0, 2500)
	for i := range cap(records) {
		records = append(records, searchtest.Record{
			Value: fmt.Sprintf("U10000GJ2000PTC%06d", i), Name: fmt.Sprintf("MADE-UP %d CONSTRUCTION LIMITED", i), Status: "ACTIVE",
		})
	}
	s := newSearcher(t, records)
	statement := s.store.(prepared)[forgivingStatement]
	steps := func(words int) int {
		var query []string
		const word = "construction"
		for size := 4; len(query) < words; size++ {
			for at := 0; at+size <= len(word) && len(query) < words; at++ {
				query = append(query, word[at:at+size])
			}
		}
		statement.Status(sqlite3.STMTSTATUS_VM_STEP, true)
		require.NotEqual(t, "[]", s.find(t, strings.Join(query, " "), 5), query)
		return statement.Status(sqlite3.STMTSTATUS_VM_STEP, true)
	}
	require.Less(t, steps(30), 2*steps(6))
}
