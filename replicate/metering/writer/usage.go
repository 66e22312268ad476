package writer

import (
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/handler/charge"
)

const selectUsage = `SELECT account, key, endpoint, outcome, hour, count FROM usage
	WHERE (?1 = 0 OR account = ?1) AND hour >= ?2 AND hour < ?3 AND count <> 0
	ORDER BY hour, account, key, endpoint, outcome`

// serveUsage answers usage rows in JSON, or in CSV with ?format=csv.
func (w *Writer) serveUsage(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	account, from, to, err := usageQuery(r)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	list, err := collect(r.Context(), w.config.Ledger, selectUsage, []any{account, from, to}, scanUsage)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	rw.Header().Set("Cache-Control", "no-store")
	if r.URL.Query().Get("format") == "csv" {
		writeUsageCSV(rw, list)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	json.NewEncoder(rw).Encode(list)
}

func scanUsage(rows *sql.Rows) (UsageRow, error) {
	var u UsageRow
	var endpoint charge.Endpoint
	var outcome charge.Outcome
	var hour int64
	err := rows.Scan(&u.Account, &u.Key, &endpoint, &outcome, &hour, &u.Count)
	u.Endpoint, u.Outcome = endpoint.String(), outcome.String()
	u.Hour = time.Unix(hour*3600, 0).UTC()
	return u, err
}

// usageQuery reads the query: account 0 for all, and hours from (included) to (excluded).
func usageQuery(r *http.Request) (account, from, to int64, err error) {
	q := r.URL.Query()
	to = 1 << 31
	if s := q.Get("account"); s != "" {
		if account, err = strconv.ParseInt(s, 10, 64); err != nil || account < 1 {
			return 0, 0, 0, fmt.Errorf("%w: account is a number from 1", ErrMalformed)
		}
	}
	for _, bound := range []struct {
		name string
		to   *int64
	}{{"from", &from}, {"to", &to}} {
		s := q.Get(bound.name)
		if s == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("%w: %s is a time such as 2026-01-31T00:00:00Z", ErrMalformed, bound.name)
		}
		*bound.to = t.Unix() / 3600
	}
	return account, from, to, nil
}

func writeUsageCSV(rw http.ResponseWriter, list []UsageRow) {
	rw.Header().Set("Content-Type", "text/csv; charset=utf-8")
	c := csv.NewWriter(rw)
	c.Write([]string{"hour", "account", "key", "endpoint", "outcome", "count"})
	for _, u := range list {
		c.Write([]string{u.Hour.Format(time.RFC3339), decimal(u.Account), decimal(u.Key), u.Endpoint, u.Outcome, decimal(u.Count)})
	}
	c.Flush()
}
