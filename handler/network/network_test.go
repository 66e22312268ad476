package network

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func listOf(t testing.TB, networks ...string) List {
	var list []byte
	for _, text := range networks {
		p := netip.MustParsePrefix(text)
		require.Equal(t, p.Masked(), p, "of %s", text)
		list = Append(list, p.Addr().AsSlice(), p.Bits())
	}
	return List(list)
}

func TestContains(t *testing.T) {
	for _, test := range []struct {
		name     string
		networks []string
		address  string
		want     bool
	}{
		{"a network of IPv4", []string{"192.0.2.0/24"}, "192.0.2.77", true},
		{"not the one beside it", []string{"192.0.2.0/24"}, "192.0.3.77", false},
		{"bits within a byte", []string{"192.0.2.64/26"}, "192.0.2.127", true},
		{"and those beyond", []string{"192.0.2.64/26"}, "192.0.2.128", false},
		{"one address", []string{"192.0.2.7/32"}, "192.0.2.7", true},
		{"no other", []string{"192.0.2.7/32"}, "192.0.2.8", false},
		{"a network of IPv6", []string{"2001:db8:7::/48"}, "2001:db8:7:1::9", true},
		{"not another", []string{"2001:db8:7::/48"}, "2001:db8:8:1::9", false},
		{"one address of IPv6", []string{"2001:db8::7/128"}, "2001:db8:0:0:0:0:0:7", true},
		{"the second of a list", []string{"192.0.2.0/24", "2001:db8::/32", "198.51.100.0/24"}, "198.51.100.1", true},
		{"IPv4 in IPv6 form", []string{"192.0.2.0/24"}, "::ffff:192.0.2.1", true},
		{"all of IPv4", []string{"0.0.0.0/0"}, "203.0.113.9", true},
		{"all of IPv4 is not IPv6", []string{"0.0.0.0/0"}, "2001:db8::1", false},
		{"all of IPv6 is not IPv4", []string{"::/0"}, "::ffff:203.0.113.9", false},
		{"a zone does not count", []string{"fe80::/10"}, "fe80::1%eth0", true},
		{"no address is in none", []string{"0.0.0.0/0", "::/0"}, "", false},
		{"a name is in none", []string{"0.0.0.0/0", "::/0"}, "localhost", false},
		{"the empty list has nobody", nil, "192.0.2.7", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, listOf(t, test.networks...).Contains(test.address))
		})
	}
	t.Run("a damaged list ends at its damage", func(t *testing.T) {
		whole := listOf(t, "192.0.2.0/24", "198.51.100.0/24")
		for _, damaged := range []List{whole[:len(whole)-1], whole[:7], whole[:6] + "\x05\x08aaaaa", whole[:6] + "\x04\x21\xc6\x33\x64\x07"} {
			require.True(t, damaged.Contains("192.0.2.7"))
			require.False(t, damaged.Contains("198.51.100.7"))
		}
	})
}

// TestTheContractSaysHowManyNetworksAListHas at most.
func TestTheContractSaysHowManyNetworksAListHas(t *testing.T) {
	contract, err := os.ReadFile("../../docs/contract.md")
	require.NoError(t, err)
	require.Contains(t, string(contract), fmt.Sprintf("up to %d networks", MaxNetworks))
}

func TestEach(t *testing.T) {
	var got []string
	listOf(t, "192.0.2.0/24", "2001:db8::/32").Each(func(address string, bits int) {
		a, ok := netip.AddrFromSlice([]byte(address))
		require.True(t, ok)
		got = append(got, netip.PrefixFrom(a, bits).String())
	})
	require.Equal(t, []string{"192.0.2.0/24", "2001:db8::/32"}, got)
}

// The parser takes what netip takes, and reads the same from it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"192.0.2.7", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.0.0.1", "1..2.3", "", ":", "::", "::1", "1::", "1::2::3", ":::", "1:2:3:4:5:6:7:8",
		"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:8::", "1:2:3:4:5:6:7:8:", "::1:", "::1:2:3:4:5:6:7", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::ffff:192.0.2.1", "1:2:3:4:5:6:192.0.2.1",
		"1:2:3:4:5:6:7:192.0.2.1", "1.2.3.4::", "1:2:3.4.5.6:7::", "2001:DB8::aBcD", "12345::", "g::", "1:", ":1", "fe80::1%eth0", "::%", "%eth0", "1.2.3.4%a", "::1.2.3.4:5",
		"1:2:3:4:5:6:7::8", "1:2:3:4::5:6:7:8", "1:2:3:4::6:7:8", "1.2.3.a", "1.2.3./", "1.2.3.4 ", "255.255.255.255", "0.0.0.0", "::255.1.2.3", "::ffff:1.2.3.256",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		buffer := [16]byte{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7} // what was in it before does not count
		got := parse(text, &buffer)
		want, err := netip.ParseAddr(text)
		if err != nil {
			// An empty zone, or one of an IPv4 address in IPv6 form, is no address to netip.
			if got != nil && !zoned(text) {
				t.Errorf("parse(%q) = %x, want none", text, got)
			}
			return
		}
		if string(got) != string(want.Unmap().WithZone("").AsSlice()) {
			t.Errorf("parse(%q) = %x, want %v", text, got, want)
		}
	})
}

func zoned(text string) bool {
	for i := range len(text) {
		if text[i] == '%' {
			return true
		}
	}
	return false
}

func BenchmarkContains(b *testing.B) {
	list := listOf(b, "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
	for b.Loop() {
		list.Contains("2001:db8::7")
	}
}
