package writer_test

import (
	"context"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// TestASupersededWriterDoesNotAnswerWhatItKnew holds that a writer whose ledger another
// took does not go on telling edges that nothing is left, even if nothing is to be written.
func TestASupersededWriterDoesNotAnswerWhatItKnew(t *testing.T) {
	dir := t.TempDir()
	ledger, err := schema.OpenFile(filepath.Join(dir, "ledger.db"), false)
	require.NoError(t, err)
	defer ledger.Close()
	access, err := schema.OpenFile(filepath.Join(dir, "access.db"), false)
	require.NoError(t, err)
	defer access.Close()
	var ahead atomic.Int64
	config := writer.Config{
		Ledger: ledger, Access: access, OperatorToken: token,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}
	first, err := writer.Open(t.Context(), config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- first.Run(ctx) }()
	defer cancel()
	node, err := newClient(first, token).AddNode(t.Context(), "one")
	require.NoError(t, err)
	e := &distant{secret: node.Token, url: "http://writer", client: &http.Client{Transport: writer.InProcess(first.Handler())}}
	require.NoError(t, e.say(t.Context(), syncproto.Message{Hello: &syncproto.Hello{Boot: 1, NowMillis: time.Now().UnixMilli()}}))
	nothing := func() error {
		return e.say(t.Context(), syncproto.Message{Sync: &syncproto.Sync{Session: e.session, Seen: e.seen, NowMillis: time.Now().UnixMilli()}})
	}
	require.NoError(t, nothing())

	_, err = writer.Open(t.Context(), config)
	require.NoError(t, err)
	ahead.Store(int64(2 * time.Second))
	require.Error(t, nothing())
	require.ErrorIs(t, <-done, writer.ErrFenced)
}
