package server_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

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

// TestHTTP2IsSpokenWithItsSuitesOnly (RFC 9113, section 9.2.2).
func TestHTTP2IsSpokenWithItsSuitesOnly(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: fine})
	trust := r.client.Transport.(*http.Transport).TLSClientConfig
	for served, suites := range map[bool][]uint16{
		true:  {tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		false: {tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA},
	} {
		conn, err := tls.Dial("tcp", r.addr, &tls.Config{RootCAs: trust.RootCAs, MaxVersion: tls.VersionTLS12, CipherSuites: suites, NextProtos: []string{"h2"}})
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second))) // a connection that is only forgotten is closed by the GC
		_, _ = io.WriteString(conn, http2.ClientPreface)                     // who is refused may have been hung up on
		_, err = conn.Read(make([]byte, 1))
		require.Equal(t, served, err == nil, "%v", err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "who is refused is hung up on")
		_ = conn.Close()
	}
}

func TestWhoDoesNotSpeakTLSIsHungUpOn(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: fine, DocsURL: "https://docs", ReadHeaderTimeout: time.Hour})
	r.dial = func() (net.Conn, error) {
		c, err := net.Dial("tcp", r.addr)
		if err == nil {
			err = c.SetReadDeadline(time.Now().Add(20 * time.Second)) // a connection that is only forgotten is closed by the GC
		}
		return c, err
	}
	require.Empty(t, r.raw(t, "SSH-2.0-OpenSSH_10.0\r\n")) // it returns once the server hangs up

	long := "X-Long: " + strings.Repeat("a", 20000) + "\r\n" // what nobody reads must not reset the answer away
	for _, sent := range []string{"GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n", "POST / HTTP/1.0\r\n" + long + "\r\n", http2.ClientPreface} {
		answer, body, _ := strings.Cut(r.raw(t, sent), "\r\n\r\n")
		require.Regexp(t, `^HTTP/1\.1 400 Bad Request\r\n(?s:.*)\r\nConnection: close$`, answer, "to HTTP without TLS")
		require.Regexp(t, `^{"type":"https://docs/problems/invalid_request",.*"detail":"[^"]* https://[^"]*","code":"invalid_request"`, body)
	}
	require.NoError(t, r.stop())
	require.Equal(t, 3, strings.Count(r.log.String(), `"status":400`))
}
