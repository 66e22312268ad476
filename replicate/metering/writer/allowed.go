package writer

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"regedge/handler/network"
)

// storedNetworks brings networks in CIDR form, and single addresses, into the form of the column allowed, in
// hexadecimal. Bits behind a prefix are dropped, and so are repeated networks.
func storedNetworks(texts []string) (string, error) {
	var list []byte
	var known []netip.Prefix
	for _, text := range texts {
		prefix, err := parseNetwork(strings.TrimSpace(text))
		if err != nil {
			return "", err
		}
		if slices.Contains(known, prefix) {
			continue
		}
		known = append(known, prefix)
		list = network.Append(list, prefix.Addr().AsSlice(), prefix.Bits())
	}
	if len(known) > network.MaxNetworks {
		return "", fmt.Errorf("%w: a key is limited to at most %d networks", ErrMalformed, network.MaxNetworks)
	}
	return hex.EncodeToString(list), nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if addr, addrErr := netip.ParseAddr(text); err != nil && addrErr == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if err != nil || prefix.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%w: %.60q is neither a network such as 192.0.2.0/24 or 2001:db8::/32 nor an address", ErrMalformed, text)
	}
	return prefix.Masked(), nil
}

// networksOf lists the networks of a stored list, never nil.
func networksOf(stored []byte) []string {
	list := []string{}
	network.List(stored).Each(func(address string, bits int) {
		addr, _ := netip.AddrFromSlice([]byte(address))
		list = append(list, netip.PrefixFrom(addr, bits).String())
	})
	return list
}
