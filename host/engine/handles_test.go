package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHandleTableFindsOnlyLiveHandles compares the table with a map after random adds and removes: only
// live handles are found, and only by their kind.
func TestHandleTableFindsOnlyLiveHandles(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	var table handleTable
	live := map[uint32]kind{}
	var dead []uint32
	for range 20000 {
		if random.IntN(2) == 0 && len(live) < maxHandles {
			k := kind(1 + random.IntN(len(kindNames)-1))
			h, ok := table.add(k, random.IntN(100), noParent)
			require.True(t, ok)
			require.NotZero(t, h)
			require.NotContains(t, live, h)
			live[h] = k
			continue
		}
		for h, k := range live {
			at, ok := table.find(h, k)
			require.True(t, ok)
			_, ok = table.find(h, k%kindConnection+1)
			require.False(t, ok, "another kind")
			require.True(t, table.remove(at))
			delete(live, h)
			dead = append(dead, h)
			break
		}
	}
	for _, h := range dead {
		if _, again := live[h]; !again {
			for k := range kind(len(kindNames)) {
				_, ok := table.find(h, k)
				require.False(t, ok, "dropped handle %d as %v", h, k)
			}
		}
	}
}

func TestHandleTableIsBounded(t *testing.T) {
	var table handleTable
	for range maxHandles {
		_, ok := table.add(kindFields, 0, noParent)
		require.True(t, ok)
	}
	_, ok := table.add(kindFields, 0, noParent)
	require.False(t, ok)
}

func TestParentOutlivesItsChildren(t *testing.T) {
	var table handleTable
	parent, _ := table.add(kindOutgoingBody, 0, noParent)
	at, _ := table.find(parent, kindOutgoingBody)
	child, _ := table.add(kindOutputStream, 0, at)
	require.False(t, table.remove(at))
	childAt, _ := table.find(child, kindOutputStream)
	require.True(t, table.remove(childAt))
	require.True(t, table.remove(at))
}

func TestSlotIsRetiredWithItsLastGeneration(t *testing.T) {
	table := handleTable{slots: []slot{{generation: 1<<(32-slotBits) - 2}}, free: []int32{0}}
	last, _ := table.add(kindFields, 0, noParent)
	at, ok := table.find(last, kindFields)
	require.True(t, ok)
	require.True(t, table.remove(at))
	next, _ := table.add(kindFields, 0, noParent)
	require.Equal(t, uint32(1), next&slotMask, "another slot")
}

func FuzzHandleIsFoundOnlyIfMade(f *testing.F) {
	f.Add(uint32(0), uint8(1))
	f.Add(uint32(1<<slotBits), uint8(kindFields))
	f.Fuzz(func(t *testing.T, h uint32, k uint8) {
		var table handleTable
		made, _ := table.add(kindFields, 3, noParent)
		_, ok := table.find(h, kind(k))
		require.Equal(t, h == made && kind(k) == kindFields, ok)
	})
}
