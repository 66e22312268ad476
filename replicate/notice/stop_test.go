package notice_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/noticetest"
	"regedge/replicate/notice"
)

// TestALedgerThatHangsDelaysAStopBy3Seconds: a delivery is still noted after the stop, but not waited for as long as
// the ledger hangs.
func TestALedgerThatHangsDelaysAStopBy3Seconds(t *testing.T) {
	for name, stopsAfter := range map[string]time.Duration{"stopped before": 0, "stopped meanwhile": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := notice.Way{Channel: notice.Webhook}
				s := notice.New(notice.Config{Ways: []notice.Way{way}, Commit: func(context.Context, func(context.Context, *sql.Tx, int64) error) error {
					time.Sleep(18 * time.Second) // as the writer's, which has begun it
					return errors.New("unknown outcome")
				}})
				ctx, stop := context.WithTimeout(t.Context(), stopsAfter)
				defer stop()
				begun := time.Now()
				require.ErrorIs(t, notice.NoteDelivered(ctx, s, way), context.Canceled)
				require.Equal(t, stopsAfter+3*time.Second, time.Since(begun))
				time.Sleep(time.Minute) // until the commit has ended
			})
		})
	}
}

// TestALedgerThatHangsDelaysNoOtherChangeBeyond3Seconds: storing what was found, and putting off what was enough for a day.
func TestALedgerThatHangsDelaysNoOtherChangeBeyond3Seconds(t *testing.T) {
	hang := func(c *notice.Config) {
		c.Commit = func(context.Context, func(context.Context, *sql.Tx, int64) error) error {
			time.Sleep(18 * time.Second)
			return errors.New("unknown outcome")
		}
	}
	for name, act := range map[string]func(*noticetest.Office, context.Context) error{
		"found": func(o *noticetest.Office, ctx context.Context) error {
			o.Exec(`UPDATE account SET spent = 60`)
			return o.Sender.Look(ctx)
		},
		"put off": func(o *noticetest.Office, ctx context.Context) error {
			require.NoError(t, o.Test(o.Mail(1)))
			o.Exec(`UPDATE notice SET next_at = NULL, delivered_at = at`)
			require.NoError(t, o.Test(o.Mail(1)))
			_, err := o.Sender.Send(ctx, notice.Mail)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := noticetest.New(t)
				o.Configure(hang)
				o.Open(notice.Way{Channel: notice.Mail, Carrier: silent{}, PerDay: 1})
				o.SetMail(1, 50)
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				begun := time.Now()
				require.ErrorIs(t, act(o, ctx), context.Canceled)
				require.Equal(t, 4*time.Second, time.Since(begun))
				time.Sleep(time.Minute) // until the commit has ended
			})
		})
	}
}
