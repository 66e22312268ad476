package dashboard

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"regedge/handler/charge"
	"regedge/replicate/metering/writer"
)

// maxUsageKeys bounds how many keys a page of usage lists: those with the most calls.
const maxUsageKeys = 50

// usageData is the page of an account's usage in a range of days.
type usageData struct {
	Account   writer.Account
	Path      string // of this page, without a query
	From, To  string // such as 2026-01-31, or as they were typed
	Today     string
	Key       int64        // 0 for all
	Endpoint  string       // empty for all
	Query     template.URL // what is shown, for the CSV
	Keys      []keyChoice
	Endpoints []string
	Ranges    []usageRange
	Chart     chart
	ByKey     []usageLine
	MoreKeys  int64 // that are not listed
	// ByEndpoint has those that were called.
	ByEndpoint []usageLine
	MaxDays    int
}

// keyChoice is a key in the form.
type keyChoice struct {
	ID    int64
	Words string
}

// chosenKey reads which key of an account the query selects, 0 for all; a key of another account is not found. It lists
// keys for the form: active ones, the newest maxUsageKeys, and the one that is selected.
func (d *Dashboard) chosenKey(v *visit, account int64) (selected int64, list []keyChoice, err error) {
	ids, err := d.newestKeys(v.r.Context(), account, maxUsageKeys)
	if err != nil {
		return 0, nil, err
	}
	given := v.r.URL.Query().Get("key")
	if given != "" {
		selected, _ = strconv.ParseInt(given, 10, 64)
		if !slices.Contains(ids, selected) {
			ids = append(ids, selected)
		}
	}
	names, err := d.readKeyWords(v.r.Context(), account, ids)
	if err == nil && given != "" && names[selected] == "" {
		err = errMissing
	}
	for _, id := range ids {
		list = append(list, keyChoice{id, names[id]})
	}
	return selected, list, err
}

// usageRange is a link to another range.
type usageRange struct {
	Query template.URL
	Words string
}

// usageLine is a row of a table of calls.
type usageLine struct {
	Words string
	writer.UsageSum
}

// usageAsked holds the parameters of a request for the page or the CSV.
type usageAsked struct {
	query writer.UsageSumQuery
	keys  []keyChoice
}

// readUsageAsked reads the query. For an invalid range it returns a message, and the last days instead;
// a key of another account is not found.
func (d *Dashboard) readUsageAsked(v *visit, account int64) (asked usageAsked, words string, err error) {
	given := v.r.URL.Query()
	asked = usageAsked{query: writer.UsageSumQuery{Account: account}}
	if asked.query.Days, err = writer.ParseDays(given.Get("from"), given.Get("to"), d.now()); err != nil {
		words = sentence(err)
		if asked.query.Days, err = writer.ParseDays("", "", d.now()); err != nil {
			return asked, "", err
		}
	}
	if asked.query.Key, asked.keys, err = d.chosenKey(v, account); err != nil {
		return asked, "", err
	}
	if name := given.Get("endpoint"); name != "" {
		if asked.query.Endpoint = charge.ParseEndpoint(name); asked.query.Endpoint == 0 {
			return asked, "", errMissing
		}
	}
	return asked, words, nil
}

// sentence is an error as a sentence for people.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// encode writes a range, with what is selected, as the query of a URL.
func (a usageAsked) encode(days writer.Days) template.URL {
	q := url.Values{"from": {days.From.Format(time.DateOnly)}, "to": {days.To.Format(time.DateOnly)}}
	if a.query.Key != 0 {
		q.Set("key", strconv.FormatInt(a.query.Key, 10))
	}
	if a.query.Endpoint != 0 {
		q.Set("endpoint", a.query.Endpoint.String())
	}
	return template.URL(q.Encode())
}

// sums reads the usage that was asked for, by one or more of the writer's columns.
func (d *Dashboard) sums(ctx context.Context, asked usageAsked, by ...string) ([]writer.UsageSum, error) {
	asked.query.By = by
	return d.config.Writer.SumUsage(ctx, asked.query)
}

func (d *Dashboard) usagePage(v *visit) (answer, error) {
	return d.usageOf(v, v.user.Account, "/usage")
}

func (d *Dashboard) accountUsagePage(v *visit) (answer, error) {
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	return d.usageOf(v, id, accountPath(id)+"/usage")
}

func (d *Dashboard) usageOf(v *visit, account int64, path string) (answer, error) {
	a, err := d.client.Account(v.r.Context(), account)
	if err != nil {
		return answer{}, err
	}
	asked, words, err := d.readUsageAsked(v, account)
	if err != nil {
		return answer{}, err
	}
	data := usageData{
		Account: a, Path: path, Today: d.now().Format(time.DateOnly), MaxDays: writer.MaxUsageDays,
		Key: asked.query.Key, Query: asked.encode(asked.query.Days), Endpoints: writer.EndpointNames(),
	}
	data.From, data.To = asked.query.Days.From.Format(time.DateOnly), asked.query.Days.To.Format(time.DateOnly)
	if words != "" {
		given := v.r.URL.Query()
		data.From, data.To = printable(given.Get("from"), len(time.DateOnly)), printable(given.Get("to"), len(time.DateOnly))
		words += " These are the last days."
	}
	if asked.query.Endpoint != 0 {
		data.Endpoint = asked.query.Endpoint.String()
	}
	data.Keys = asked.keys
	data.Ranges = d.usageRanges(asked)
	page := answer{page: "usage", title: "Usage", error: words, data: &data}
	if words != "" {
		page.status = http.StatusBadRequest
	}
	return page, d.readUsage(v.r.Context(), asked, &data)
}

