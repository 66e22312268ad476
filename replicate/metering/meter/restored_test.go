package meter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARestoredLedgerCompensatesNothingThatWasBought restores a backup from before an edge gave its lease back,
// which another edge has spent since. That one reports first, while the ledger still takes the lease for held.
func TestARestoredLedgerCompensatesNothingThatWasBought(t *testing.T) {
	const credits, first, second = 20, 1, 16
	for _, announced := range []bool{true, false} {
		t.Run(fmt.Sprint("announced ", announced), func(t *testing.T) {
			t.Parallel()
			c := startCentre(t, nil)
			one, two := c.edge("one"), c.edge("two")
			account := c.account("growth", credits)
			require.Empty(t, one.found(account))
			eventually(t, func() bool { return c.read(account).Spent == first }, "it is reported")
			require.Greater(t, c.read(account).Leased, int64(credits-first-second), "else nothing has to come back")
			restored := c.backup()
			for range second {
				require.Empty(t, two.found(account))
			}
			eventually(t, func() bool { return c.read(account).Spent == first+second }, "it is reported")

			c.stop()
			c.dir = restored
			c.cut["one"].Store(true)
			c.start(announced)
			eventually(t, func() bool { return c.read(account).Spent == first+second }, "it is reported again")
			c.cut["one"].Store(false)
			for range credits - first - second {
				eventually(t, func() bool { return one.found(account) == "" }, "the rest can be spent")
			}
			require.Zero(t, c.read(account).Compensated)
		})
	}
}
