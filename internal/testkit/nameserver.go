package testkit

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// NameServerHangs gives this process a name server that never answers, until the test ends.
func NameServerHangs(t testing.TB) {
	t.Helper()
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	before := net.DefaultResolver
	t.Cleanup(func() {
		net.DefaultResolver = before
		require.NoError(t, silent.Close())
	})
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		// With a resolver of its own: a lookup may try again when the test has ended.
		return (&net.Dialer{Resolver: before}).DialContext(ctx, "udp", silent.LocalAddr().String())
	}}
}
