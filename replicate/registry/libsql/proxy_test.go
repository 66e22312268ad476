package libsql

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnlyOtherMachinesAreAskedThroughAProxy: one that does not answer would make a primary that listens on all addresses, or on one
// of its machine, seem to accept no writes, and it would be started again and again.
func TestOnlyOtherMachinesAreAskedThroughAProxy(t *testing.T) {
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	proxied := usual.(*http.Transport).Clone()
	proxied.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "192.0.2.9:3128"})
	http.DefaultTransport = proxied
	by := newTransport().Proxy
	hosts := map[string]bool{"0.0.0.0": false, "::": false, "192.0.2.1": true, "2001:db8::1": true, "primary.example": true}
	own, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, address := range own {
		hosts[address.(*net.IPNet).IP.String()] = false
	}
	for host, want := range hosts {
		proxy, err := by(httptest.NewRequest(http.MethodPost, "http://"+net.JoinHostPort(host, "8090")+"/v2/pipeline", nil))
		require.NoError(t, err)
		require.Equal(t, want, proxy != nil, host)
	}
}
