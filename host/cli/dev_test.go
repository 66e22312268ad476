package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDevThatIsStoppedEarlySaysSo and nothing of what it was at.
func TestDevThatIsStoppedEarlySaysSo(t *testing.T) {
	p := start("dev", "--listen", "127.0.0.1:0", "--writer-listen", "127.0.0.1:0", "--data", t.TempDir())
	require.Equal(t, exitFailure, p.halt())
	require.Equal(t, "regedge: stopped before it was ready\n", p.stderr.String())
}
