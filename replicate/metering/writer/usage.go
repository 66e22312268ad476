package writer

import (
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	rows, err := w.config.Ledger.QueryContext(r.Context(), selectUsage, account, from, to)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	defer rows.Close()
	more := rows.Next() // an error of the query comes with its first row
	if err := rows.Err(); err != nil {
		w.fail(rw, r, err)
		return
	}
	rw.Header().Set("Cache-Control", "no-store")
	out := usageOut(&usageJSON{to: rw})
	rw.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("format") == "csv" {
		out = usageCSV{csv.NewWriter(rw)}
		rw.Header().Set("Content-Type", "text/csv; charset=utf-8")
	}
	if err := writeUsage(rows, more, out); err != nil {
		if r.Context().Err() == nil {
			w.config.Logger.Error("an answer breaks off", "route", r.Pattern, "request", rw.Header().Get(RequestIDHeader), "error", err)
		}
		panic(http.ErrAbortHandler) // its client must not take it for whole
	}
}

// usageOut writes rows of usage, between a beginning and an end, in one of the formats.
type usageOut interface {
	begin() error
	put(UsageRow) error
	end() error
}

// writeUsage writes the rows as they are read: those of a large cluster do not fit into memory. more says that there is a
// first one.
func writeUsage(rows *sql.Rows, more bool, out usageOut) error {
	if err := out.begin(); err != nil {
		return err
	}
	for ; more; more = rows.Next() {
		u, err := scanUsage(rows)
		if err == nil {
			err = out.put(u)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), out.end())
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

// usageJSON writes rows as one array.
type usageJSON struct {
	to      io.Writer
	written int
}

func (j *usageJSON) begin() error { return j.write("[") }

func (j *usageJSON) put(u UsageRow) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	separator := ","
	if j.written++; j.written == 1 {
		separator = ""
	}
	return j.write(separator + string(text))
}

func (j *usageJSON) end() error { return j.write("]\n") }

func (j *usageJSON) write(text string) error {
	_, err := io.WriteString(j.to, text)
	return err
}

type usageCSV struct{ *csv.Writer }

func (c usageCSV) begin() error {
	return c.Write([]string{"hour", "account", "key", "endpoint", "outcome", "count"})
}

func (c usageCSV) put(u UsageRow) error {
	return c.Write([]string{u.Hour.Format(time.RFC3339), decimal(u.Account), decimal(u.Key), u.Endpoint, u.Outcome, decimal(u.Count)})
}

func (c usageCSV) end() error {
	c.Flush()
	return c.Error()
}
