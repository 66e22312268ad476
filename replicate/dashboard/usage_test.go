package dashboard_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUsageIsShownForChosenDays(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 1000)
	billing, err := w.client.AddKey(t.Context(), account, "billing")
	require.NoError(t, err)
	site, err := w.client.AddKey(t.Context(), account, `=HYPERLINK("http://evil")`)
	require.NoError(t, err)
	at := func(day string) time.Time {
		moment, err := time.Parse(time.DateOnly, day)
		require.NoError(t, err)
		return moment
	}
	w.used(account, billing.ID, at("2026-09-30").Add(23*time.Hour), 1, 5000)
	w.used(account, billing.ID, at("2026-10-01"), 1, 120)
	w.used(account, billing.ID, at("2026-10-02").Add(23*time.Hour), 2, 7)
	w.used(account, site.ID, at("2026-10-02"), 1, 31)
	w.used(account, site.ID, at("2026-10-03"), 1, 9000)
	w.used(w.account("Other", 0), 99, at("2026-10-01"), 1, 77777)

	p := b.get("/usage?from=2026-10-01&to=2026-10-02")
	require.Equal(t, http.StatusOK, p.StatusCode)
	require.Contains(t, p.text(), `aria-label="Calls a day from 1 Oct 2026 to 2 Oct 2026: 158, at most 120 on a day."`)
	require.Contains(t, p.text(), "Found: 151")
	require.Contains(t, p.text(), `<tr><th scope="row">billing</th><td class="number">120</td><td class="number">7</td><td class="number">0</td></tr>`)
	require.Contains(t, p.text(), `<tr><th scope="row">companies</th><td class="number">151</td><td class="number">7</td>`)
	require.Contains(t, p.text(), "UTC day, from midnight to midnight in UTC")
	require.NotContains(t, p.body, "77,777")
	require.Contains(t, b.get(fmt.Sprint("/usage?from=2026-10-01&to=2026-10-02&key=", site.ID)).text(), "Found: 31")
	require.Contains(t, b.get("/usage?endpoint=llps").text(), "There were no such calls in these days.")
	require.Contains(t, b.get("/usage?from=2025-10-21&to=2026-10-20").text(), "Calls a week")

	p = b.get(fmt.Sprint("/usage?from=2026-10-01&to=2026-10-02&endpoint=companies&key=", site.ID))
	for words, days := range map[string]int{"7 days": 7, "30 days": 30, "90 days": 90} {
		link := regexp.MustCompile(`href="([^"]+)">(?:Last )?` + words + `<`).FindStringSubmatch(p.text())
		require.NotNil(t, link, "%s: %s", words, p.text())
		to, err := time.Parse(time.DateOnly, regexp.MustCompile(`max="(\S+)"`).FindStringSubmatch(p.body)[1])
		require.NoError(t, err)
		shown := b.get(link[1]).text()
		require.Contains(t, shown, `name="from" value="`+to.AddDate(0, 0, 1-days).Format(time.DateOnly)+`"`, link[1])
		require.Contains(t, shown, fmt.Sprintf(`<option value="%d" selected>`, site.ID))
		require.Contains(t, shown, `<option selected>companies`)
	}
	file := regexp.MustCompile(`href="(/usage\.csv[^"]*)"`).FindStringSubmatch(p.text())
	require.NotNil(t, file)
	require.Equal(t, `attachment; filename="usage-2026-10-01-to-2026-10-02.csv"`, b.get(file[1]).Header.Get("Content-Disposition"), "of what is shown")

	p = b.get("/usage.csv?from=2026-10-01&to=2026-10-02")
	require.Equal(t, "text/csv; charset=utf-8", p.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="usage-2026-10-01-to-2026-10-02.csv"`, p.Header.Get("Content-Disposition"))
	rows, err := csv.NewReader(strings.NewReader(p.body)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"utc_day", "key", "key_name", "endpoint", "found", "not_found", "failed"},
		{"2026-10-01", fmt.Sprint(billing.ID), "billing", "companies", "120", "0", "0"},
		{"2026-10-02", fmt.Sprint(billing.ID), "billing", "companies", "0", "7", "0"},
		{"2026-10-02", fmt.Sprint(site.ID), `'=HYPERLINK("http://evil")`, "companies", "31", "0", "0"},
	}, rows)

	o := w.operator()
	path := fmt.Sprintf("/accounts/%d/usage", account)
	require.Contains(t, o.get(path+"?from=2026-10-01&to=2026-10-02").text(), "Found: 151")
	require.Contains(t, o.get(path+".csv").body, "utc_day")
	require.Equal(t, http.StatusNotFound, b.get(path).StatusCode, "owners see their own")
	require.Equal(t, http.StatusNotFound, o.get("/accounts/99/usage").StatusCode)
	require.Equal(t, http.StatusNotFound, o.get("/accounts/99/usage.csv").StatusCode)
}

