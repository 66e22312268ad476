package writer

import (
	"encoding/csv"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// largestWrite is an answer that remembers its largest part.
type largestWrite struct {
	*httptest.ResponseRecorder
	bytes int
}

func (l *largestWrite) Write(p []byte) (int, error) {
	l.bytes = max(l.bytes, len(p))
	return l.ResponseRecorder.Write(p)
}

// TestUsageIsWrittenAsItIsRead: the rows of all accounts would take the memory of the writer, with which edges sync.
func TestUsageIsWrittenAsItIsRead(t *testing.T) {
	w, _ := openUnrun(t)
	const rows = 5000
	_, err := w.config.Ledger.Exec(`WITH n (hour) AS (SELECT 1 UNION ALL SELECT hour + 1 FROM n WHERE hour < ?)
		INSERT INTO usage (account, key, hour, endpoint, outcome, count) SELECT 1, 1, hour, 1, 1, 7 FROM n`, rows)
	require.NoError(t, err)
	for _, format := range []string{"json", "csv"} {
		r := httptest.NewRequest(http.MethodGet, "/v1/usage?format="+format, nil)
		r.Header.Set("Authorization", "Bearer "+firstOperator)
		answer := &largestWrite{ResponseRecorder: httptest.NewRecorder()}
		w.Handler().ServeHTTP(answer, r)
		require.Equal(t, http.StatusOK, answer.Code)
		require.Equal(t, rows, strings.Count(answer.Body.String(), "1970-"), format)
		require.Less(t, answer.bytes, answer.Body.Len()/10, format)
	}
}

// TestUsageThatBreaksOffIsNotTakenForWhole: it is what customers are charged by.
func TestUsageThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	w, _ := openUnrun(t)
	db := w.config.Ledger
	for _, out := range []usageOut{&usageJSON{to: io.Discard}, usageCSV{csv.NewWriter(io.Discard)}} {
		rows, err := db.Query(`SELECT 1, 1, 1, 1, 1, abs(value) FROM (SELECT 1 AS value UNION ALL SELECT -9223372036854775808)`)
		require.NoError(t, err)
		require.ErrorContains(t, writeUsage(rows, rows.Next(), out), "overflow")
		require.NoError(t, rows.Close())
	}
	put := func(value string) {
		_, err := db.Exec(`DROP VIEW IF EXISTS usage; CREATE VIEW usage AS SELECT 1 AS account, 1 AS key, 1 AS hour, 1 AS endpoint, ` + value + ` AS outcome, 1 AS count`)
		require.NoError(t, err)
	}
	_, err := db.Exec(`ALTER TABLE usage RENAME TO away`)
	require.NoError(t, err)
	put(`abs(-9223372036854775808)`)
	answer := answerTo(w, firstOperator, http.MethodGet, "/v1/usage", nil)
	require.Equal(t, http.StatusInternalServerError, answer.Code, "nothing was written")
	put(`'of another version'`)
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { answerTo(w, firstOperator, http.MethodGet, "/v1/usage", nil) }, "what was begun is cut off")
}
