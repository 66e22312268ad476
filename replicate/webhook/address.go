package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
	"unicode"
)

// MaxURL bounds an address, in bytes.
const MaxURL = 500

// ErrURL is returned for an address that can't be called, with the reason.
var ErrURL = errors.New("that address can't be used")

// CheckURL checks an address as typed. private allows HTTP and addresses that are not public. The name's
// IP address is checked at the call.
func CheckURL(text string, private bool) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > MaxURL:
		return fmt.Errorf("%w: it is longer than %d characters", ErrURL, MaxURL)
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("%w: it is no URL with a host", ErrURL)
	case u.Scheme != "https" && !(private && u.Scheme == "http"):
		return fmt.Errorf("%w: it begins with https://", ErrURL)
	case u.User != nil:
		return fmt.Errorf("%w: it holds a name or a password", ErrURL)
	case u.Fragment != "":
		return fmt.Errorf("%w: it has a part after #, which is never sent", ErrURL)
	}
	for _, c := range text {
		if c > unicode.MaxASCII || !unicode.IsPrint(c) || c == ' ' {
			return fmt.Errorf("%w: it has characters that a URL writes with %%", ErrURL)
		}
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && !private && !public(addr) {
		return fmt.Errorf("%w: %s is not a public address", ErrURL, addr)
	}
	return nil
}

// reserved are the networks that are not reached over the internet, or that lead into others (IANA's
// registries of special-purpose addresses), beyond those that netip knows.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}

// unicast6 is the part of IPv6 for hosts on the internet. It does not contain addresses that embed an IPv4
// address, nor, like every prefix, those with a zone.
var unicast6 = netip.MustParsePrefix("2000::/3")

// public reports whether an address is of a host on the internet.
func public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Is6() && !unicast6.Contains(addr) {
		return false
	}
	for _, network := range reserved {
		if network.Contains(addr) {
			return false
		}
	}
	return true
}

// errNotPublic refuses a connection. It says neither which address it was nor whether the name is known:
// that would tell an owner which names exist in the writer's network.
var errNotPublic = errors.New("the host is unknown, or not at a public address")

// onlyPublic is called with the address that a connection is about to go to, after its name was resolved.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !public(to.Addr()) {
		return errNotPublic
	}
	return nil
}

// Deadlines of one attempt.
const (
	dialLimit    = 5 * time.Second
	attemptLimit = 10 * time.Second
)

// newClient makes a client that connects to public addresses only, through no proxy, and follows no
// redirect.
func newClient(private bool, trust *tls.Config) *http.Client {
	dialer := &net.Dialer{Timeout: dialLimit}
	if !private {
		dialer.Control = onlyPublic
	}
	return &http.Client{
		Timeout: attemptLimit,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, address)
			},
			TLSClientConfig:   trust,
			DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
