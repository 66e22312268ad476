package directors

import (
	"strings"

	"regedge/handler/fastbytes"
)

// Max is how many directors a list has at most (docs/contract.md, "Company").
const Max = 50

// Of returns an SQL expression for the directors list of a company, made from its current
// appointments, which are those without a cessation: NULL if it has none. cin is an SQL
// expression for the CIN. Appointments of directors that the registry does not have are left
// out.
func Of(cin string) string { return strings.ReplaceAll(expression, "{cin}", cin) }

const expression = `(
    SELECT group_concat(din || char(9) || name || char(9) || designation || char(9) || appointed, char(10))
    FROM (
      SELECT d.din AS din, d.name AS name,
        coalesce(a.designation, d.designation, '') AS designation,
        coalesce(a.appointment_date, d.appointment_date, '') AS appointed
      FROM appointment a CROSS JOIN director d ON d.din = a.din
      WHERE a.cin = {cin} AND a.cessation IS NULL
      ORDER BY appointed = '', appointed, d.din
      LIMIT 50))`

// Director is one line of a list. Designation and Appointed are empty if there is none.
type Director struct{ DIN, Name, Designation, Appointed string }

// Next splits a list that is not empty into its first director and the rest. It reports false
// if the text is not a directors list.
func Next(list string) (first Director, rest string, ok bool) {
	var tabs [3]int
	end, seen := 0, 0
	for ; end < len(list); end++ {
		for end+fastbytes.Size <= len(list) && !fastbytes.Control(fastbytes.Load(list, end)) {
			end += fastbytes.Size
		}
		if end == len(list) || list[end] == '\n' {
			break
		}
		if list[end] == '\t' {
			if seen == len(tabs) {
				return Director{}, "", false
			}
			tabs[seen] = end
			seen++
		}
	}
	if seen < len(tabs) || end == len(list)-1 { // a list does not end with a newline
		return Director{}, "", false
	}
	first = Director{list[:tabs[0]], list[tabs[0]+1 : tabs[1]], list[tabs[1]+1 : tabs[2]], list[tabs[2]+1 : end]}
	if end < len(list) {
		rest = list[end+1:]
	}
	return first, rest, first.DIN != "" && first.Name != ""
}

// Len returns the number of directors in a list.
func Len(list string) int {
	if list == "" {
		return 0
	}
	return strings.Count(list, "\n") + 1
}
