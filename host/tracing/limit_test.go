package tracing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheLastTraceOfASecondIsTakenOnce, though two saw that it was left.
func TestTheLastTraceOfASecondIsTakenOnce(t *testing.T) {
	l := limit{most: 1, now: func() time.Time { return time.Unix(1, 0) }}
	for range 2 {
		require.False(t, l.spent())
	}
	require.True(t, l.take())
	require.False(t, l.take())
	require.True(t, l.spent())
}
