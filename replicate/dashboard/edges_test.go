package dashboard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

func TestAnEdgeIsShownWithWhatItSaidOfItself(t *testing.T) {
	report := &writer.Report{Unsettled: 1234, Ready: "the registry is too old", Replicas: []writer.Replica{
		{Database: "registry", AgeMillis: 1240, Fallback: true}, {Database: "other", AgeMillis: 5},
	}}
	e := newEdgeView(writer.Node{Name: "mumbai-1", Live: true}, report, time.Unix(0, 0))
	require.Equal(t, "1,234", e.Unsettled)
	require.Equal(t, "1.2s (endpoint)", e.Registry)
	require.Equal(t, "none: a file", e.Access)
	require.Equal(t, "not ready", e.State)
	report.Replicas[0] = writer.Replica{Database: "registry", AgeMillis: -1}
	require.Equal(t, "unknown", newEdgeView(writer.Node{}, report, time.Unix(0, 0)).Registry)
	require.Empty(t, newEdgeView(writer.Node{}, nil, time.Unix(0, 0)).Unsettled, "nothing was said yet")
}
