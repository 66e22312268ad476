package handler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/handler/names"
)

func TestMadeUpNamesAreComparedAsRegisteredOnesAre(t *testing.T) {
	for i := range madeUps {
		require.Equal(t, names.Name(madeUps[i].registered()), madeUps[i].form())
		require.Contains(t, madeUps[i].registered(), "(MADE-UP)")
	}
}

func TestMadeUpRecordsAreInSearchOrder(t *testing.T) {
	place := func(m madeUp) string {
		return fmt.Sprintf("%v %04d %s %s", m.status != "ACTIVE", len(m.registered()), m.form(), m.value)
	}
	for i := 1; i < len(madeUps); i++ {
		require.Less(t, place(madeUps[i-1]), place(madeUps[i]))
	}
}

func TestMadeUpNumbersAreWellFormedAndOfNoRegister(t *testing.T) {
	for _, m := range append(madeUps[:], madeUp{value: SandboxNoCompany}, madeUp{value: SandboxNoLLP}) {
		if m.isLLP() {
			llpin, ok := ident.LLPIN(m.value)
			require.True(t, ok && llpin == m.value, m.value)
			require.True(t, strings.HasPrefix(llpin, "ZZZ-"), m.value)
			continue
		}
		cin, ok := ident.CIN(m.value)
		require.True(t, ok && cin == m.value, m.value)
		require.Equal(t, "ZZ", cin[6:8], "the state's code")
		if m.incorporated != "" {
			require.Equal(t, m.incorporated[:4], cin[8:12], m.value)
		}
	}
	for _, number := range []string{SandboxDirector, SandboxColleague, SandboxResigned, SandboxNoDirector} {
		din, ok := ident.DIN(number)
		require.True(t, ok && din == number && din > "99999900", number)
	}
	for _, number := range []string{SandboxNoCompany, SandboxNoDirector, SandboxNoLLP, "U72900KA2015PTC990001"} {
		require.Nil(t, sandboxRecord(number), number)
	}
}

// TestMadeUpRecordsAgree reads all of them as a client does, and compares what one says of another.
func TestMadeUpRecordsAgree(t *testing.T) {
	type link struct {
		CIN, Status, Designation string
		Name                     string `json:"company_name"`
		Appointed                string `json:"appointment_date"`
	}
	type person struct {
		DIN, Name, Status string
		Links             []link `json:"linked_companies"`
		Total             int    `json:"linked_companies_total"`
	}
	people, appointments := map[string]person{}, map[string][]link{}
	for _, din := range []string{SandboxDirector, SandboxColleague, SandboxResigned} {
		var p person
		read(t, directorFields, din, &p)
		people[din] = p
		for i := 1; i < len(p.Links); i++ {
			require.Greater(t, p.Links[i-1].Appointed, p.Links[i].Appointed, "the newest comes first")
		}
	}
	require.Len(t, people[SandboxDirector].Links, sandboxListed)
	require.Equal(t, maxLinkedCompanies, fmt.Sprint(sandboxListed))

	for i := range madeUps {
		if m := &madeUps[i]; m.isLLP() {
			var l struct {
				Partners []struct{ DIN, Name string }
				Total    int `json:"partners_total"`
			}
			read(t, llpFields, m.value, &l)
			require.Len(t, l.Partners, l.Total)
			for _, p := range l.Partners {
				if p.DIN != "" {
					require.Equal(t, people[p.DIN].Name, p.Name)
				}
			}
			continue
		}
		var c struct {
			link
			Directors []struct {
				DIN, Name, Designation string
				Appointed              string `json:"appointment_date"`
			}
		}
		w := writer{}
		writeCompany(&w, sandboxRecord(madeUps[i].value))
		require.False(t, w.damaged)
		require.NoError(t, json.Unmarshal(w.buf, &c))
		for _, d := range c.Directors {
			require.Equal(t, people[d.DIN].Name, d.Name)
			appointments[d.DIN] = append(appointments[d.DIN], link{c.CIN, c.Status, d.Designation, c.Name, d.Appointed})
		}
	}
	for din, p := range people {
		require.Len(t, appointments[din], p.Total)
		for _, l := range p.Links {
			require.Contains(t, appointments[din], l)
		}
	}
}

// read renders a made-up record and reads it as JSON.
func read(t *testing.T, fields []field, value string, into any) {
	t.Helper()
	row := sandboxRecord(value)
	require.Len(t, row, len(fields), value)
	rendered := renderFields(fields, row)
	require.Empty(t, rendered.problem.code)
	require.NoError(t, json.Unmarshal(rendered.data, into), "%s", rendered.data)
}

func TestMadeUpNamesAreFoundByQueriesThatBeginWithTheirWord(t *testing.T) {
	for query, want := range map[string]string{
		"sandbox":                     "ZZZ-0001 U72900ZZ2019PTC000013 U72900ZZ2019PTC000012 U72900ZZ2019PTC000011 " + SandboxNulls,
		"Sandbox  EVERY-field":        SandboxLLP + " " + SandboxCompany,
		"sandbox tr":                  "U72900ZZ2018PTC000008 U72900ZZ2018PTC000007 U72900ZZ2018PTC000004",
		"sandbox tea made up pvt ltd": "U72900ZZ2019PTC000013",
		"sandbox tea (made-up)":       "U72900ZZ2019PTC000013",
		"sandbox private limited tea": "U72900ZZ2019PTC000013",
		"sandbox made-up llp":         SandboxLLP + " " + SandboxNullsLLP,
		"sandbo":                      "",
		"tea":                         "",
		"private limited":             "",
		"sandboxes":                   "",
		"sandbox of another company":  "",
	} {
		matches, count := sandboxMatches(query, 5)
		var found []struct{ Value, Label, Type string }
		if count > 0 {
			require.NoError(t, json.Unmarshal(matches, &found), "%s", matches)
		}
		var values []string
		for _, m := range found {
			values = append(values, m.Value)
			require.Equal(t, findMadeUp(m.Value).registered(), m.Label)
			require.Equal(t, strings.HasPrefix(m.Value, "ZZZ-"), m.Type == "llp")
			require.Equal(t, strings.HasPrefix(m.Value, "U72900"), m.Type == "company")
		}
		require.Len(t, values, count)
		require.Equal(t, want, strings.Join(values, " "), query)
	}
	_, count := sandboxMatches("sandbox", 3)
	require.Equal(t, 3, count)
}
