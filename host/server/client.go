package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks of trusted proxies, whose forwarding headers are believed.
type Proxies []netip.Prefix

// ParseProxies reads networks in CIDR form, or single addresses.
func ParseProxies(texts []string) (Proxies, error) {
	var proxies Proxies
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil {
				return nil, fmt.Errorf("trusted proxy %q: want a network such as 10.0.0.0/8, or an address", text)
			}
			addr = addr.Unmap()
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if prefix.Addr().Is4In6() { // connections from there count as IPv4
			return nil, fmt.Errorf("trusted proxy %q: want the network in IPv4, such as 10.0.0.0/8", text)
		}
		proxies = append(proxies, prefix.Masked())
	}
	return proxies, nil
}

func (p Proxies) trust(addr netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// peer is the remote address of a connection, parsed once for all its requests.
type peer struct {
	addr netip.Addr
	text string
	conn *counted // nil if the connection is not counted
}

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerAt(c))
}

func peerAt(c net.Conn) *peer {
	p := parsePeer(c.RemoteAddr().String())
	p.conn = countedOf(c)
	return p
}

// parsePeer parses "address:port" and drops the port and the zone.
func parsePeer(remote string) *peer {
	parsed, err := netip.ParseAddrPort(remote)
	if err != nil {
		return &peer{}
	}
	addr := parsed.Addr().Unmap().WithZone("")
	return &peer{addr: addr, text: addr.String()}
}

func peerOf(r *http.Request) *peer {
	if p, ok := r.Context().Value(peerKey{}).(*peer); ok {
		return p
	}
	return parsePeer(r.RemoteAddr)
}

// fields are a request's header fields: a handler.Request or an http.Header.
type fields interface{ Values(name string) []string }

// client returns the client's address: the connection's, or, if that is a trusted proxy, the last address in
// Forwarded (RFC 7239) or X-Forwarded-For that is not a trusted proxy.
//
// A proxy writes one of the two fields and passes on whatever the client put into the other. So if both exist
// and disagree, the address is unknown, and client returns "". It does not fall back to the proxy's address: a
// key may be limited to networks that include the proxy.
func (p Proxies) client(from *peer, header fields) string {
	if len(p) == 0 || !p.trust(from.addr) {
		return from.text
	}
	forwarded, forwardedFor := header.Values("Forwarded"), header.Values("X-Forwarded-For")
	hasForwarded, hasForwardedFor := len(forwarded) > 0, len(forwardedFor) > 0
	standard := p.lastUntrusted(from.addr, forwardedAddresses(forwarded))
	usual := p.lastUntrusted(from.addr, listed(forwardedFor))
	switch {
	case hasForwarded && hasForwardedFor && standard != usual:
		return ""
	case hasForwarded:
		return standard.String()
	case hasForwardedFor:
		return usual.String()
	}
	return from.text
}

// Client returns the client's address of a request, for handlers outside the Server.
func (p Proxies) Client(r *http.Request) string { return p.client(peerOf(r), r.Header) }

// lastUntrusted walks from the nearest hop to the farthest. It returns the first one that is not a
// trusted proxy, or the one before a hop that is not an address.
func (p Proxies) lastUntrusted(nearest netip.Addr, hops []string) netip.Addr {
	client := nearest
	for i := len(hops) - 1; i >= 0; i-- {
		hop, ok := parseHop(hops[i])
		if !ok {
			return client
		}
		client = hop
		if !p.trust(hop) {
			return client
		}
	}
	return client
}

// parseHop parses an address with or without a port. An IPv6 address may be in brackets.
func parseHop(text string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone(""), true
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	addr, err := netip.ParseAddr(text)
	return addr.Unmap().WithZone(""), err == nil
}

// listed returns the elements of a comma-separated field, from all its lines.
func listed(lines []string) []string {
	var elements []string
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			elements = append(elements, strings.TrimSpace(element))
		}
	}
	return elements
}

// forwardedAddresses returns the for= parameter of each element of Forwarded, or "" for an element
// without one.
func forwardedAddresses(lines []string) []string {
	var addresses []string
	for _, element := range listed(lines) {
		address := ""
		for parameter := range strings.SplitSeq(element, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
			if strings.EqualFold(name, "for") {
				address = strings.Trim(value, `"`)
			}
		}
		addresses = append(addresses, address)
	}
	return addresses
}
