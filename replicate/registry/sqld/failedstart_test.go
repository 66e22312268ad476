package sqld

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestAStartThatFailsLeavesNothingOpen: the next one takes the same addresses.
func TestAStartThatFailsLeavesNothingOpen(t *testing.T) {
	dir := t.TempDir()
	s := &Server{Config: Config{
		Program: filepath.Join(dir, "missing"), Dir: filepath.Join(dir, "replica"), HTTP: testkit.FreePort(t),
		Primary: "http://127.0.0.1:1", Reads: &Reads{}, Relay: true,
	}}
	before := runtime.NumGoroutine()
	for range 3 {
		require.ErrorContains(t, s.Start(), "no such file")
	}
	for began := time.Now(); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		require.Less(t, time.Since(began), 10*time.Second, "what serves the ports goes on")
	}
}
