package dashboard

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/replicate/metering/writer"
)

// entry is a row of an account's credits: what came in or went out, or what one key
// spent on one UTC day.
type entry struct {
	At      time.Time
	Kind    string
	Key     string // the key that spent, empty for other kinds
	Amount  int64  // negative for what went out
	Note    string
	Balance int64 // after it
}

// statement is an account's credit entries of a period, oldest first.
type statement struct {
	Opening, Closing int64
	Entries          []entry
}

// selectCredits reads, in one snapshot, all entries since a time and the current balance. Spending is summed by
// day and key from usage. Usage also has charges that were not debited: the ledger notes their number in an entry
// whose amount is 0.
const selectCredits = `
SELECT at, kind, 0, '', '', amount, note FROM credit_entry
	WHERE account = ?1 AND kind <> 'spent' AND at >= ?2 AND (amount <> 0 OR note <> '')
UNION ALL
SELECT at, 'not charged', 0, '', '', CAST(note AS INTEGER) * iif(note LIKE '% taken back', -1, 1), note FROM credit_entry
	WHERE account = ?1 AND kind = 'spent' AND at >= ?2 AND amount = 0 AND note LIKE '% charges beyond the lease of %'
UNION ALL
SELECT days.day * 86400000 + 86399999, 'spent', days.key, coalesce(k.name, ''), coalesce(k.shown, ''), -days.count, ''
	FROM (SELECT hour / 24 AS day, key, sum(count) AS count FROM usage
		WHERE account = ?1 AND hour >= ?3 AND outcome = ?4 GROUP BY 1, 2 HAVING sum(count) <> 0) days
	LEFT JOIN api_key k ON k.id = days.key
UNION ALL
SELECT 0, 'balance', 0, '', '', bought + compensated - spent - lost, '' FROM account WHERE id = ?1`

// readCredits reads an account's credits between two days. It computes balances backwards from the
// current one, so the last line always equals that.
func (d *Dashboard) readCredits(ctx context.Context, account int64, from, to time.Time) (statement, error) {
	leave, err := d.turns.Enter(ctx, account)
	if err != nil {
		return statement{}, err
	}
	defer leave()
	rows, err := d.config.Ledger.QueryContext(ctx, selectCredits, account, from.UnixMilli(), from.Unix()/3600, charge.Found)
	if err != nil {
		return statement{}, err
	}
	defer rows.Close()
	var all []entry
	var balance int64
	for rows.Next() {
		e, isBalance, err := scanEntry(rows)
		if err != nil {
			return statement{}, err
		}
		if isBalance {
			balance = e.Amount
		} else {
			all = append(all, e)
		}
	}
	return balanced(all, balance, to), rows.Err()
}

func scanEntry(rows interface{ Scan(...any) error }) (e entry, isBalance bool, err error) {
	var at, key int64
	var name, shown string
	err = rows.Scan(&at, &e.Kind, &key, &name, &shown, &e.Amount, &e.Note)
	e.At = time.UnixMilli(at).UTC()
	if key != 0 {
		e.Key = keyWords(key, name, shown)
	}
	return e, e.Kind == "balance", err
}

// keyWords names a key by its name, or else by its first characters.
func keyWords(id int64, name, shown string) string {
	switch {
	case name != "":
		return name
	case shown != "":
		return ident.LivePrefix + shown + "…"
	}
	return "key " + strconv.FormatInt(id, 10)
}

// balanced sorts entries, sets the balance after each, and drops those from a time on.
func balanced(all []entry, balance int64, to time.Time) statement {
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key))
	})
	for i := len(all) - 1; i >= 0; i-- {
		all[i].Balance = balance
		balance -= all[i].Amount
	}
	s := statement{Opening: balance, Closing: balance}
	for _, e := range all {
		if e.At.Before(to) {
			s.Entries, s.Closing = append(s.Entries, e), e.Balance
		}
	}
	return s
}

