package server

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClientAddress(t *testing.T) {
	proxies, err := ParseProxies([]string{"10.0.0.0/8", "2001:db8:1::/48", "192.0.2.7"})
	require.NoError(t, err)
	for _, c := range []struct{ name, remote, forwarded, forwardedFor, want string }{
		{"the connection's", "198.51.100.1:4", "", "", "198.51.100.1"},
		{"a stranger is not believed", "198.51.100.1:4", "for=1.2.3.4", "1.2.3.4", "198.51.100.1"},
		{"a proxy without a word", "10.0.0.1:4", "", "", "10.0.0.1"},
		{"a proxy is believed", "10.0.0.1:4", "", "1.2.3.4", "1.2.3.4"},
		{"a single address", "192.0.2.7:4", "", "1.2.3.4", "1.2.3.4"},
		{"the next one is not", "192.0.2.8:4", "", "1.2.3.4", "192.0.2.8"},
		{"what the client made up stands left", "10.0.0.1:4", "", "6.6.6.6, 1.2.3.4", "1.2.3.4"},
		{"through two proxies", "10.0.0.1:4", "", "6.6.6.6, 1.2.3.4, 10.9.9.9", "1.2.3.4"},
		{"all of them proxies", "10.0.0.1:4", "", "10.3.3.3, 10.9.9.9", "10.3.3.3"},
		{"no address at the end", "10.0.0.1:4", "", "1.2.3.4, unknown", "10.0.0.1"},
		{"no address in between", "10.0.0.1:4", "", "1.2.3.4, junk, 10.9.9.9", "10.9.9.9"},
		{"empty", "10.0.0.1:4", "", "", "10.0.0.1"},
		{"with a port", "10.0.0.1:4", "", "1.2.3.4:99", "1.2.3.4"},
		{"IPv6", "[2001:db8:1::5]:4", "", "2001:db8:2::1", "2001:db8:2::1"},
		{"IPv6 in brackets", "10.0.0.1:4", "", "[2001:db8:2::1]", "2001:db8:2::1"},
		{"IPv4 as IPv6", "[::ffff:10.0.0.1]:4", "", "::ffff:1.2.3.4", "1.2.3.4"},
		{"IPv4 as IPv6 with a port", "10.0.0.1:4", "", "[::ffff:1.2.3.4]:99", "1.2.3.4"},
		{"a zone is dropped", "[fe80::1%eth0]:4", "", "", "fe80::1"},
		{"a hop's zone is dropped", "10.0.0.1:4", "", "fe80::1%eth0", "fe80::1"},
		{"a hop's zone with a port", "10.0.0.1:4", "", "[fe80::1%eth0]:99", "fe80::1"},
		{"the standard's form", "10.0.0.1:4", `proto=https;For="[2001:db8:2::1]:4711";by=x`, "", "2001:db8:2::1"},
		{"the standard's list", "10.0.0.1:4", "for=6.6.6.6, for=1.2.3.4", "", "1.2.3.4"},
		{"the standard's hidden", "10.0.0.1:4", "for=_hidden", "", "10.0.0.1"},
		{"an element without for", "10.0.0.1:4", "for=1.2.3.4, proto=http", "", "10.0.0.1"},
		{"both agree", "10.0.0.1:4", "for=1.2.3.4", "1.2.3.4", "1.2.3.4"},
		{"both disagree", "10.0.0.1:4", "for=6.6.6.6", "1.2.3.4", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{}
			if c.forwarded != "" {
				header.Add("Forwarded", c.forwarded)
			}
			if c.forwardedFor != "" {
				header.Add("X-Forwarded-For", c.forwardedFor)
			}
			require.Equal(t, c.want, proxies.client(parsePeer(c.remote), header))
		})
	}
}

func TestForwardedOverSeveralLines(t *testing.T) {
	proxies, err := ParseProxies([]string{"10.0.0.0/8"})
	require.NoError(t, err)
	header := http.Header{"X-Forwarded-For": {"6.6.6.6", "1.2.3.4, 10.1.1.1", "10.2.2.2"}}
	require.Equal(t, "1.2.3.4", proxies.client(parsePeer("10.0.0.1:4"), header))
}

func TestInvalidProxyIsRefused(t *testing.T) {
	for _, text := range []string{"", "all", "10.0.0.0/33", "10.0.0", "example.com", "::ffff:10.0.0.0/104"} {
		_, err := ParseProxies([]string{text})
		require.Error(t, err, text)
	}
}

// TestAMappedProxyIsTrusted, since connections from it count as IPv4.
func TestAMappedProxyIsTrusted(t *testing.T) {
	proxies, err := ParseProxies([]string{"::ffff:10.0.0.1"})
	require.NoError(t, err)
	for _, remote := range []string{"10.0.0.1:4", "[::ffff:10.0.0.1]:4"} {
		require.Equal(t, "1.2.3.4", proxies.client(parsePeer(remote), http.Header{"X-Forwarded-For": {"1.2.3.4"}}))
	}
}

func FuzzClient(f *testing.F) {
	f.Add("for=1.2.3.4;proto=http, for=\"[::1]:80\"", "1.2.3.4, ::1")
	f.Add(",;=,", "[")
	proxies, err := ParseProxies([]string{"10.0.0.0/8", "::/1"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, forwarded, forwardedFor string) {
		for _, header := range []http.Header{
			{"Forwarded": {forwarded}}, {"X-Forwarded-For": {forwardedFor}},
			{"Forwarded": {forwarded}, "X-Forwarded-For": {forwardedFor}},
		} {
			text := proxies.client(parsePeer("10.0.0.1:4"), header)
			addr, err := netip.ParseAddr(text)
			if text == "" && len(header) == 2 {
				continue // both disagree
			}
			if err != nil || addr.Zone() != "" || addr.Is4In6() {
				t.Errorf("got %q, want a plain address", text)
			}
		}
	})
}

func TestOnlyAWellFormedTraceparentIsLogged(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	require.Equal(t, good, traceparent([]string{good}))
	for _, bad := range [][]string{
		nil, {good, good}, {good + "0"}, {good[1:]}, {"0A" + good[2:]}, {"00_" + good[3:]}, {"---" + good[3:]},
	} {
		require.Empty(t, traceparent(bad), bad)
	}
}
