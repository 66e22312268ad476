package load

import (
	"cmp"
	"strings"
)

// Held counts the records of the newest release.
type Held struct {
	Companies    int64 `json:"companies"`
	LLPs         int64 `json:"llps"`
	Directors    int64 `json:"directors"`
	Appointments int64 `json:"appointments"`
	Partners     int64 `json:"partners"`
}

// held reads the counts of the newest release; they are 0 without one.
func (s *Store) held() (h Held, err error) {
	read, _, err := s.conn.Prepare(`SELECT companies, llps, directors, appointments, partners FROM release ORDER BY seq DESC LIMIT 1`)
	if err != nil {
		return h, err
	}
	defer read.Close()
	if read.Step() {
		for i, to := range []*int64{&h.Companies, &h.LLPs, &h.Directors, &h.Appointments, &h.Partners} {
			*to = read.ColumnInt64(i)
		}
	}
	return h, cmp.Or(read.Err(), read.Reset())
}

// Lacking explains to an operator, in lines, what lookups answer while the registry has no directors,
// LLPs or partners, which the published files lack. It is empty for a registry that has them all,
// and for an empty registry.
func (h Held) Lacking() string {
	if h == (Held{}) {
		return ""
	}
	var lines []string
	if h.Directors == 0 {
		lines = append(lines, "no directors: GET /v1/directors/{din} answers 404, and companies have no directors")
	} else if h.Appointments == 0 {
		lines = append(lines, "no appointments: companies have no directors, and directors no companies")
	}
	if h.LLPs == 0 {
		lines = append(lines, "no LLPs: GET /v1/llps/{llpin} answers 404, and GET /v1/search/llps finds none")
	} else if h.Partners == 0 {
		lines = append(lines, "no partners: LLPs have none")
	}
	if lines == nil {
		return ""
	}
	return "The registry has " + strings.Join(lines, ";\nit has ") +
		".\nThe published files of companies hold no persons; docs/import-formats.md, \"Persons and LLPs\", says what brings them.\n"
}
