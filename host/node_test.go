package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

func TestSeenTellsARestartFromNever(t *testing.T) {
	require.Equal(t, "never", seen(writer.Node{}))
	require.Equal(t, "before the writer's start", seen(writer.Node{Epoch: 3}))
	require.Equal(t, "2026-11-22T10:00:00Z", seen(writer.Node{Epoch: 3, Seen: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}))
}
