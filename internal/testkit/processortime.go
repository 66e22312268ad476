package testkit

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ProcessorTime is what this process has used, which other processes do not make longer.
func ProcessorTime(t testing.TB) time.Duration {
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
