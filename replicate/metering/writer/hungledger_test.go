package writer_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/writer"
)

// TestAWriterEndsWhileTheServerOfItsLedgerHangs: whoever stops it would wait for that server's deadline of minutes.
func TestAWriterEndsWhileTheServerOfItsLedgerHangs(t *testing.T) {
	held := sqldtest.Primary(t)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: sqldtest.Open(t, held), Access: server(t), OperatorToken: token})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	hang(t, held)
	require.Eventually(t, func() bool { code, _ := get(t, w, "/readyz"); return code == http.StatusServiceUnavailable }, time.Minute, time.Millisecond)
	cancel()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it runs on")
	}
}
