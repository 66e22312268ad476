package generate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
)

// madeUp ends the name of everybody who is nobody.
const madeUp = " (MADE-UP)"

func TestDirectorsAreMadeUpAndUnique(t *testing.T) {
	out := generated(t, enough)
	seen, flagged := map[string]bool{}, 0
	for _, row := range readRows(t, out, "directors.csv") {
		requireMadeUpDIN(t, row["din"])
		require.False(t, seen[row["din"]], row["din"])
		seen[row["din"]] = true
		require.True(t, strings.HasSuffix(row["name"], madeUp), row["name"])
		if row["disqualified"] == "true" {
			flagged++
		}
	}
	require.InDelta(t, 1.08, float64(len(seen))/enough, 0.1)
	require.InDelta(t, 0.015, float64(flagged)/float64(len(seen)), 0.005)
}

func TestAppointmentsFitTheirCompaniesAndDirectors(t *testing.T) {
	out := generated(t, enough)
	incorporated, held := map[string]string{}, map[string]bool{}
	for _, row := range companies(t, out) {
		cin, _ := ident.CIN(row["CIN"])
		incorporated[cin] = row["CompanyRegistrationdate_date"]
	}
	for _, row := range readRows(t, out, "directors.csv") {
		held[row["din"]] = true
	}
	rows := readRows(t, out, "appointments.csv")
	pairs, dangling, current := map[string]bool{}, 0, 0
	board, links := map[string]int{}, map[string]int{}
	for _, row := range rows {
		pair := row["cin"] + row["din"]
		require.False(t, pairs[pair], pair)
		pairs[pair] = true
		if !held[row["din"]] || incorporated[row["cin"]] == "" {
			dangling++
		}
		if from := row["appointment_date"]; from != "" {
			requireDate(t, from)
			require.GreaterOrEqual(t, from, incorporated[row["cin"]])
		}
		if until := row["cessation_date"]; until != "" {
			requireDate(t, until)
			require.GreaterOrEqual(t, until, row["appointment_date"])
			continue
		}
		current++
		board[row["cin"]]++
		links[row["din"]]++
	}
	require.InDelta(t, 2.4, float64(len(rows))/enough, 0.25)
	require.InDelta(t, 0.88, float64(current)/float64(len(rows)), 0.03)
	require.Less(t, dangling, 40)
	require.Positive(t, dangling)
	require.Positive(t, above(links, 10), "directors with more than 10 links")
	require.Positive(t, above(board, 30), "large boards")
}

func TestLLPsAreMadeUpAndUnique(t *testing.T) {
	out := generated(t, enough)
	seen, foreign := map[string]bool{}, 0
	add := func(id string) {
		written, ok := ident.LLPIN(id)
		require.True(t, ok, id)
		require.True(t, strings.HasPrefix(written, "Z"), id)
		require.False(t, seen[written], id)
		seen[written] = true
	}
	for _, row := range readRows(t, out, "llps.csv") {
		add(row["llpin"])
		requireDate(t, row["incorporation_date"])
	}
	for _, row := range readRows(t, out, "llps-monthly.csv") {
		add(row["LLPIN"])
	}
	for _, row := range readRows(t, out, "companies-llps-foreign.csv") {
		if strings.HasPrefix(row["CIN"], "F") {
			foreign++
			continue
		}
		add(row["CIN"])
	}
	require.Len(t, seen, enough*58/1000)
	require.Positive(t, foreign)
	for _, row := range readRows(t, out, "partners.csv") {
		require.True(t, seen[row["llpin"]], row["llpin"])
		require.True(t, strings.HasSuffix(row["name"], madeUp), row["name"])
		if row["din"] != "" {
			requireMadeUpDIN(t, row["din"])
		}
	}
}

func TestADirectorWhoIsAPartnerHasOneName(t *testing.T) {
	out := generated(t, enough)
	names := map[string]string{}
	for _, row := range readRows(t, out, "directors.csv") {
		names[row["din"]] = row["name"]
	}
	both := 0
	for _, row := range readRows(t, out, "partners.csv") {
		if name := names[row["din"]]; name != "" {
			require.Equal(t, name, row["name"])
			both++
		}
	}
	require.Positive(t, both)
}

func TestContactsReachNobody(t *testing.T) {
	for _, row := range readRows(t, generated(t, 2000), "contacts.csv") {
		_, ok := ident.CIN(row["cin"])
		require.True(t, ok)
		if row["email"] != "" {
			require.True(t, strings.HasSuffix(row["email"], ".example.com"), row["email"])
		}
		if row["phone"] != "" {
			require.Regexp(t, `^\+910\d{9}$`, row["phone"])
		}
	}
}

func TestDirectorsForGivenCompanies(t *testing.T) {
	config := DirectorsConfig{CINs: []string{"U74999SK2016PTC013232", "L99999MH1901PLC000001", "U62099KA2025OPC999999", "U62099KA2031PTC999998"},
		Seed: 5, Out: t.TempDir()}
	for i := range 500 {
		config.CINs = append(config.CINs, fmt.Sprintf("U62099KA2020PTC%06d", i))
	}
	for i := range 50 {
		config.CINs = append(config.CINs, fmt.Sprintf("U62099KA2020OPC%06d", i))
	}
	summary, err := Directors(context.Background(), config)
	require.NoError(t, err)
	require.Len(t, summary.Files, 2)
	of := map[string]int{}
	for _, row := range readRows(t, config.Out, "appointments.csv") {
		of[row["cin"]]++
		if row["cin"] == config.CINs[0] && row["appointment_date"] != "" {
			require.GreaterOrEqual(t, row["appointment_date"], "2016-12-31")
		}
	}
	for cin, n := range of {
		require.True(t, n == 1 || cin[12:15] != "OPC", "%s has %d directors", cin, n)
	}
	require.Equal(t, 1, of["U62099KA2025OPC999999"])
	require.Greater(t, len(of), 480)
}

func TestDirectorsRefusesWhatIsNoCIN(t *testing.T) {
	out := t.TempDir()
	_, err := Directors(context.Background(), DirectorsConfig{CINs: []string{"AAA-0001"}, Out: out})
	require.ErrorContains(t, err, `"AAA-0001" is not a CIN`)
	_, err = Directors(context.Background(), DirectorsConfig{CINs: []string{"u74999sk2016ptc013232"}, Out: out})
	require.ErrorContains(t, err, "is not a CIN")
}

func TestDINsAreADistinctOrder(t *testing.T) {
	a, b := dins, stride
	for b != 0 {
		a, b = b, a%b
	}
	require.Equal(t, 1, a, "stride and dins have a common divisor")
	require.Equal(t, "90000000", din(0))
	require.Len(t, din(dins-1), ident.DINLength)
}

func requireMadeUpDIN(t *testing.T, din string) {
	t.Helper()
	written, ok := ident.DIN(din)
	require.True(t, ok, din)
	require.Equal(t, din, written)
	require.True(t, strings.HasPrefix(din, "9"), din)
}

func requireDate(t *testing.T, s string) {
	t.Helper()
	_, err := time.Parse(time.DateOnly, s)
	require.NoError(t, err)
}

func above[K comparable](counts map[K]int, limit int) int {
	n := 0
	for _, count := range counts {
		if count > limit {
			n++
		}
	}
	return n
}
