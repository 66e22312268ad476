package writer

import (
	"bytes"
	"compress/flate"
	"context"
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
	format, begin := "application/json", newUsageJSON
	if r.URL.Query().Get("format") == "csv" {
		format, begin = "text/csv; charset=utf-8", newUsageCSV
	}
	answer, err := w.packUsage(r.Context(), begin, account, from, to)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	rw.Header().Set("Cache-Control", "no-store")
	rw.Header().Set("Content-Type", format)
	_, _ = io.Copy(rw, flate.NewReader(answer)) // fails only if the client has gone
}

// packUsage reads usage rows, and returns the answer with them compressed, to a tenth or less: uncompressed, the answer
// for a large cluster would not fit into memory. Nothing is sent while rows are read. Otherwise a slow client would
// keep the ledger's log from being emptied, and an error could not have a status of its own.
func (w *Writer) packUsage(ctx context.Context, begin func(io.Writer) usageOut, account, from, to int64) (*bytes.Buffer, error) {
	rows, err := w.config.Ledger.QueryContext(ctx, selectUsage, account, from, to)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	packed := new(bytes.Buffer)
	compressor, err := flate.NewWriter(packed, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	out := begin(compressor)
	for rows.Next() {
		u, err := scanUsage(rows)
		if err == nil {
			err = out.put(u)
		}
		if err != nil {
			return nil, err
		}
	}
	return packed, errors.Join(rows.Err(), out.end(), compressor.Close())
}

// usageOut writes rows of usage in one of the formats.
type usageOut interface {
	put(UsageRow) error
	end() error
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
	switch format := q.Get("format"); {
	case to < from:
		return 0, 0, 0, fmt.Errorf("%w: to is before from", ErrMalformed)
	case format != "" && format != "json" && format != "csv":
		return 0, 0, 0, fmt.Errorf("%w: format is json or csv", ErrMalformed)
	}
	return account, from, to, nil
}

// usageJSON writes rows as one array.
type usageJSON struct {
	to      io.Writer
	written int // rows
}

func newUsageJSON(to io.Writer) usageOut { return &usageJSON{to: to} }

func (j *usageJSON) put(u UsageRow) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	before := ","
	if j.written++; j.written == 1 {
		before = "["
	}
	_, err = j.to.Write(append([]byte(before), text...))
	return err
}

func (j *usageJSON) end() error {
	text := "]\n"
	if j.written == 0 {
		text = "[]\n"
	}
	_, err := io.WriteString(j.to, text)
	return err
}

// usageCSV writes rows below a header. The first error of a part stays for end.
type usageCSV struct{ *csv.Writer }

func newUsageCSV(to io.Writer) usageOut {
	c := usageCSV{csv.NewWriter(to)}
	_ = c.Write([]string{"hour", "account", "key", "endpoint", "outcome", "count"})
	return c
}

func (c usageCSV) put(u UsageRow) error {
	return c.Write([]string{u.Hour.Format(time.RFC3339), decimal(u.Account), decimal(u.Key), u.Endpoint, u.Outcome, decimal(u.Count)})
}

func (c usageCSV) end() error {
	c.Flush()
	return c.Error()
}
