package writer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAKeyHasAtMostThePlansRate(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, free := keyFor(t, client) // starter: 60 a minute
	require.Zero(t, free.PerMinute)
	k, err := client.AddKeyWith(t.Context(), account, KeySettings{PerMinute: 60})
	require.NoError(t, err)
	require.EqualValues(t, 60, readAccessKey(t, w, k.ID).perMinute)
	rate := int64(7)
	changed, err := client.ChangeKey(t.Context(), k.ID, KeyChange{PerMinute: &rate})
	require.NoError(t, err)
	require.EqualValues(t, 7, changed.PerMinute)
	require.EqualValues(t, 7, readAccessKey(t, w, k.ID).perMinute)
	name := "renamed"
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{Name: &name})
	require.NoError(t, err)
	require.EqualValues(t, 7, changed.PerMinute, "what is left out stays")
	for _, wrong := range []int64{-1, 61} {
		_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{PerMinute: &wrong})
		require.ErrorIs(t, err, ErrMalformed)
		_, err = client.AddKeyWith(t.Context(), account, KeySettings{PerMinute: wrong})
		require.ErrorIs(t, err, ErrMalformed)
	}
	_, err = client.SetPlan(t.Context(), Plan{ID: "small", APIAccess: true, PerMinute: 5, MonthlyVolume: 100})
	require.NoError(t, err)
	small := "small"
	_, err = client.ChangeAccount(t.Context(), account, AccountChange{Plan: &small})
	require.NoError(t, err)
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{PerMinute: &rate})
	require.NoError(t, err, "it has that already")
	require.EqualValues(t, 7, changed.PerMinute)
	none := int64(0)
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{PerMinute: &none})
	require.NoError(t, err)
	require.Zero(t, changed.PerMinute)
	require.Zero(t, readAccessKey(t, w, k.ID).perMinute)
}
