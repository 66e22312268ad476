package dashboard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestASessionThatBeganInTheFutureHasEnded, however lately it was used: it would last longer than any other.
func TestASessionThatBeganInTheFutureHasEnded(t *testing.T) {
	now := time.Now()
	for began, lasts := range map[time.Duration]bool{-time.Hour: true, clockSlack: true, clockSlack + time.Second: false} {
		s := session{Created: now.Add(began), Seen: now}
		require.Equal(t, lasts, s.lasts(now, false), began)
	}
}
