package meter_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/meter"
)

// upgraded is a network that turns messages into those of newer versions, as a fixture for
// upgrades: with a higher version number, and fields at the end that only those versions know.
type upgraded struct {
	edge, writer atomic.Int32 // by how many versions each side is newer
}

// newer makes a message of a version that is by versions higher.
func newer(message []byte, by int32) []byte {
	if by == 0 || len(message) == 0 {
		return message
	}
	message[0] += byte(by) << 4
	return append(message, 0xff, 1, 2, 3)
}

func (v *upgraded) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	body = newer(body, v.edge.Load())
	up := r.Clone(r.Context())
	up.Body, up.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response, err := http.DefaultTransport.RoundTrip(up)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(newer(body, v.writer.Load())))
	return response, nil
}

// over opens an edge that reaches the writer over the given network.
func (c *centre) over(network http.RoundTripper, name string, run bool) *edge {
	server := httptest.NewServer(c.writer.Load().Handler())
	c.t.Cleanup(server.Close)
	node, err := c.client.AddNode(c.t.Context(), name)
	require.NoError(c.t, err)
	e := &edge{name: name, token: node.Token, state: c.t.TempDir()}
	m, err := meter.Open(meter.Config{
		State: e.state, WaitLimit: c.wait, Writer: meter.OverHTTP(server.URL, node.Token, &http.Client{Transport: network}),
	})
	require.NoError(c.t, err)
	e.Meter = m
	if run {
		e.stop = e.start(m)
	} else {
		e.stop = func() { m.Close() }
	}
	c.t.Cleanup(func() { e.stop() })
	return e
}

// TestEdgesAndWriterMayBeOneVersionApart upgrades one side before the other, and then back.
func TestEdgesAndWriterMayBeOneVersionApart(t *testing.T) {
	for _, order := range []struct {
		name         string
		edge, writer int32
	}{{"the edge first", 1, 0}, {"the writer first", 0, 1}} {
		t.Run(order.name, func(t *testing.T) {
			c := startCentre(t, nil)
			network := &upgraded{}
			e := c.over(network, "one", true)
			for i, apart := range []bool{false, true, false} {
				if apart {
					network.edge.Store(order.edge)
					network.writer.Store(order.writer)
				} else {
					network.edge.Store(0)
					network.writer.Store(0)
				}
				account := c.account("growth", 2) // a new one: its lease has to be asked for
				require.Equal(t, "", e.charge(account, charge.Found).Code, i)
				require.Equal(t, "", e.charge(account, charge.Found).Code, i)
				require.Equal(t, charge.InsufficientCredits, e.charge(account, charge.Found).Code, i)
				eventually(t, func() bool { return c.read(account).Spent == 2 }, "the charges are reported")
			}
		})
	}
}

func TestTwoVersionsApartIsAnError(t *testing.T) {
	c := startCentre(t, nil)
	for _, side := range []struct {
		name         string
		edge, writer int32
		says         string
	}{
		{"edge", 2, 0, "upgrade the older of the two"},
		{"writer", 0, 2, "another version of the sync protocol: 3, and this one reads up to 2"},
	} {
		network := &upgraded{}
		network.edge.Store(side.edge)
		network.writer.Store(side.writer)
		e := c.over(network, "newer-"+side.name, false)
		require.ErrorContains(t, e.Exchange(t.Context()), side.says)
		require.ErrorIs(t, e.Ready(), meter.ErrNoEpoch)
	}
}
