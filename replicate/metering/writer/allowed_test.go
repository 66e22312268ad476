package writer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/network"
)

func TestAKeyIsLimitedToNetworks(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, free := keyFor(t, client)
	require.Equal(t, []string{}, free.Allowed)
	require.Empty(t, readAccessKey(t, w, free.ID).allowed)

	k, err := client.AddKeyWith(t.Context(), account, KeySettings{
		Name: "office", Allowed: []string{"192.0.2.77/24", " 2001:db8::7 ", "192.0.2.0/24", "::ffff:198.51.100.1"},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"192.0.2.0/24", "2001:db8::7/128", "198.51.100.1/32"}, k.Allowed, "canonical, each once")
	list := network.List(readAccessKey(t, w, k.ID).allowed)
	require.True(t, list.Contains("192.0.2.200"))
	require.True(t, list.Contains("2001:db8::7"))
	require.False(t, list.Contains("2001:db8::8"))

	name := "server"
	changed, err := client.ChangeKey(t.Context(), k.ID, KeyChange{Name: &name})
	require.NoError(t, err)
	require.Equal(t, k.Allowed, changed.Allowed, "what is left out stays")
	rotated, err := client.RotateKey(t.Context(), k.ID, MaxOverlap)
	require.NoError(t, err)
	require.Equal(t, k.Allowed, rotated.Allowed)
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{Allowed: &[]string{}})
	require.NoError(t, err)
	require.Equal(t, []string{}, changed.Allowed)
	require.Empty(t, readAccessKey(t, w, k.ID).allowed)

	var most []string
	for n := range network.MaxNetworks {
		most = append(most, fmt.Sprintf("10.%d.0.0/16", n))
	}
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{Allowed: &most})
	require.NoError(t, err)
	require.Equal(t, most, changed.Allowed)
	twice := append(slices.Clone(most), most...)
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{Allowed: &twice})
	require.NoError(t, err)
	require.Equal(t, most, changed.Allowed, "a network that is given twice is one")
	for _, wrong := range [][]string{{"office"}, {""}, {"192.0.2.0/33"}, {"fe80::1%eth0"}, {"::ffff:192.0.2.0/120"}, append(most, "10.99.0.0/16")} {
		_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{Allowed: &wrong})
		require.ErrorIs(t, err, ErrMalformed, "%q", wrong)
		_, err = client.AddKeyWith(t.Context(), account, KeySettings{Allowed: wrong})
		require.ErrorIs(t, err, ErrMalformed, "%q", wrong)
	}
}
