//go:build race

package journal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLockOrderIsChecked takes locks in the order of the list, and against it.
func TestLockOrderIsChecked(t *testing.T) {
	for first := RankArchiving; first <= RankDisk; first++ {
		for second := RankArchiving; second <= RankDisk; second++ {
			a, b := NewLock(first), NewLock(second)
			take := func() {
				a.Lock()
				defer a.Unlock()
				b.Lock()
				b.Unlock()
			}
			if first < second {
				require.NotPanics(t, take)
			} else {
				require.PanicsWithValue(t, "lock order: "+second.String()+" is taken while "+first.String()+" is held", take)
			}
		}
	}
	held.Lock()
	defer held.Unlock()
	require.Empty(t, held.by)
}
