package search

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesOfSeveralGroupsAreInOneList: a list goes on in the next group, which may be larger.
func TestNamesOfSeveralGroupsAreInOneList(t *testing.T) {
	p := newPostings(t.TempDir())
	defer p.sorter.Close()
	words := ""
	for i := range 18 {
		words += fmt.Sprintf(" filler%c%c", 'a'+i, 'z'-i)
	}
	count, groups := int64(0), 0
	for ; groups < 3; count++ {
		held := len(p.pairs)
		require.NoError(t, p.add(16*(count+1), fmt.Sprintf("common w%d%s", count, words[:len(words)-9*((groups+1)%2)])))
		if len(p.pairs) < held {
			groups++
		}
	}
	require.NoError(t, p.end())
	lists, term := map[string][]int64{}, ""
	err := p.each(
		func(begun []byte) error {
			require.Less(t, term, string(begun))
			term = string(begun)
			return nil
		},
		func(place int64) error {
			if strings.HasPrefix(term, "=") {
				lists[term] = append(lists[term], place)
			}
			return nil
		})
	require.NoError(t, err)
	require.Len(t, lists["=common"], int(count))
	for i, place := range lists["=common"] {
		require.Equal(t, int64(16*(i+1)), place)
		require.Equal(t, []int64{place}, lists[fmt.Sprintf("=w%d", i)])
	}
}

// TestTermsAndPlacesOutOfOrderAreRefused: an index of them would be damaged.
func TestTermsAndPlacesOutOfOrderAreRefused(t *testing.T) {
	for _, after := range []string{"0b", "0", "0ab", "/"} {
		s := newSegment(1000, nil)
		require.NoError(t, s.begin([]byte("0b")))
		require.ErrorIs(t, s.begin([]byte(after)), errOrder, after)
	}
	for _, after := range []int64{16, 0} {
		s := newSegment(1000, nil)
		require.NoError(t, s.begin([]byte("0b")))
		require.NoError(t, s.add(16))
		require.ErrorIs(t, s.add(after), errOrder, after)
	}
}

func TestVarintsAreReadBack(t *testing.T) {
	for shift := range 56 {
		for _, n := range []uint64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			content := appendVarint([]byte{1}, n)
			got, size := readVarint(append(content, 0xff)[1:])
			require.Equal(t, n, got)
			require.Equal(t, len(content)-1, size)
			if n < 1<<7 {
				require.Equal(t, binary.AppendUvarint(nil, n), content[1:])
			}
		}
	}
}