// usageRanges are links to the ranges that are asked for most.
func (d *Dashboard) usageRanges(asked usageAsked) (list []usageRange) {
	today := d.now().Truncate(24 * time.Hour)
	for _, r := range []struct {
		days  int
		words string
	}{{7, "7 days"}, {30, "30 days"}, {90, "90 days"}, {365, "365 days"}} {
		list = append(list, usageRange{asked.encode(writer.Days{From: today.AddDate(0, 0, 1-r.days), To: today}), r.words})
	}
	return list
}

// readUsage fills in the chart and the tables.
func (d *Dashboard) readUsage(ctx context.Context, asked usageAsked, data *usageData) error {
	byDay, err := d.sums(ctx, asked, writer.ByDay)
	if err != nil {
		return err
	}
	days := daysBetween(asked.query.Days.From, asked.query.Days.To)
	at := map[string]*dayCalls{}
	for i := range days {
		at[days[i].Day.Format(time.DateOnly)] = &days[i]
	}
	for _, u := range byDay {
		day := at[u.Day]
		day.add(charge.Found, u.Found)
		day.add(charge.NotFound, u.NotFound)
		day.add(charge.Failed, u.Failed)
	}
	data.Chart = newRangeChart(days)
	byKey, err := d.sums(ctx, asked, writer.ByKey)
	if err != nil {
		return err
	}
	for _, u := range byKey {
		data.ByKey = append(data.ByKey, usageLine{"", u})
	}
	slices.SortStableFunc(data.ByKey, func(a, b usageLine) int { return cmp.Compare(b.calls(), a.calls()) })
	if more := len(data.ByKey) - maxUsageKeys; more > 0 {
		data.ByKey, data.MoreKeys = data.ByKey[:maxUsageKeys], int64(more)
	}
	names, err := d.readKeyWords(ctx, asked.query.Account, keysOf(data.ByKey, func(l usageLine) int64 { return l.Key }))
	if err != nil {
		return err
	}
	for i := range data.ByKey {
		l := &data.ByKey[i]
		l.Words = cmp.Or(names[l.Key], keyWords(l.Key, "", ""))
	}
	byEndpoint, err := d.sums(ctx, asked, writer.ByEndpoint)
	for _, u := range byEndpoint {
		data.ByEndpoint = append(data.ByEndpoint, usageLine{u.Endpoint, u})
	}
	return err
}

// keysOf lists the keys of rows, each once.
func keysOf[R any](rows []R, key func(R) int64) []int64 {
	keys := map[int64]bool{}
	for _, row := range rows {
		keys[key(row)] = true
	}
	return slices.Collect(maps.Keys(keys))
}

func (l usageLine) calls() int64 { return l.Found + l.NotFound + l.Failed }

func (d *Dashboard) usageCSV(v *visit) (answer, error) {
	return d.writeUsageCSV(v, v.user.Account)
}

func (d *Dashboard) accountUsageCSV(v *visit) (answer, error) {
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	return d.writeUsageCSV(v, id)
}

// writeUsageCSV answers with the calls of a range by day, key and endpoint.
func (d *Dashboard) writeUsageCSV(v *visit, account int64) (answer, error) {
	if _, err := d.client.Account(v.r.Context(), account); err != nil {
		return answer{}, err
	}
	asked, words, err := d.readUsageAsked(v, account)
	if err == nil && words != "" {
		err = &refusal{http.StatusBadRequest, "Not these days", words}
	}
	if err != nil {
		return answer{}, err
	}
	sums, err := d.sums(v.r.Context(), asked, writer.ByDay, writer.ByKey, writer.ByEndpoint)
	if errors.Is(err, writer.ErrUsageTooLarge) {
		err = &refusal{http.StatusBadRequest, "Too much for one file", sentence(err)}
	}
	if err != nil {
		return answer{}, err
	}
	names, err := d.readKeyWords(v.r.Context(), account, keysOf(sums, func(u writer.UsageSum) int64 { return u.Key }))
	if err != nil {
		return answer{}, err
	}
	days := asked.query.Days
	header := v.w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	header.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="usage-%s-to-%s.csv"`, days.From.Format(time.DateOnly), days.To.Format(time.DateOnly)))
	c := csv.NewWriter(v.w)
	c.Write([]string{"utc_day", "key", "key_name", "endpoint", "found", "not_found", "failed"})
	for _, u := range sums {
		c.Write([]string{
			u.Day, strconv.FormatInt(u.Key, 10), inert(names[u.Key]), u.Endpoint,
			strconv.FormatInt(u.Found, 10), strconv.FormatInt(u.NotFound, 10), strconv.FormatInt(u.Failed, 10),
		})
	}
	c.Flush()
	return answer{}, nil
}
