package testkit

import (
	"context"
	"net"
	"testing"
	"time"

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

// Names is a resolver whose name server answers after a pause, whatever the name: 127.0.0.N for each of the hosts. It is
// for connections that are made when their request, and perhaps the test, has ended.
func Names(t testing.TB, pause time.Duration, hosts ...byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for question := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			answer := append([]byte(nil), question[:n]...)
			answer[2], answer[3], answer[11] = 0x81, 0x80, 0 // an answer, without the question's additional record
			end := 12
			for ; answer[end] != 0; end += int(answer[end]) + 1 {
			}
			answer = answer[:end+5]
			if answer[end+2] == 1 { // A
				answer[7] = byte(len(hosts))
				for _, host := range hosts {
					answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, host)
				}
			}
			time.AfterFunc(pause, func() { _, _ = server.WriteTo(answer, from) })
		}
	}()
	t.Cleanup(func() { server.Close() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Resolver: new(net.Resolver)}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}
