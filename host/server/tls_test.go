package server_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/server"
)

func TestTLSIsAtLeastVersion12(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: fine})
	trust := r.client.Transport.(*http.Transport).TLSClientConfig
	for version, served := range map[uint16]bool{
		tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true,
	} {
		client := &tls.Config{RootCAs: trust.RootCAs, MinVersion: version, MaxVersion: version}
		conn, err := tls.Dial("tcp", r.addr, client)
		require.Equal(t, served, err == nil, "%s: %v", tls.VersionName(version), err)
		if err == nil {
			require.NoError(t, conn.Close())
		}
	}
}

func TestWhoDoesNotSpeakTLSIsHungUpOn(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: fine, ReadHeaderTimeout: time.Hour})
	r.dial = func() (net.Conn, error) { return net.Dial("tcp", r.addr) }
	require.NotContains(t, r.raw(t, "GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n"), "200 OK") // it returns once the server hangs up
}
