package handler

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/names"
	"regedge/internal/testkit/searchtest"
)

// connection is a Store on one connection.
type connection struct{ *sqlite3.Conn }

func (c connection) Query(statement string, args []Value) (*Result, error) {
	s, _, err := c.Prepare(statement)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for i, v := range args {
		if v.Kind == Integer {
			err = s.BindInt64(i+1, v.Int)
		} else {
			err = s.BindText(i+1, v.Text)
		}
		if err != nil {
			return nil, err
		}
	}
	result := &Result{Columns: s.ColumnCount()}
	for s.Step() {
		for i := range result.Columns {
			if s.ColumnType(i) == sqlite3.INTEGER {
				result.Values = append(result.Values, Value{Kind: Integer, Int: s.ColumnInt64(i)})
			} else {
				result.Values = append(result.Values, text(s.ColumnText(i)))
			}
		}
	}
	return result, s.Err()
}

// free is a meter that grants everything.
type free struct{}

func (free) Charge(charge.Request) (charge.Verdict, error) {
	return charge.Verdict{RateLimit: 1, RateRemaining: 1, RateReset: 1, CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent}, nil
}

func (free) Void(string) error { return nil }

// isOld reports whether an index of schema version 7 has a term.
func isOld(term string) bool {
	at := strings.IndexAny(term, "=.^_$")
	switch {
	case at < 0:
		return utf8.RuneCountInString(term) < 8
	case term[at] == '.' && at > 0:
		return false
	case term[at] == '.' || term[at] == '^':
		return utf8.RuneCountInString(term) < 5
	}
	return true
}

// TestSearchOfAnOlderIndex searches, as clients do, in a registry of schema version 7, and in
// one of version 8 whose index was not built anew yet.
func TestSearchOfAnOlderIndex(t *testing.T) {
	records := searchtest.Sample(t)
	s := newSearcher(t, records)
	insert := searchtest.Prepare(t, s.conn, `INSERT INTO search_index (rowid, terms) VALUES (?1, ?2)`)
	rows := searchtest.Prepare(t, s.conn, `SELECT place, name FROM search_name`)
	require.NoError(t, s.conn.Exec(`INSERT INTO search_index (search_index) VALUES ('delete-all'); DELETE FROM search_common`))
	for rows.Step() {
		var old []string
		for _, term := range names.Terms(rows.ColumnText(1)) {
			if isOld(term) {
				old = append(old, term)
			}
		}
		require.NoError(t, insert.BindInt64(1, rows.ColumnInt64(0)))
		require.NoError(t, insert.BindText(2, strings.Join(old, " ")))
		require.NoError(t, insert.Exec())
	}
	require.NoError(t, rows.Err())

	h := &Handler{Registry: connection{s.conn}, Meter: free{}, Clock: fixedClock(1), Random: &countingRandom{}, DocsURL: func() string { return "" }}
	agree := func(name string) {
		t.Helper()
		if name = strings.TrimSpace(name); name == "" || utf8.RuneCountInString(name) > maxNameRunes {
			return
		}
		r := h.Serve(&Request{Method: "GET", Target: "/v1/search/companies?limit=7&name=" + url.QueryEscape(name),
			Authorization: []string{"Bearer reg_sandbox_public"}, ClientAddr: func() string { return "192.0.2.1" }})
		require.Equal(t, 200, r.Status, "%q: %s", name, r.Body)
		var body struct{ Data []match }
		require.NoError(t, json.Unmarshal(r.Body, &body))
		require.Equal(t, s.reference.find(name, 7), body.Data, "%q", name)
	}
	for _, change := range []string{`UPDATE search_name SET label = NULL`, `ALTER TABLE search_name DROP COLUMN label`} {
		require.NoError(t, s.conn.Exec(change))
		random := rand.New(rand.NewPCG(9, 9))
		for _, r := range records {
			agree(r.Name)
			agree(vary(random, r.Name))
		}
	}
}
