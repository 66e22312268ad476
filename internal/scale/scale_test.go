package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestThePageIsOfThisModel: run go run ./internal/scale after a change of the model.
func TestThePageIsOfThisModel(t *testing.T) {
	page, err := os.ReadFile("../../" + pagePath)
	require.NoError(t, err)
	want, err := withTable(string(page))
	require.NoError(t, err)
	require.Equal(t, want, string(page))
	drawn, err := os.ReadFile("../../" + graphPath)
	require.NoError(t, err)
	require.Equal(t, graph(), string(drawn))
	for decoder := xml.NewDecoder(strings.NewReader(graph())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
}

// TestTheModelIsTrueForOneEdge, which was measured, or for the network that is assumed.
func TestTheModelIsTrueForOneEdge(t *testing.T) {
	for _, r := range releases {
		require.InDelta(t, max(r.alone, r.bytes/uplink), spreads[0].took(r, 1).Seconds(), 0.1)
		require.EqualValues(t, r.bytes, spreads[0].sent(r, 1))
	}
}

func TestMoreEdgesNeverTakeLess(t *testing.T) {
	for _, s := range spreads {
		for _, r := range releases {
			before, sent := time.Duration(0), 0.0
			for n := 1; n <= mostEdges; n++ {
				require.GreaterOrEqual(t, s.took(r, n), before, "%s %d", s.name, n)
				require.GreaterOrEqual(t, s.sent(r, n), sent)
				before, sent = s.took(r, n), s.sent(r, n)
			}
		}
	}
	require.Equal(t, spreads[0].took(releases[0], relays), spreads[1].took(releases[0], relays), "relays change nothing for ten")
	require.Less(t, spreads[1].took(releases[1], 1000), spreads[0].took(releases[1], 1000)/4)
}
