package writer

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/handler/charge"
)

// Limits of a sum of usage.
const (
	// MaxUsageDays is the longest range: a year, and a month to compare with the one before.
	MaxUsageDays = 400
	// defaultUsageDays is the range when none is chosen.
	defaultUsageDays = 30
	// maxUsageRows bounds an answer that is not in pages: 5 keys at 5 endpoints on 400 days are 10,000 rows.
	maxUsageRows = 100_000
)

// The errors of a range, which are also told to people on pages.
var (
	ErrDay           = errors.New("a day is written as year, month and day: 2026-01-31")
	ErrDaysInverted  = errors.New("the last day is before the first one")
	ErrTooManyDays   = fmt.Errorf("a range has at most %d days", MaxUsageDays)
	ErrUsageTooLarge = fmt.Errorf("that is more than %d rows: choose fewer days", maxUsageRows)
)

// Days is a range of UTC days, both included, each as its midnight.
type Days struct{ From, To time.Time }

// ParseDays reads a range, such as 2026-01-01 and 2026-01-31. Without a last day it ends today, and
// without a first one it has 30 days. It returns ErrDay, ErrDaysInverted or ErrTooManyDays.
func ParseDays(from, to string, now time.Time) (Days, error) {
	today := now.UTC().Truncate(24 * time.Hour)
	last, err := parseDay(to, today)
	if err != nil {
		return Days{}, err
	}
	first, err := parseDay(from, last.AddDate(0, 0, 1-defaultUsageDays))
	switch {
	case err != nil:
		return Days{}, err
	case last.Before(first):
		return Days{}, ErrDaysInverted
	case last.Sub(first) >= MaxUsageDays*24*time.Hour:
		return Days{}, ErrTooManyDays
	}
	return Days{first, last}, nil
}

func parseDay(text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, ErrDay
	}
	return day, nil
}

// hours returns the hours of the days since 1970: the first, and the one after the last.
func (d Days) hours() (from, to int64) {
	return d.From.Unix() / 3600, d.To.Unix()/3600 + 24
}

// What usage can be summed by.
const (
	ByDay      = "day"
	ByKey      = "key"
	ByEndpoint = "endpoint"
)

// UsageSumQuery selects the usage of one account.
type UsageSumQuery struct {
	Account int64
	Days    Days
	// By lists what usage is grouped by: any of ByDay, ByKey and ByEndpoint.
	By []string
	// Key and Endpoint select one of them; 0 selects all.
	Key      int64
	Endpoint charge.Endpoint
}

