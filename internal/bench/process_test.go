package main

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCoresAreGivenBack: what is measured after a load has the machine's cores again.
func TestCoresAreGivenBack(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("a machine with one core")
	}
	cores := func() string {
		out, err := exec.CommandContext(t.Context(), "nproc").Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	processors := runtime.GOMAXPROCS(0)
	leave, err := stayOnCore(loadCore)
	require.NoError(t, err)
	require.Equal(t, "1", cores())
	leave()
	require.Equal(t, strconv.Itoa(runtime.NumCPU()), cores())
	require.Equal(t, processors, runtime.GOMAXPROCS(0))
}
