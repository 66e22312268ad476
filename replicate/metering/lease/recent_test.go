package lease

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

func TestRememberedIDsAreBounded(t *testing.T) {
	r := newRecentIDs()
	for i := range recentLimit + 10 {
		r.put(entry{high: uint64(i), low: 1, at: start + int64(i)})
	}
	require.Len(t, r.pages, recentLimit/pageEntries)
	require.Nil(t, r.find(sum{9, 1}))
	require.NotNil(t, r.find(sum{10, 1}))
	require.Nil(t, r.find(sum{10, 2}))
	require.Equal(t, start+9, r.forgotten)
	require.True(t, r.tooOld("00000000000000000000000000"))
	require.False(t, r.tooOld("7ZZZZZZZZZ0000000000000000"))
	require.False(t, r.tooOld("another-form"))
}

// TestAClockThatWasSetBackMakesNoForgottenIDNew: its charge may stand, and a void must not say that there is none.
func TestAClockThatWasSetBackMakesNoForgottenIDNew(t *testing.T) {
	r := newRecentIDs()
	for i := range recentLimit + 2 {
		at := start
		if i == 0 {
			at += 60_000 // the clock was ahead
		}
		r.put(entry{high: uint64(i), low: 1, at: at})
	}
	require.Nil(t, r.find(sum{0, 1}))
	require.True(t, r.tooOld(syncproto.RequestIDsFrom(start+60_000)+"0000000000000000"))
	require.False(t, r.tooOld(syncproto.RequestIDsFrom(start+60_001)+"0000000000000000"))
}

func TestAVerdictIsRememberedByItsCode(t *testing.T) {
	for _, code := range codes {
		require.Equal(t, code, codes[codeIndex(code)])
	}
	require.Equal(t, charge.MeteringUnavailable, codes[codeIndex("of a later version")])
}

func TestAnEntryIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(entry{}), uintptr(64), "an edge keeps 131,072 of them")
}

// TestRememberedIDsAreFound compares the ring with a map, with many ids that come again.
func TestRememberedIDsAreFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	r, want := newRecentIDs(), map[sum]int64{}
	var order []sum
	check := func() {
		for _, s := range order {
			if key, ok := want[s]; ok {
				require.NotNil(t, r.find(s))
				require.Equal(t, key, r.find(s).key)
			} else {
				require.Nil(t, r.find(s))
			}
		}
	}
	for n := range int64(3 * recentLimit) {
		if n == 3*recentLimit/2 || n == 2*recentLimit {
			check() // while ids come again that were there before
		}
		s := sum{random.Uint64() % (2 * recentLimit), uint32(random.IntN(4))}
		if n > 2*recentLimit { // far apart again
			s.high = random.Uint64()
		}
		if random.IntN(5) == 0 && len(order) > 0 {
			gone := order[random.IntN(len(order))]
			r.forget(gone)
			delete(want, gone)
		}
		r.put(entry{key: n}.named(s))
		want[s], order = n, append(order, s)
		if len(order) > recentLimit {
			oldest := order[0]
			if want[oldest] == n-recentLimit {
				delete(want, oldest)
			}
			order = order[1:]
		}
	}
	check()
}