// UsageSum counts requests by outcome. Day, Key and Endpoint are set when the sum is grouped by them. A
// voided call counts -1 in the hour in which the void was reported, which may be on another day.
type UsageSum struct {
	Day      string `json:"day,omitempty"` // UTC, such as 2026-01-31
	Key      int64  `json:"key,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Found    int64  `json:"found"` // each cost a credit
	NotFound int64  `json:"not_found"`
	Failed   int64  `json:"failed"`

	at usageCursor
}

// UsageSums is a page of sums, in the order of day, key and endpoint.
type UsageSums struct {
	From string   `json:"from"` // the first day
	To   string   `json:"to"`   // the last day
	By   []string `json:"by"`
	Page[UsageSum]
}

// usageCursor is the place of a sum in their order: day since 1970, key and endpoint, 0 where the sum
// is not grouped by it.
type usageCursor [3]int64

func (c usageCursor) String() string { return fmt.Sprintf("%d.%d.%d", c[0], c[1], c[2]) }

func parseUsageCursor(text string) (c usageCursor, err error) {
	if text == "" {
		return usageCursor{-1}, nil
	}
	parts := strings.Split(text, ".")
	for i := range c {
		if len(parts) == len(c) && err == nil {
			c[i], err = strconv.ParseInt(parts[i], 10, 64)
		}
	}
	if err != nil || len(parts) != len(c) {
		return c, fmt.Errorf("%w: that is no cursor of this list", ErrMalformed)
	}
	return c, nil
}

// selectUsageSums reads the rows of an account's hours, which are the first columns of the primary key.
const selectUsageSums = `
SELECT CASE WHEN ?4 THEN hour / 24 ELSE 0 END AS by_day, CASE WHEN ?5 THEN key ELSE 0 END AS by_key,
	CASE WHEN ?6 THEN endpoint ELSE 0 END AS by_endpoint,
	sum(count * (outcome = 1)), sum(count * (outcome = 2)), sum(count * (outcome = 3))
FROM usage WHERE account = ?1 AND hour >= ?2 AND hour < ?3 AND (?7 = 0 OR key = ?7) AND (?8 = 0 OR endpoint = ?8)
GROUP BY 1, 2, 3 HAVING sum(count <> 0) > 0 AND (by_day, by_key, by_endpoint) > (?9, ?10, ?11)
ORDER BY 1, 2, 3 LIMIT ?12`

// SumUsage reads all sums of a query from the ledger. It returns ErrUsageTooLarge for more than 100,000, and ErrTooMany
// when too many are read at once.
func (w *Writer) SumUsage(ctx context.Context, q UsageSumQuery) ([]UsageSum, error) {
	sums, err := w.sumUsage(ctx, q, usageCursor{-1}, maxUsageRows+1)
	if err == nil && len(sums) > maxUsageRows {
		return nil, ErrUsageTooLarge
	}
	return sums, err
}

func (w *Writer) sumUsage(ctx context.Context, q UsageSumQuery, after usageCursor, limit int) ([]UsageSum, error) {
	leave, err := w.sumTurns.Enter(ctx, q.Account)
	if err != nil {
		return nil, err
	}
	defer leave()
	from, to := q.Days.hours()
	day, key, endpoint := slices.Contains(q.By, ByDay), slices.Contains(q.By, ByKey), slices.Contains(q.By, ByEndpoint)
	if day && after[0] > from/24 && after[0] <= to/24 {
		from = after[0] * 24 // the days before were in pages before
	}
	args := []any{q.Account, from, to, day, key, endpoint, q.Key, int64(q.Endpoint), after[0], after[1], after[2], limit}
	return collect(ctx, w.config.Ledger, selectUsageSums, args, func(rows *sql.Rows) (UsageSum, error) {
		var u UsageSum
		err := rows.Scan(&u.at[0], &u.at[1], &u.at[2], &u.Found, &u.NotFound, &u.Failed)
		if day {
			u.Day = time.Unix(u.at[0]*86400, 0).UTC().Format(time.DateOnly)
		}
		u.Key = u.at[1]
		if endpoint {
			u.Endpoint = charge.Endpoint(u.at[2]).String()
		}
		return u, err
	})
}

// usageSumParams are the parameters of a sum of usage.
var usageSumParams = []string{"from", "to", "by", "key", "endpoint", "format", "limit", "cursor"}

// serveUsageSums answers the usage of the account in the path: in JSON a page, in CSV with ?format=csv all.
func (w *Writer) serveUsageSums(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
	id, err := readID("account", p)
	if err == nil {
		_, err = readAccountRow(r.Context(), w.config.Ledger, w.now(), id)
	}
	if err == nil {
		err = w.answerUsageSums(rw, r.WithContext(OfOperator(r.Context())), id)
	}
	if err != nil {
		w.fail(rw, r, err)
	}
}

func (w *Writer) answerUsageSums(rw http.ResponseWriter, r *http.Request, account int64) error {
	given := r.URL.Query()
	q, err := readUsageSumQuery(given, w.config.Now())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	q.Account = account
	if given.Get("format") == "csv" {
		sums, err := w.SumUsage(r.Context(), q)
		if errors.Is(err, ErrUsageTooLarge) {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if err == nil {
			writeUsageSums(rw, sums)
		}
		return err
	}
	page, err := readListQuery(r)
	if err != nil {
		return err
	}
	after, err := parseUsageCursor(page.Cursor)
	if err != nil {
		return err
	}
	sums, err := w.sumUsage(r.Context(), q, after, page.more())
	if err != nil {
		return err
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(rw).Encode(UsageSums{
		From: q.Days.From.Format(time.DateOnly), To: q.Days.To.Format(time.DateOnly), By: q.By,
		Page: pageOf(page, sums, func(u UsageSum) string { return u.at.String() }),
	})
}

func readUsageSumQuery(given url.Values, now time.Time) (q UsageSumQuery, err error) {
	if q.Days, err = ParseDays(given.Get("from"), given.Get("to"), now); err != nil {
		return q, err
	}
	q.By = []string{ByDay}
	if by := given.Get("by"); by != "" {
		q.By = strings.Split(by, ",")
	}
	for i, by := range q.By {
		if !slices.Contains([]string{ByDay, ByKey, ByEndpoint}, by) || slices.Contains(q.By[:i], by) {
			return q, errors.New("by is a list of day, key and endpoint, such as day,key")
		}
	}
	if key := given.Get("key"); key != "" {
		if q.Key, err = strconv.ParseInt(key, 10, 64); err != nil || q.Key < 1 {
			return q, errors.New("key is a number from 1")
		}
	}
	if name := given.Get("endpoint"); name != "" {
		if q.Endpoint = charge.ParseEndpoint(name); q.Endpoint == 0 {
			return q, fmt.Errorf("endpoint is one of %s", strings.Join(EndpointNames(), ", "))
		}
	}
	if format := given.Get("format"); format != "" && format != "json" && format != "csv" {
		return q, errors.New("format is json or csv")
	}
	if given.Get("format") == "csv" && given.Has("cursor") {
		return q, errors.New("CSV comes whole, without a cursor")
	}
	return q, nil
}

// EndpointNames lists the endpoints that usage is counted for.
func EndpointNames() (names []string) {
	for e := charge.Endpoint(1); charge.ParseEndpoint(e.String()) == e; e++ {
		names = append(names, e.String())
	}
	return names
}

func writeUsageSums(rw http.ResponseWriter, sums []UsageSum) {
	rw.Header().Set("Content-Type", "text/csv; charset=utf-8")
	rw.Header().Set("Cache-Control", "no-store")
	c := csv.NewWriter(rw)
	c.Write([]string{"day", "key", "endpoint", "found", "not_found", "failed"})
	for _, u := range sums {
		key := ""
		if u.Key != 0 {
			key = decimal(u.Key)
		}
		c.Write([]string{u.Day, key, u.Endpoint, decimal(u.Found), decimal(u.NotFound), decimal(u.Failed)})
	}
	c.Flush()
}

// UsageSums lists the usage of one account by what the query says.
func (c *Client) UsageSums(ctx context.Context, q UsageSumQuery) ([]UsageSum, error) {
	return everything(ctx, func(ctx context.Context, page ListQuery) (Page[UsageSum], error) {
		v := url.Values{"from": {q.Days.From.Format(time.DateOnly)}, "to": {q.Days.To.Format(time.DateOnly)}}
		if len(q.By) > 0 {
			v.Set("by", strings.Join(q.By, ","))
		}
		if q.Key != 0 {
			v.Set("key", decimal(q.Key))
		}
		if q.Endpoint != 0 {
			v.Set("endpoint", q.Endpoint.String())
		}
		path := page.encode("/v1/accounts/"+decimal(q.Account)+"/usage", v)
		sums, err := call[UsageSums](ctx, c, "sum usage", http.MethodGet, path, nil)
		return sums.Page, err
	})
}
