package writer

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
)

// useForSums writes usage of two keys of account 1 and of one of account 2, as edges report it.
func useForSums(t *testing.T, w *Writer, first *Client) {
	t.Helper()
	for range 2 {
		_, err := first.AddAccount(t.Context(), "made-up", "", "starter")
		require.NoError(t, err)
	}
	day := func(text string, hour int64) int64 {
		at, err := time.Parse(time.DateOnly, text)
		require.NoError(t, err)
		return at.Unix()/3600 + hour
	}
	for _, row := range [][6]int64{ // account, hour, key, endpoint, outcome, count
		{1, day("2025-12-31", 23), 1, 1, 1, 100},
		{1, day("2026-01-01", 0), 1, 1, 1, 7}, {1, day("2026-01-01", 23), 1, 1, 1, 3}, {1, day("2026-01-01", 5), 1, 2, 2, 4},
		{1, day("2026-01-01", 5), 2, 1, 3, 1}, {1, day("2026-01-02", 5), 2, 4, 1, 20}, {1, day("2026-01-02", 6), 2, 4, 1, -1},
		{1, day("2026-01-03", 0), 1, 1, 1, 50}, {1, day("2026-01-02", 7), 2, 5, 1, 0}, {2, day("2026-01-01", 0), 3, 1, 1, 1000},
	} {
		_, err := w.config.Ledger.Exec(`INSERT INTO usage (account, hour, key, endpoint, outcome, count) VALUES (?, ?, ?, ?, ?, ?)`,
			row[0], row[1], row[2], row[3], row[4], row[5])
		require.NoError(t, err)
	}
}

// bare is a sum as a client sees it.
func bare(sums []UsageSum) []UsageSum {
	for i := range sums {
		sums[i].at = usageCursor{}
	}
	return sums
}

