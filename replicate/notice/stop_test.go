package notice_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
