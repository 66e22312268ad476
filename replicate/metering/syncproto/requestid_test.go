package syncproto_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

func TestARequestIDHasItsTime(t *testing.T) {
	const id, millis = "01KADN4XQ0V8R5T2M7C3B9HZ6E", 1763542464224
	got, ok := syncproto.RequestMillis(id)
	require.True(t, ok)
	require.EqualValues(t, millis, got)
	require.True(t, syncproto.IsRequestID(id))
	first := syncproto.RequestIDsFrom(millis)
	require.True(t, first <= id && syncproto.RequestIDsFrom(millis+1) > id)
	require.True(t, strings.HasPrefix(id, first))
	for _, other := range []string{"", id[:25], id + "0", "i" + id[1:], "01KADN4XU0V8R5T2M7C3B9HZ6E"} {
		_, ok := syncproto.RequestMillis(other)
		require.False(t, ok, other)
		require.False(t, syncproto.IsRequestID(other), other)
	}
	_, ok = syncproto.RequestMillis(id[:25] + "-")
	require.True(t, ok, "what is behind the time does not count")
	require.False(t, syncproto.IsRequestID(id[:25]+"-"))
}