func TestKeysWithTheMostCallsAreListed(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 1000)
	for key := range 52 {
		w.used(account, int64(1000+key), w.clock(), 1, 1+key)
	}
	p := b.get("/usage")
	require.Contains(t, p.text(), "These have the most calls; 2 more keys are in the CSV.")
	require.Contains(t, p.text(), "key 1051<")
	require.Contains(t, p.text(), "key 1002<")
	require.NotContains(t, p.text(), "key 1001<")
	w.used(account, 1001, w.clock(), 2, 100)
	require.Contains(t, b.get("/usage").text(), "key 1001<", "calls that found nothing count as well")
}

func TestARangeOfUsageThatCanNotBeIsSaidInWords(t *testing.T) {
	w := newWorld(t)
	b, _ := w.owner("Acme", 0)
	other, err := w.client.AddKey(t.Context(), w.account("Other", 0), "theirs")
	require.NoError(t, err)
	for query, words := range map[string]string{
		"from=2026-10-02&to=2026-10-01":               "The last day is before the first one.",
		"from=2024-10-02&to=2026-10-01":               "A range has at most 400 days.",
		"from=yesterday":                              "A day is written as year, month and day: 2026-01-31.",
		"to=" + url.QueryEscape(`"><script>alert(1)`): "A day is written as year, month and day: 2026-01-31.",
	} {
		p := b.get("/usage?" + query)
		require.Equal(t, http.StatusBadRequest, p.StatusCode, query)
		require.Contains(t, p.text(), words+" These are the last days.", query)
		require.NotContains(t, p.body, "<script>alert")
		if from, typed := strings.CutPrefix(query, "from="); typed {
			from, _, _ = strings.Cut(from, "&")
			require.Contains(t, p.body, `name="from" value="`+from+`"`, "what was typed is there to be mended")
		}
		p = b.get("/usage.csv?" + query)
		require.Equal(t, http.StatusBadRequest, p.StatusCode, query)
		require.Contains(t, p.text(), words, query)
	}
	for _, query := range []string{fmt.Sprint("key=", other.ID), "key=x", "endpoint=people"} {
		require.Equal(t, http.StatusNotFound, b.get("/usage?"+query).StatusCode, query)
		require.Equal(t, http.StatusNotFound, b.get("/usage.csv?"+query).StatusCode, query)
	}
}

// TestACSVThatIsTooLargeIsRefusedInWords, not with a half of it.
func TestACSVThatIsTooLargeIsRefusedInWords(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	w.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
		INSERT INTO usage (account, key, hour, endpoint, outcome, count) SELECT ?, 1000 + i, ?, 1, 1, 1 FROM n`, account, w.clock().Unix()/3600)
	p := b.get("/usage.csv")
	require.Equal(t, http.StatusBadRequest, p.StatusCode)
	require.Contains(t, p.text(), "That is more than 100000 rows: choose fewer days.")
}

// TestTheChosenKeyStaysInTheForm, however many were made and revoked since.
func TestTheChosenKeyStaysInTheForm(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 0)
	for n := range 60 {
		w.exec(`INSERT INTO api_key (account, name, hash, shown, created_at, revoked_at) VALUES (?, ?, ?, 'abcd', 1, 2)`, account, fmt.Sprint("old key ", n), []byte{byte(n)})
	}
	require.NotContains(t, b.get("/usage").text(), "old key 0<")
	require.Contains(t, b.seen.text(), "old key 59<")
	require.Contains(t, b.get("/usage?key=1").text(), "old key 0<")
	require.Regexp(t, `<option value="1" selected`, b.seen.body)
}
