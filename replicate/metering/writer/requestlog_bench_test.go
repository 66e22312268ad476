package writer

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// fullLog is a ledger whose log of requests has as many as are kept, of 5,000 keys of 1,000 accounts over a
// week. Of 100 requests 12 found nothing, and 2 were over their rate; of a million 10 were without credits.
// Account 1 has the most keys that an owner can make in a week, and so 140,000 requests.
func fullLog(b *testing.B, now time.Time) *sql.DB {
	db, err := schema.OpenFile(filepath.Join(b.TempDir(), "ledger.db"))
	require.NoError(b, err)
	b.Cleanup(func() { db.Close() })
	require.NoError(b, schema.Migrate(b.Context(), db, schema.Ledger))
	const numbers = `WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 5000) `
	for _, statement := range []string{
		`INSERT INTO account (id, name, email, plan, suspended, created_at) ` + numbers + `SELECT value, 'x', '', 'scale', 0, 0 FROM n WHERE value <= 1000`,
		`INSERT INTO api_key (id, account, name, hash, shown, created_at) ` + numbers + `
			SELECT value, iif(value <= 700, 1, 2 + value % 999), 'x', randomblob(32), 'abcd', 0 FROM n`,
	} {
		_, err := db.Exec(statement)
		require.NoError(b, err)
	}
	tx, err := db.Begin()
	require.NoError(b, err)
	insert, err := tx.Prepare(`INSERT INTO request_log (key, id, node, endpoint, status, code, credits) VALUES (?, ?, 'mumbai-1', 'companies', ?, ?, ?)`)
	require.NoError(b, err)
	for i := range keptInAll {
		key, n := i/KeptRequests, i%KeptRequests*(keptInAll/KeptRequests)+i/KeptRequests // by key, as it is stored
		at := now.Add(time.Duration(n-keptInAll) * (keptFor / keptInAll))
		status, code := 200, ""
		switch {
		case n%100_000 == 7:
			status, code = 402, "insufficient_credits"
		case n%100 < 12:
			status, code = 404, "company_not_found"
		case n%100 < 14:
			status, code = 429, "rate_limit_exceeded"
		}
		_, err := insert.Exec(1+key, fmt.Sprintf("%s%016d", firstRequestAt(at), n*7919%keptInAll), status, code, status/200%2)
		require.NoError(b, err)
	}
	require.NoError(b, tx.Commit())
	return db
}

func BenchmarkRequestLog(b *testing.B) {
	db := fullLog(b, time.Now())
	for name, c := range map[string]struct {
		of RequestQuery
		q  ListQuery
	}{
		"newest":              {},
		"frequent code":       {q: ListQuery{Search: "rate_limit_exceeded"}},
		"rare code":           {q: ListQuery{Search: "insufficient_credits"}},
		"no such code":        {q: ListQuery{Search: "none"}},
		"end of an id":        {q: ListQuery{Search: "0000000000007919"}},
		"key":                 {of: RequestQuery{Key: 77}},
		"key, code":           {of: RequestQuery{Key: 77}, q: ListQuery{Search: "none"}},
		"account":             {of: RequestQuery{Account: 5}},
		"account, code":       {of: RequestQuery{Account: 5}, q: ListQuery{Search: "none"}},
		"large account":       {of: RequestQuery{Account: 1}},
		"large account, code": {of: RequestQuery{Account: 1}, q: ListQuery{Search: "none"}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := ListRequests(b.Context(), db, c.of, c.q)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkRequestLogStore stores what the writer stores at a time, and deletes it again, with the index that
// searches read and with one of ids alone.
func BenchmarkRequestLogStore(b *testing.B) {
	now := time.Now()
	db := fullLog(b, now)
	var batch []loggedRequest
	for n := range MaxRequests {
		s := Served{ID: requestID(now, n), Key: int64(1 + n*7919%5000), Endpoint: "companies", Status: 200, Credits: 1}
		if n%100 < 14 {
			s.Status, s.Code, s.Credits = 404, "company_not_found", 0
		}
		batch = append(batch, loggedRequest{s, "mumbai-1"})
	}
	rows, err := json.Marshal(batch)
	require.NoError(b, err)
	for _, columns := range []string{"id, code", "id"} {
		_, err := db.Exec(`DROP INDEX request_log_by_id; VACUUM`)
		require.NoError(b, err)
		var before, after int64
		require.NoError(b, db.QueryRow(`PRAGMA page_count`).Scan(&before))
		_, err = db.Exec(`CREATE INDEX request_log_by_id ON request_log (` + columns + `)`)
		require.NoError(b, err)
		require.NoError(b, db.QueryRow(`PRAGMA page_count`).Scan(&after))
		b.Run(columns, func(b *testing.B) {
			for b.Loop() {
				_, err := db.Exec(storeRequests, string(rows))
				require.NoError(b, err)
				b.StopTimer()
				_, err = db.Exec(`DELETE FROM request_log WHERE id >= ?`, firstRequestAt(now))
				require.NoError(b, err)
				b.StartTimer()
			}
			b.ReportMetric(float64(after-before)*4096/1e6, "MB")
		})
	}
}
