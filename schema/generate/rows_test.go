package generate

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesSayTheirDateAndFormat: an import takes the date of a file from its list.
func TestFilesSayTheirDateAndFormat(t *testing.T) {
	out := t.TempDir()
	made, err := Run(t.Context(), Config{Companies: 2000, Seed: 4, Out: out, OlderShare: 1})
	require.NoError(t, err)
	older := 0
	for _, file := range made.Files {
		content := textOf(t, out, file.Name)
		switch {
		case file.Name == "pincodes.csv":
			require.Empty(t, file.AsOf)
		case strings.HasPrefix(file.Name, OlderPrefix):
			require.Equal(t, olderDay, file.AsOf)
			require.Equal(t, strings.Count(content, "\n"), strings.Count(content, "\r\n"))
			for _, row := range readRows(t, out, file.Name) {
				if day := row["DATE_OF_REGISTRATION"]; day[6:] < "47" { // else it is of the last century
					require.LessOrEqual(t, day[6:]+day[2:6]+day[:2], olderDay[2:])
					older++
				}
			}
		default:
			require.Equal(t, lastDay, file.AsOf)
			require.NotContains(t, content, "\r")
		}
	}
	require.Positive(t, older)
	foreign := strings.Count(textOf(t, out, "companies-llps-foreign.csv"), ",Foreign,")
	require.Equal(t, 3, foreign, "one for every 40 of 116 LLPs")
}

// TestValuesOfARowAgree, as in official rows.
func TestValuesOfARowAgree(t *testing.T) {
	out := generated(t, 3000)
	for _, row := range companies(t, out) {
		authorized, paidUp := rupees(t, row["AuthorizedCapital"]), rupees(t, row["PaidupCapital"])
		require.LessOrEqual(t, paidUp, authorized)
		require.Zero(t, int64(authorized)%10_000, "capital is a round number")
		require.Zero(t, int64(paidUp)%10)
		division, err := strconv.Atoi(row["nic_code"][:2])
		require.NoError(t, err)
		of := slices.IndexFunc(industries.values, func(i industry) bool { return i.name == row["CompanyIndustrialClassification"] })
		require.Contains(t, industries.values[of].codes, division)
		house, _, _ := strings.Cut(row["Registered_Office_Address"], ",")
		require.NotContains(t, house, "-")
	}
	for _, row := range readRows(t, out, "partners.csv") {
		if row["joined_on"] != "" && row["left_on"] != "" {
			require.LessOrEqual(t, row["joined_on"], row["left_on"])
		}
	}
}

// TestDaysOfAYearAreSpreadOverIt, from the first company of a year to its last.
func TestDaysOfAYearAreSpreadOverIt(t *testing.T) {
	c := newCalendar()
	for i := 1; i < len(c.starts)-1; i++ {
		low, high := c.years.upTo[i-1], c.years.upTo[i]
		require.Equal(t, c.starts[i], c.incorporation(low))
		require.InDelta(t, float64(c.starts[i]+c.starts[i+1])/2, float64(c.incorporation((low+high)/2)), 1)
		require.InDelta(t, c.starts[i+1], c.incorporation(high-1e-12), 1)
	}
	for cin, want := range map[string]string{
		"U74999SK1946PTC013232": "1947-01-01", "U74999SK1947PTC013232": "1947-12-31", "U74999SK2016PTC013232": "2016-12-31", "U74999SK2999PTC013232": lastDay,
	} {
		day, err := c.year(cin)
		require.NoError(t, err)
		require.Equal(t, want, c.days[day], cin)
	}
}