// TestMoreSumsThanAreAnsweredAreAnError, and not a part of them.
func TestMoreSumsThanAreAnsweredAreAnError(t *testing.T) {
	w, first, _ := runForRoles(t)
	_, err := first.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err = w.config.Ledger.Exec(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i <= ?)
		INSERT INTO usage (account, hour, key, endpoint, outcome, count) SELECT 1, ?, i, 1, 1, 1 FROM n`, maxUsageRows, day.Unix()/3600)
	require.NoError(t, err)
	query := UsageSumQuery{Account: 1, Days: Days{day, day}, By: []string{ByKey}}
	_, err = w.SumUsage(t.Context(), query)
	require.ErrorIs(t, err, ErrUsageTooLarge)
	answer := answerTo(w, firstOperator, http.MethodGet, "/v1/accounts/1/usage?from=2026-01-01&to=2026-01-01&by=key&format=csv", nil)
	require.Equal(t, http.StatusBadRequest, answer.Code, "no failure of the writer")
	require.Contains(t, answer.Body.String(), "choose fewer days")
	_, err = w.config.Ledger.Exec(`DELETE FROM usage WHERE key = 1`)
	require.NoError(t, err)
	sums, err := w.SumUsage(t.Context(), query)
	require.NoError(t, err)
	require.Len(t, sums, maxUsageRows)
}

func TestUsageIsSummedByWhatIsAsked(t *testing.T) {
	w, first, _ := runForRoles(t)
	useForSums(t, w, first)
	const january = "/v1/accounts/1/usage?from=2026-01-01&to=2026-01-02"
	for query, want := range map[string][]UsageSum{
		"":         {{Day: "2026-01-01", Found: 10, NotFound: 4, Failed: 1}, {Day: "2026-01-02", Found: 19}},
		"&by=key":  {{Key: 1, Found: 10, NotFound: 4}, {Key: 2, Found: 19, Failed: 1}},
		"&key=999": {},
		"&by=endpoint": {{Endpoint: "companies", Found: 10, Failed: 1}, {Endpoint: "directors", NotFound: 4},
			{Endpoint: "search_companies", Found: 19}},
		"&by=day,key&endpoint=companies": {{Day: "2026-01-01", Key: 1, Found: 10}, {Day: "2026-01-01", Key: 2, Failed: 1}},
		"&by=endpoint,day&key=2": {{Day: "2026-01-01", Endpoint: "companies", Failed: 1},
			{Day: "2026-01-02", Endpoint: "search_companies", Found: 19}},
	} {
		got := readAs[UsageSums](t, w, january+query)
		require.Equal(t, want, got.Data, query)
		require.Empty(t, got.Next)
		require.Equal(t, []string{"2026-01-01", "2026-01-02"}, []string{got.From, got.To})
	}
	all := UsageSumQuery{Account: 1, By: []string{ByDay, ByKey, ByEndpoint}}
	var err error
	all.Days, err = ParseDays("2025-12-31", "2026-01-03", time.Now())
	require.NoError(t, err)
	direct, err := w.SumUsage(t.Context(), all)
	require.NoError(t, err)
	require.Len(t, direct, 6, "what adds up to rows of nothing is left out")
	overHTTP, err := first.UsageSums(t.Context(), all)
	require.NoError(t, err)
	require.Equal(t, bare(direct), overHTTP)

	var paged []UsageSum
	for cursor := "&limit=1"; cursor != ""; {
		page := readAs[UsageSums](t, w, "/v1/accounts/1/usage?from=2025-12-31&to=2026-01-03&by=day,key,endpoint"+cursor)
		paged = append(paged, page.Data...)
		if cursor = ""; page.Next != "" {
			cursor = "&limit=1&cursor=" + page.Next
		}
	}
	require.Equal(t, overHTTP, paged)
}

// TestEachOutcomeIsSummed over the hours of a day.
func TestEachOutcomeIsSummed(t *testing.T) {
	w, first, _ := runForRoles(t)
	_, err := first.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	hour := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 3600
	for i, counts := range [][3]int64{{1, 20, 300}, {4, 50, 600}} {
		for outcome, count := range counts {
			_, err := w.config.Ledger.Exec(`INSERT INTO usage (account, hour, key, endpoint, outcome, count) VALUES (1, ?, 1, 1, ?, ?)`, hour+int64(i), outcome+1, count)
			require.NoError(t, err)
		}
	}
	require.Equal(t, []UsageSum{{Day: "2026-01-01", Found: 5, NotFound: 70, Failed: 900}},
		bare(readAs[UsageSums](t, w, "/v1/accounts/1/usage?from=2026-01-01&to=2026-01-01").Data))
}

// TestUsageIsListedFromAnHourToAnother which is left out, by hours, and without what was taken back.
func TestUsageIsListedFromAnHourToAnother(t *testing.T) {
	w, first, _ := runForRoles(t)
	useForSums(t, w, first)
	for span, want := range map[string][]int64{
		"from=2026-01-01T00:00:00Z&to=2026-01-01T05:00:00Z":           {7, 1000},
		"from=2026-01-02T05:00:00Z&account=1":                         {20, -1, 50},
		"from=2025-12-31T23:00:00Z&to=2026-01-01T00:00:00Z&account=1": {100},
	} {
		var counts []int64
		for _, row := range readAs[[]UsageRow](t, w, "/v1/usage?"+span) {
			counts = append(counts, row.Count)
		}
		require.Equal(t, want, counts, span)
	}
}

func TestUsageIsSummedAsCSV(t *testing.T) {
	w, first, _ := runForRoles(t)
	useForSums(t, w, first)
	ofNone := answerTo(w, firstOperator, http.MethodGet, "/v1/accounts/1/usage?from=2026-01-01&to=2026-01-02&by=day,key&format=csv&key=987", nil)
	require.Equal(t, "day,key,endpoint,found,not_found,failed\n", ofNone.Body.String(), "a key without calls has none")
	answer := answerTo(w, firstOperator, http.MethodGet, "/v1/accounts/1/usage?from=2026-01-01&to=2026-01-02&by=day,key&format=csv", nil)
	require.Equal(t, "text/csv; charset=utf-8", answer.Header().Get("Content-Type"))
	require.Equal(t, "day,key,endpoint,found,not_found,failed\n2026-01-01,1,,10,4,0\n2026-01-01,2,,0,0,1\n2026-01-02,2,,19,0,0\n", answer.Body.String())
}

func TestARangeThatCanNotBeIsRefused(t *testing.T) {
	w, first, clock := runForRoles(t)
	useForSums(t, w, first)
	for query, words := range map[string]string{
		"from=2026-01-02&to=2026-01-01":         "the last day is before the first one",
		"from=2025-01-01&to=2026-02-05":         "a range has at most 400 days",
		"from=0000-01-01&to=9999-12-31":         "a range has at most 400 days",
		"from=2026-02-30":                       "2026-01-31",
		"from=2026-01-01T00:00:00Z":             "2026-01-31",
		"from=9999-01-01":                       "the last day is before the first one",
		"by=hour":                               "by is a list of day, key and endpoint",
		"by=day,day":                            "by is a list of day, key and endpoint",
		"by=day,":                               "by is a list of day, key and endpoint",
		"endpoint=people":                       "endpoint is one of companies, directors, llps, search_companies, search_llps",
		"key=0":                                 "key is a number from 1",
		"format=xml":                            "format is json or csv",
		"format=csv&cursor=1.2.3":               "CSV comes whole",
		"cursor=1":                              "that is no cursor of this list",
		"cursor=1.2.3.4":                        "that is no cursor of this list",
		"cursor=1.2.x":                          "that is no cursor of this list",
		"limit=0":                               "limit is a number",
		"account=2":                             `there is no parameter "account"`,
		"from=2026-01-01&from=2026-01-02&limit": "given twice",
	} {
		answer := answerTo(w, firstOperator, http.MethodGet, "/v1/accounts/1/usage?"+query, nil)
		require.Equal(t, http.StatusBadRequest, answer.Code, query)
		require.Contains(t, strings.ReplaceAll(answer.Body.String(), `\"`, `"`), words, query)
	}
	require.Equal(t, http.StatusNotFound, answerTo(w, firstOperator, http.MethodGet, "/v1/accounts/99/usage", nil).Code)
	longest, err := ParseDays("2025-01-01", "2026-02-04", clock.now())
	require.NoError(t, err)
	require.Equal(t, 400*24*time.Hour, longest.To.Sub(longest.From)+24*time.Hour)
	last, err := ParseDays("", "", time.Date(2026, 3, 1, 23, 59, 0, 0, time.FixedZone("", -3600)))
	require.NoError(t, err)
	require.Equal(t, "2026-02-01 2026-03-02", last.From.Format(time.DateOnly)+" "+last.To.Format(time.DateOnly), "30 days, the last one by UTC")
}

func TestASumReadsOnlyTheRowsOfItsRange(t *testing.T) {
	w, _, _ := runForRoles(t)
	rows, err := w.config.Ledger.Query("EXPLAIN QUERY PLAN "+selectUsageSums, make([]any, 12)...)
	require.NoError(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		plan = append(plan, step)
	}
	require.Contains(t, plan, "SEARCH usage USING PRIMARY KEY (account=? AND hour>? AND hour<?)")
}

func TestEndpointsAreNamed(t *testing.T) {
	require.Equal(t, []string{"companies", "directors", "llps", "search_companies", "search_llps"}, EndpointNames())
	require.Equal(t, charge.SearchLLPs, charge.ParseEndpoint("search_llps"))
}

// TestUsageIsListedAsCSV in the columns of the JSON.
func TestUsageIsListedAsCSV(t *testing.T) {
	w, first, _ := runForRoles(t)
	useForSums(t, w, first)
	answer := answerTo(w, firstOperator, http.MethodGet, "/v1/usage?account=1&from=2026-01-02T05:00:00Z&to=2026-01-03T00:00:00Z&format=csv", nil)
	require.Equal(t, "text/csv; charset=utf-8", answer.Header().Get("Content-Type"))
	require.Equal(t, "hour,account,key,endpoint,outcome,count\n2026-01-02T05:00:00Z,1,2,search_companies,found,20\n"+
		"2026-01-02T06:00:00Z,1,2,search_companies,found,-1\n", answer.Body.String())
	answer = answerTo(w, firstOperator, http.MethodGet, "/v1/accounts/1/usage?from=2026-01-01&to=2026-01-02&format=csv", nil)
	require.Equal(t, "day,key,endpoint,found,not_found,failed\n2026-01-01,,,10,4,1\n2026-01-02,,,19,0,0\n", answer.Body.String(), "no key where it is not asked for")
}

func TestHoursAndAFormatOfUsageThatCanNotBeAreRefused(t *testing.T) {
	w, first, _ := runForRoles(t)
	useForSums(t, w, first)
	for query, words := range map[string]string{
		"from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": "to is before from",
		"format=CSV":      "format is json or csv",
		"from=2026-01-02": "from is a time such as 2026-01-31T00:00:00Z",
	} {
		answer := answerTo(w, firstOperator, http.MethodGet, "/v1/usage?"+query, nil)
		require.Equal(t, http.StatusBadRequest, answer.Code, query)
		require.Contains(t, answer.Body.String(), words, query)
	}
	for _, query := range []string{"format=json", "from=9999-01-01T00:00:00Z", "from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z"} {
		require.Equal(t, http.StatusOK, answerTo(w, firstOperator, http.MethodGet, "/v1/usage?"+query, nil).Code, query)
	}
}
