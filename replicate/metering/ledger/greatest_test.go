package ledger_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// TestThePlanWithTheGreatestVolumeServesAfterALoss: what a retired node held is added to the volume as compensated, which
// then exceeds an int64.
func TestThePlanWithTheGreatestVolumeServesAfterALoss(t *testing.T) {
	l := newLedger(t, 1, 100, "gone", "here")
	plan, _ := l.Plan(l.Account(1).Plan)
	plan.MonthlyVolume = math.MaxInt64
	l.SetPlan(at, plan)
	volume := volumeOf(syncproto.Month(at))
	newSpender(t, l, "gone", 1).want(10, volume)
	require.NoError(t, l.Retire(at, "gone", false))
	rows := newSpender(t, l, "here", 1).want(10, volume).Rows
	require.Len(t, rows, 1)
	require.EqualValues(t, 10, rows[0].Granted)
	require.False(t, rows[0].Dry)
	require.NoError(t, l.ChangeCredits(at, 1, 1, ledger.EntryBought, ""))
	require.NoError(t, l.Check())
}
