package notice_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/noticetest"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/notice"
)

// TestABalanceIsWhatIsLeft of what was bought and given back, less what was spent and lost.
func TestABalanceIsWhatIsLeft(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetWebhook(1, "https://example.com", 50, "")
	o.Exec(`UPDATE account SET bought = 100, compensated = 10, spent = 55, lost = 5`)
	require.Empty(t, o.Look(o.Webhook(1)))
	o.Exec(`UPDATE account SET lost = 6`)
	require.Equal(t, []string{notice.LowBalance}, o.Look(o.Webhook(1)))
	require.Equal(t, 1, o.Count(`SELECT count(*) FROM notice WHERE body LIKE '%"balance":49,%'`))
}

// TestAKeyIsAtItsCapOnTheDay on which it found nothing as often as the cap.
func TestAKeyIsAtItsCapOnTheDay(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetWebhook(1, "https://example.com", 0, "")
	today := int64(syncproto.Day(o.Now.UnixMilli()))
	for _, c := range []struct {
		day, spent int64
		want       []string
	}{{today - 1, 100, nil}, {today, 99, nil}, {today, 100, []string{notice.NotFoundCap}}} {
		o.Exec(`INSERT OR REPLACE INTO pool (kind, subject, time_window, compensated, spent, lost) VALUES (?, 5, ?, 0, ?, 0)`, int64(syncproto.NotFound), c.day, c.spent)
		require.Equal(t, c.want, o.Look(o.Webhook(1)), c)
	}
}

// TestAKeyThatEndsLaterCanHaveSpentItsCredits before.
func TestAKeyThatEndsLaterCanHaveSpentItsCredits(t *testing.T) {
	o := noticetest.New(t, byWebhook)
	o.SetWebhook(1, "https://example.com", 0, "")
	o.Exec(`UPDATE api_key SET monthly_credits = 500, limited_until = ?, expires_at = ? WHERE id = 5`,
		syncproto.EndOfMonth(syncproto.Month(o.Now.UnixMilli())), o.Now.AddDate(1, 0, 0).UnixMilli())
	require.Equal(t, []string{notice.KeyCreditsSpent}, o.Look(o.Webhook(1)))
}

// TestAChannelCarriesItsOwn and leaves what is due to the other.
func TestAChannelCarriesItsOwn(t *testing.T) {
	o := noticetest.New(t, byWebhook, byMail)
	o.SetMail(1, 0)
	require.NoError(t, o.Test(o.Mail(1)))
	require.Zero(t, o.Send(notice.Webhook))
	require.Equal(t, 1, o.Send(notice.Mail))
}

// TestFewerADayHoldForWhatWasSentBefore: the next goes a day after the last but one.
func TestFewerADayHoldForWhatWasSentBefore(t *testing.T) {
	o := noticetest.New(t, notice.Way{Channel: notice.Mail, Carrier: &taker{}, PerDay: 3})
	o.SetMail(1, 0)
	began := o.Now
	for range 3 {
		require.NoError(t, o.Test(o.Mail(1)))
		require.Equal(t, 1, o.Send(notice.Mail))
		o.Now = o.Now.Add(time.Minute)
	}
	o.Open(notice.Way{Channel: notice.Mail, Carrier: &taker{}, PerDay: 2})
	require.NoError(t, o.Test(o.Mail(1)))
	require.Zero(t, o.Send(notice.Mail))
	require.Equal(t, began.Add(time.Minute+24*time.Hour), *o.Last(o.Mail(1)).Next)
}

// TestASecretIsThatOfTheAccountsWebhook beside mail to its owner, and webhooks of others.
func TestASecretIsThatOfTheAccountsWebhook(t *testing.T) {
	o := noticetest.New(t)
	o.SetMail(1, 0)
	for _, account := range []int64{1, 2} {
		require.NoError(t, o.Commit(t.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error {
			taken, err := notice.SetWebhook(ctx, tx, now, notice.Target{Account: account, URL: "https://example.com"}, string('a'+rune(account)), false)
			require.True(t, taken, account)
			return err
		}))
	}
}