type creditsData struct {
	statement
	Account                 writer.Account
	Path                    string // of this page, without a month
	Month, Earlier, Later   string // such as 2026-10; empty for none
	MonthWords              string
	Bought, Spent, Adjusted int64 // sums of the month
}

// Newest lists the entries newest first.
func (c *creditsData) Newest() []entry {
	list := slices.Clone(c.Entries)
	slices.Reverse(list)
	return list
}

const monthForm = "2006-01"

// creditsMonth parses the requested month, the current one by default. It must lie between
// the account's first month and the current one.
func (d *Dashboard) creditsMonth(v *visit, a writer.Account) (time.Time, error) {
	now := d.now()
	current := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	asked := v.r.URL.Query().Get("month")
	if asked == "" {
		return current, nil
	}
	month, err := time.Parse(monthForm, asked)
	if err != nil || month.After(current) || month.Format(monthForm) < a.Created.Format(monthForm) {
		return time.Time{}, errMissing
	}
	return month, nil
}

func (d *Dashboard) creditsPage(v *visit) (answer, error) {
	return d.creditsOf(v, v.user.Account, "/credits")
}

func (d *Dashboard) creditsOf(v *visit, account int64, path string) (answer, error) {
	a, err := d.client.Account(v.r.Context(), account)
	if err != nil {
		return answer{}, err
	}
	month, err := d.creditsMonth(v, a)
	if err != nil {
		return answer{}, err
	}
	next := month.AddDate(0, 1, 0)
	data := creditsData{Account: a, Path: path, Month: month.Format(monthForm), MonthWords: month.Format("January 2006")}
	if data.statement, err = d.readCredits(v.r.Context(), account, month, next); err != nil {
		return answer{}, err
	}
	data.sum()
	if data.Month > a.Created.Format(monthForm) {
		data.Earlier = month.AddDate(0, -1, 0).Format(monthForm)
	}
	if !next.After(d.now()) {
		data.Later = next.Format(monthForm)
	}
	return answer{page: "credits", title: "Credits in " + data.MonthWords, data: &data}, nil
}

func (c *creditsData) sum() {
	for _, e := range c.Entries {
		switch e.Kind {
		case writer.Bought:
			c.Bought += e.Amount
		case writer.Spent:
			c.Spent -= e.Amount
		default:
			c.Adjusted += e.Amount
		}
	}
}

func (d *Dashboard) creditsCSV(v *visit) (answer, error) {
	return d.writeCreditsCSV(v, v.user.Account)
}

// writeCreditsCSV answers with one month, or with everything for month=all.
func (d *Dashboard) writeCreditsCSV(v *visit, account int64) (answer, error) {
	a, err := d.client.Account(v.r.Context(), account)
	if err != nil {
		return answer{}, err
	}
	from, to, name := time.Unix(0, 0), d.now().AddDate(1, 0, 0), "all"
	if v.r.URL.Query().Get("month") != "all" {
		if from, err = d.creditsMonth(v, a); err != nil {
			return answer{}, err
		}
		to, name = from.AddDate(0, 1, 0), from.Format(monthForm)
	}
	s, err := d.readCredits(v.r.Context(), account, from, to)
	if err != nil {
		return answer{}, err
	}
	header := v.w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	header.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="credits-%s.csv"`, name))
	writeCSV(v.w, s)
	return answer{}, nil
}

func writeCSV(w http.ResponseWriter, s statement) {
	c := csv.NewWriter(w)
	c.Write([]string{"date", "kind", "key", "amount", "balance", "note"})
	for _, e := range s.Entries {
		c.Write([]string{
			e.At.Format(time.DateOnly), e.Kind, inert(e.Key),
			strconv.FormatInt(e.Amount, 10), strconv.FormatInt(e.Balance, 10), inert(e.Note),
		})
	}
	c.Flush()
}

// inert keeps a spreadsheet from evaluating a text as a formula.
func inert(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
