package writer

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/syncproto"
)

// TestRefusedMessagesAreToldOnce, and then with their number: each edge sends two a second.
func TestRefusedMessagesAreToldOnce(t *testing.T) {
	w, _ := openUnrun(t)
	log := new(testkit.Log)
	w.config.Logger = slog.New(slog.NewTextHandler(log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() { cancel(); require.NoError(t, <-done) }()
	node, err := clientOf(w, firstOperator).AddNode(ctx, "one")
	require.NoError(t, err)
	hello := func(boot uint64) int {
		return syncAs(w, node.Token, syncproto.Message{Hello: &syncproto.Hello{Boot: boot}}).Code
	}
	require.Equal(t, http.StatusOK, hello(1))
	w.away.Store(true)
	for i := range 20 {
		require.Equal(t, http.StatusServiceUnavailable, hello(uint64(2+i)))
	}
	require.Equal(t, 1, strings.Count(log.String(), "messages of edges are refused"), log.String())
	require.NotContains(t, log.String(), "request failed")

	w.refusals.mu.Lock()
	w.refusals.logged = w.refusals.logged.Add(-refusalsPause)
	w.refusals.mu.Unlock()
	require.Equal(t, http.StatusServiceUnavailable, hello(30))
	require.Contains(t, log.String(), "refused=21")
	_, err = clientOf(w, firstOperator).AddAccount(ctx, "made-up", "", "starter")
	require.ErrorIs(t, err, ErrUnavailable)
	require.Contains(t, log.String(), "request failed", "an operator is told the request's id")

	w.away.Store(false)
	require.Equal(t, http.StatusOK, hello(31))
	require.Contains(t, log.String(), `"messages of edges are taken again" refused=21`)
}
