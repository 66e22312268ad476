package engine

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheGuestIsToldTheMethod, one of those with a name in wasi:http, or any other as text.
func TestTheGuestIsToldTheMethod(t *testing.T) {
	i := idleInstance(t)
	request := uint64(i.add(kindIncomingRequest, 0, noParent))
	out := i.alloc(16, 8)
	told := func(method string) (which int, text string) {
		i.request.Method = method
		requestMethod(i, []uint64{request, uint64(out)})
		view := i.bytes(out, 12)
		which, ptr, size := int(get32(view, 0)), get32(view, 4), get32(view, 8)
		return which, string(i.bytes(ptr, size))
	}
	for n, name := range methodCases {
		which, text := told(name)
		require.Equal(t, n, which, name)
		require.Empty(t, text)
	}
	for _, name := range []string{"BREW", "get"} {
		which, text := told(name)
		require.Equal(t, methodOther, which)
		require.Equal(t, name, text)
	}
}

// TestAPollNamesWhatIsReady, by its place in the list.
func TestAPollNamesWhatIsReady(t *testing.T) {
	i := idleInstance(t)
	later := time.Now().Add(time.Hour)
	handles := i.alloc(maxPoll*4, 4)
	for n := range maxPoll {
		at := later
		if n == 3 || n == maxPoll-1 {
			at = alwaysReady
		}
		put32(i.bytes(handles, maxPoll*4), n*4, i.addPollable(at, noParent))
	}
	out := i.alloc(8, 4)
	poll(i, []uint64{uint64(handles), maxPoll, uint64(out)})
	view := i.bytes(out, 8)
	require.EqualValues(t, 2, get32(view, 4))
	list := i.bytes(get32(view, 0), 8)
	require.EqualValues(t, 3, get32(list, 0))
	require.EqualValues(t, maxPoll-1, get32(list, 4))
	require.Contains(t, trapOf(func() { poll(i, []uint64{uint64(handles), maxPoll + 1, uint64(out)}) }), "poll of 65")
	require.Contains(t, trapOf(func() { poll(i, []uint64{uint64(handles), 0, uint64(out)}) }), "poll of 0")
	require.Equal(t, later, earliest([]time.Time{later.Add(1), later, later.Add(2)}))
}

func TestTheLongestTimerIsNotReadyAtOnce(t *testing.T) {
	i := idleInstance(t)
	stack := []uint64{math.MaxUint64}
	subscribeDuration(i, stack)
	require.True(t, i.pollables[i.ref(stack[0], kindPollable)].at.After(time.Now()))
}

// TestARequestMayRunSoManyStatements, and one more fails it.
func TestARequestMayRunSoManyStatements(t *testing.T) {
	i := idleInstance(t)
	i.databases = append(i.databases, i.engine.config.Databases["registry"])
	connection := uint64(i.add(kindConnection, len(i.databases)-1, noParent))
	const statement = "SELECT 1"
	text, out := memoryWith(t, i, statement), i.alloc(24, 8)
	run := func() string {
		return trapOf(func() {
			sqliteExecute(i, []uint64{connection, uint64(text), uint64(len(statement)), 0, 0, uint64(out)})
		})
	}
	for range maxStatements {
		require.Empty(t, run())
		require.Zero(t, get32(i.bytes(out, 20), 0), "no error")
	}
	require.Contains(t, run(), "over 16 statements")
}

// TestARequestMayCallOutSoOften: the call after the last is answered with an error.
func TestARequestMayCallOutSoOften(t *testing.T) {
	i := idleInstance(t)
	_, fields := i.newFields()
	out := i.alloc(40, 8)
	call := func() uint64 {
		i.requests = append(i.requests, outgoingRequest{fields: fields, authority: "elsewhere"})
		request := uint64(i.add(kindOutgoingRequest, len(i.requests)-1, noParent))
		handleOutgoing(i, []uint64{request, 0, 0, uint64(out)})
		view := i.bytes(out, 40)
		require.EqualValues(t, 1, get32(view, 0))
		return get64(view, 8)
	}
	for range maxOutgoing {
		require.EqualValues(t, errorDenied, call())
	}
	require.EqualValues(t, errorLimitReached, call())
}

func TestTheMetersAddressIsASchemeAndAHost(t *testing.T) {
	for text, ok := range map[string]bool{
		"http://meter.internal": true, "https://meter.internal:8443/": true, "": true,
		"meter.internal": false, "ftp://meter.internal": false, "http://": false, "http://%zz": false, "//meter.internal": false,
		"http://meter.internal/path": false, "http://meter.internal?query": false, "http://user@meter.internal": false,
	} {
		address, err := newMeterAddress(map[string]string{variableMeterURL: text, variableMeterToken: "sesame"})
		require.Equal(t, ok, err == nil, text)
		require.NotContains(t, fmt.Sprint(err), "sesame", "errors are logged")
		if ok && text != "" {
			require.Equal(t, "Bearer sesame", address.authorization)
			require.True(t, address.allows(&outgoingRequest{scheme: address.scheme, authority: address.authority}))
			require.False(t, address.allows(&outgoingRequest{scheme: "other", authority: address.authority}))
			require.False(t, address.allows(&outgoingRequest{scheme: address.scheme, authority: "other"}))
		}
	}
	none := meterAddress{}
	require.False(t, none.allows(&outgoingRequest{}), "without a meter nothing is allowed")
}

// TestARequestWithoutASchemeHasNone, so that it goes nowhere.
func TestARequestWithoutASchemeHasNone(t *testing.T) {
	i := &instance{}
	i.requests = []outgoingRequest{{scheme: "https"}}
	request := uint64(i.add(kindOutgoingRequest, 0, noParent))
	stack := []uint64{request, 0, 0, 0, 0}
	setScheme(i, stack)
	require.Zero(t, stack[0])
	require.Empty(t, i.requests[0].scheme)
	stack = []uint64{request, 1, 0, 0, 0}
	setScheme(i, stack)
	require.Zero(t, stack[0])
	require.Equal(t, "http", i.requests[0].scheme)
}

// TestAVoidThatFailsIsAnError: the charge may stand.
func TestAVoidThatFailsIsAnError(t *testing.T) {
	meter := newLedger()
	m := &requestMeter{ctx: t.Context(), meter: meter}
	require.NoError(t, m.voidCharge(), "nothing was charged")
	require.Empty(t, meter.voided)
	m.charged = "id"
	require.NoError(t, m.voidCharge())
	require.Equal(t, []string{"id"}, meter.voided)
	meter.voidFail = errors.New("no answer")
	require.ErrorIs(t, m.voidCharge(), meter.voidFail)
}
