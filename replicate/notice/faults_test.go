package notice_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	faulty "regedge/internal/testkit/failing"
	"regedge/internal/testkit/noticetest"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/notice"
)

// TestALedgerThatFailsDelaysNoticesAndLosesNone: of what is found nothing is stored without the rest, and of what is
// sent nothing is forgotten.
func TestALedgerThatFailsDelaysNoticesAndLosesNone(t *testing.T) {
	o := noticetest.New(t)
	var path string
	require.NoError(t, o.DB.QueryRow(`SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path))
	ledger, faults := faulty.Open(t, path)
	defer ledger.Close()
	o.Configure(func(c *notice.Config) {
		c.Ledger = ledger
		c.Commit = func(ctx context.Context, change func(context.Context, *sql.Tx, int64) error) error {
			tx, err := ledger.BeginTx(ctx, nil)
			require.NoError(t, err)
			defer tx.Rollback()
			if err := change(ctx, tx, o.Now.UnixMilli()); err != nil {
				return err
			}
			return tx.Commit()
		}
	})
	mail := byMail
	mail.PerDay = 1
	o.Open(byWebhook, mail)
	o.SetWebhook(1, "https://example.com", 500, "")
	o.SetMail(1, 500)
	o.Exec(`INSERT INTO notice (id, target, kind, about, at, body, next_at) VALUES ('old', 1, 'test', 'old', 1, '', NULL)`)
	ctx := faulty.Marked(t.Context())
	for turn, fail := range []func(int){faults.FailRead, faults.FailChange} {
		o.Now = o.Now.AddDate(0, 1, 0)
		ms := o.Now.UnixMilli()
		o.Exec(`UPDATE notice_target SET low_told = 0`)
		o.Exec(`INSERT INTO pool (kind, subject, time_window, compensated, spent, lost) VALUES (?, 1, ?, 0, 9999999, 0)`, syncproto.Volume, syncproto.Month(ms))
		o.Exec(`INSERT INTO pool (kind, subject, time_window, compensated, spent, lost) VALUES (?, 5, ?, 0, 9999999, 0)`, syncproto.NotFound, syncproto.Day(ms))
		o.Exec(`UPDATE api_key SET expires_at = ?, limited_until = ?`, o.Now.Add(time.Hour).UnixMilli(), o.Now.Add(time.Hour).UnixMilli())
		until := func(what string, do func() error, changes func() int) {
			t.Helper()
			for number, before := 1, changes(); ; number++ {
				fail(number)
				err := do()
				failed := faults.Failed()
				if failed == "" {
					require.NoError(t, err)
					require.NotEqual(t, before, changes(), what)
					return
				}
				require.Error(t, err, "%s without %s", what, failed)
				require.Equal(t, before, changes(), "%s without %s", what, failed)
			}
		}
		until("look", func() error { return o.Sender.Look(ctx) }, func() int { return o.Count(`SELECT count(*) + 100 * sum(low_told) FROM notice, notice_target`) })
		require.Equal(t, 10, o.Count(`SELECT count(*) FROM notice WHERE at = ?`, ms), "turn %d: five of each target", turn)
		if turn == 0 { // an outcome that was not stored is stored with the next attempts
			until("send", func() error { _, err := o.Sender.Send(ctx, notice.Webhook); return err }, func() int { return o.Count(`SELECT sum(attempts) FROM notice`) })
		}
		o.Exec(`UPDATE notice SET delivered_at = ?, next_at = NULL WHERE id = (SELECT max(id) FROM notice WHERE target = 2 AND at = ?)`, ms, ms)
		until("put off", func() error { _, err := o.Sender.Send(ctx, notice.Mail); return err },
			func() int { return o.Count(`SELECT sum(next_at) FROM notice WHERE target = 2`) })
	}
}
