package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnAllocationMayEndWhereTheMemoryEnds, and no further.
func TestAnAllocationMayEndWhereTheMemoryEnds(t *testing.T) {
	i := idleInstance(t)
	begin := i.alloc(8, 8) + 8
	rest := i.memory.Size() - begin
	ptr, err := i.checkedRealloc(rest, 8)
	require.NoError(t, err)
	require.Equal(t, i.memory.Size(), ptr+rest)
	_, err = i.checkedRealloc(8, 8)
	require.Error(t, err)
}
