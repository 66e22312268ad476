package writer

import (
	"compress/flate"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowReader is an answer whose client has not taken the first part yet.
type slowReader struct {
	*httptest.ResponseRecorder
	asked func() // at the first part
}

func (s *slowReader) Write(p []byte) (int, error) {
	if s.asked != nil {
		s.asked()
		s.asked = nil
	}
	return s.ResponseRecorder.Write(p)
}

// TestUsageHoldsNeitherMemoryNorTheLedger: the rows of all accounts would take the memory of the writer, with which edges
// sync, and a client that takes its time would keep the ledger's log from being emptied.
func TestUsageHoldsNeitherMemoryNorTheLedger(t *testing.T) {
	w, _ := openUnrun(t)
	const rows = 5000
	_, err := w.config.Ledger.Exec(`WITH n (hour) AS (SELECT 1 UNION ALL SELECT hour + 1 FROM n WHERE hour < ?)
		INSERT INTO usage (account, key, hour, endpoint, outcome, count) SELECT hour % 7 + 1, 1, hour, 1, 1, 7 FROM n`, rows)
	require.NoError(t, err)
	for _, format := range []string{"json", "csv"} {
		r := httptest.NewRequest(http.MethodGet, "/v1/usage?format="+format, nil)
		r.Header.Set("Authorization", "Bearer "+firstOperator)
		looked := false
		answer := &slowReader{httptest.NewRecorder(), func() {
			var busy, log, moved int
			require.NoError(t, w.config.Ledger.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved))
			require.Zero(t, busy, "somebody reads")
			looked = true
		}}
		w.Handler().ServeHTTP(answer, r)
		require.Equal(t, http.StatusOK, answer.Code)
		require.True(t, looked)
		require.Equal(t, rows, strings.Count(answer.Body.String(), "1970-"), format)
	}
	for _, begin := range []func(to io.Writer) usageOut{newUsageJSON, newUsageCSV} {
		packed, err := w.packUsage(t.Context(), begin, 0, 0, 1<<31)
		require.NoError(t, err)
		held := packed.Cap()
		whole, err := io.Copy(io.Discard, flate.NewReader(packed))
		require.NoError(t, err)
		require.Less(t, held, int(whole)/5)
	}
}

// TestUsageThatBreaksOffIsNotTakenForWhole: it is what customers are charged by.
func TestUsageThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	w, _ := openUnrun(t)
	_, err := w.config.Ledger.Exec(`ALTER TABLE usage RENAME TO away`)
	require.NoError(t, err)
	for what, broken := range map[string]string{
		"an error of the database": "abs(-9223372036854775808)",
		"a row of another version": "'new'",
	} {
		_, err := w.config.Ledger.Exec(`DROP VIEW IF EXISTS usage; CREATE VIEW usage AS SELECT 1 AS account, 1 AS key, 1 AS hour, 1 AS endpoint, 1 AS outcome, 1 AS count
			UNION ALL SELECT 1, 1, 2, 1, ` + broken + `, 1`)
		require.NoError(t, err)
		for _, format := range []string{"json", "csv"} {
			answer := answerTo(w, firstOperator, http.MethodGet, "/v1/usage?format="+format, nil)
			require.Equal(t, http.StatusInternalServerError, answer.Code, "%s, %s", what, format)
			require.NotContains(t, answer.Body.String(), "1970-")
		}
	}
}
