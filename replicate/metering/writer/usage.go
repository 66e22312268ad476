package writer

import (
	"bytes"
	"compress/flate"
	"context"
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

// selectUsage reads the rows after one, which ?4 to ?8 name in their order, and at most ?9 of them.
const selectUsage = `SELECT account, key, endpoint, outcome, hour, count FROM usage
	WHERE (?1 = 0 OR account = ?1) AND hour >= ?2 AND hour < ?3 AND count <> 0 AND (hour, account, key, endpoint, outcome) > (?4, ?5, ?6, ?7, ?8)
	ORDER BY hour, account, key, endpoint, outcome LIMIT ?9`

// usageAtOnce is how many rows are read at once of a libSQL server, which refuses an answer of more than 10 MB: 60,000
// rows. A ledger in a file is read whole, since each part sorts all rows.
const usageAtOnce = 20_000

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
	packed := new(bytes.Buffer)
	compressor, err := flate.NewWriter(packed, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	out, most := begin(compressor), int64(usageAtOnce)
	if w.local {
		most = -1
	}
	after := []any{-1, 0, 0, 0, 0}
	for read := most; read == most; {
		args := append([]any{account, from, to}, after...)
		if read, after, err = w.writeUsage(ctx, out, after, append(args, most)); err != nil {
			return nil, err
		}
	}
	return packed, errors.Join(out.end(), compressor.Close())
}

// writeUsage writes the rows of one query, and returns their number and the last.
func (w *Writer) writeUsage(ctx context.Context, out usageOut, after, args []any) (read int64, last []any, err error) {
	rows, err := w.config.Ledger.QueryContext(ctx, selectUsage, args...)
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	for last = after; rows.Next(); read++ {
		var u UsageRow
		var endpoint charge.Endpoint
		var outcome charge.Outcome
		var hour int64
		if err := rows.Scan(&u.Account, &u.Key, &endpoint, &outcome, &hour, &u.Count); err != nil {
			return 0, nil, err
		}
		u.Endpoint, u.Outcome = endpoint.String(), outcome.String()
		u.Hour = time.Unix(hour*3600, 0).UTC()
		if err := out.put(u); err != nil {
			return 0, nil, err
		}
		last = []any{hour, u.Account, u.Key, int64(endpoint), int64(outcome)}
	}
	return read, last, rows.Err()
}

// usageOut writes rows of usage in one of the formats.
type usageOut interface {
	put(UsageRow) error
	end() error
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
