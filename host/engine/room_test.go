package engine

import (
	"bytes"
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

// TestEveryResultIsWrittenWhole into memory that has something else in it: the guest reads which case it is.
func TestEveryResultIsWrittenWhole(t *testing.T) {
	i := idleInstance(t)
	out := i.alloc(64, 8)
	name, database, statement := "meter_url", "registry", "SELECT 1"
	namePtr, databasePtr, statementPtr := memoryWith(t, i, name), memoryWith(t, i, database), memoryWith(t, i, statement)
	word := func(at int) uint32 { return get32(i.bytes(out, 64), at) }
	call := func(f func(*instance, []uint64), stack ...uint64) []uint64 {
		t.Helper()
		require.True(t, i.memory.Write(out, bytes.Repeat([]byte{0xff}, 64)))
		f(i, append(stack, uint64(out)))
		require.Zero(t, word(0), "it went well")
		return stack
	}
	call(fieldsFromList, 0, 0)
	require.NotEqual(t, ^uint32(0), word(4))
	call(variableGet, uint64(namePtr), uint64(len(name)))
	require.Equal(t, testVariables()[name], string(i.bytes(word(4), word(8))))
	call(sqliteOpen, uint64(databasePtr), uint64(len(database)))
	connection := uint64(word(4))
	call(sqliteExecute, connection, uint64(statementPtr), uint64(len(statement)), 0, 0)
	require.Equal(t, []uint32{1, 1}, []uint32{word(8), word(16)}, "a column, a row")
	wallNow(i, []uint64{uint64(out)})
	require.EqualValues(t, 1763700000, get64(i.bytes(out, 64), 0))

	_, ref := i.newFields()
	stack := []uint64{uint64(i.add(kindFields, ref, noParent))}
	newResponse(i, stack)
	call(responseBody, stack[0])
	require.EqualValues(t, 0, i.ref(uint64(word(4)), kindOutgoingBody))
	responseBody(i, []uint64{stack[0], uint64(out)})
	require.EqualValues(t, 1, word(0), "the second time is an error")

	_, ref = i.newFields()
	i.requests = append(i.requests, outgoingRequest{fields: ref, scheme: "http", authority: "meter.internal", method: "GET"})
	call(handleOutgoing, uint64(i.add(kindOutgoingRequest, len(i.requests)-1, noParent)), 0, 0)
	future := uint64(word(8))
	require.True(t, i.memory.Write(out, bytes.Repeat([]byte{0xff}, 64)))
	futureGet(i, []uint64{future, uint64(out)})
	require.Equal(t, []uint32{1, 0, 0}, []uint32{word(0), word(8), word(16)}, "some, good, good")
	require.Equal(t, 401, i.answers[i.ref(uint64(word(24)), kindIncomingResponse)].status)
}

// TestAnInstanceInUseIsNotKeptByThePool: one that is discarded then would keep its memory.
func TestAnInstanceInUseIsNotKeptByThePool(t *testing.T) {
	p := &pool{}
	require.True(t, p.push(&instance{}))
	i, _ := p.pop()
	require.NotNil(t, i)
	require.Nil(t, p.idle[:1][0])
}
