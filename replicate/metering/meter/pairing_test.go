package meter_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
)

// keeper is a way to the writer that keeps the first answer, and gives it once more when
// it is told to.
type keeper struct {
	meter.Transport
	first  []byte
	replay bool
}

func (k *keeper) Sync(ctx context.Context, message []byte) ([]byte, error) {
	if k.replay {
		k.replay = false
		return k.first, nil
	}
	reply, err := k.Transport.Sync(ctx, message)
	if k.first == nil {
		k.first = reply
	}
	return reply, err
}

// TestAnAnswerOfLongAgoIsNotTaken starts a node that has spent a credit on an empty disk, and
// has its Hello answered by what the writer said to the first one. With that epoch it would
// spend the credit a second time.
func TestAnAnswerOfLongAgoIsNotTaken(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	client := &http.Client{Transport: writer.InProcess(c.writer.Load().Handler())}
	way := &keeper{Transport: meter.OverHTTP("http://writer", node.Token, client)}
	open := func() *edge {
		m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: way, WaitLimit: c.wait})
		require.NoError(t, err)
		return &edge{Meter: m, name: "one"}
	}
	account := c.account("growth", 1)
	first := open()
	stop := first.start(first.Meter)
	require.Equal(t, "", first.charge(account, charge.Found).Code)
	stop()

	again := open()
	defer again.Close()
	way.replay = true
	require.ErrorContains(t, again.Exchange(t.Context()), "answers another message")
	require.Zero(t, again.Epoch())
	require.NoError(t, again.Exchange(t.Context()))
	require.Greater(t, again.Epoch(), first.Epoch())
}
