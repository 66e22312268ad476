package engine

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/wasm/labels"
)

// trapOf is the reason for which a host function traps, "" if it does not.
func trapOf(f func()) (reason string) {
	defer func() {
		if v := recover(); v != nil {
			reason = v.(*fault).Error()
		}
	}()
	f()
	return ""
}

// TestClientsDoNotNameTheirOwnAddress: the sandbox counts by it, and logs have it.
func TestClientsDoNotNameTheirOwnAddress(t *testing.T) {
	databases, _ := newDatabases(t)
	meter := newLedger()
	e := newEngine(t, realConfig(databases, meter))
	for _, name := range []string{labels.ClientAddrHeader, strings.ToUpper(labels.ClientAddrHeader)} {
		req := lookup("/v1/companies/"+madeUpCIN, ident.SandboxKey)
		req.Headers = append([]handler.Header{{Name: name, Value: "203.0.113.66"}}, req.Headers...)
		clear(meter.charged)
		var resp handler.Response
		require.NoError(t, e.Answer(t.Context(), req, &resp))
		require.Equal(t, http.StatusOK, resp.Status)
		require.Len(t, meter.charged, 1)
		for _, r := range meter.charged {
			require.Equal(t, "192.0.2.1", r.Client)
		}
	}
}

// TestOneRequestGetsABoundedAmountOfMemory: the results of many calls, each within its own limit.
func TestOneRequestGetsABoundedAmountOfMemory(t *testing.T) {
	i := idleInstance(t)
	i.lowered = maxLowerBytes - 16
	require.Empty(t, trapOf(func() { i.alloc(16, 8) }))
	require.Contains(t, trapOf(func() { i.alloc(1, 1) }), "over the limit")
}

// TestSizesOfTheGuestDoNotOverflow: a count times a size that is 0 in 32 bits.
func TestSizesOfTheGuestDoNotOverflow(t *testing.T) {
	i := idleInstance(t)
	require.Contains(t, trapOf(func() { i.newBlock(1<<32 + 8) }), "over the limit")
	require.Contains(t, trapOf(func() { i.list(0, 1<<28, 16, 4) }), "over the limit")
	require.Contains(t, trapOf(func() { i.list(0, 1<<31, 2, 1) }), "over the limit")
	require.Contains(t, trapOf(func() { i.bytes(0, maxLiftBytes+1) }), "over the limit")
	require.NotContains(t, trapOf(func() { i.bytes(0, maxLiftBytes) }), "over the limit")
	require.Contains(t, trapOf(func() { i.bytes(1<<32-1, 2) }), "out of range")
	require.Contains(t, trapOf(func() { i.newBlock(maxLowerBytes + 1) }), "over the limit")
}

// memoryWith is the address of guest memory with a text.
func memoryWith(t *testing.T, i *instance, text string) uint32 {
	t.Helper()
	ptr := i.alloc(uint32(len(text)), 8)
	require.True(t, i.memory.Write(ptr, []byte(text)))
	return ptr
}

func TestWhatAnInstanceKeepsOfItsGuestIsBounded(t *testing.T) {
	i := idleInstance(t)
	for n := range 3 * maxStatementTexts {
		text := fmt.Sprintf("SELECT %d", n)
		ptr := memoryWith(t, i, text)
		require.Equal(t, text, i.statementText(ptr, uint32(len(text))))
		require.Equal(t, text, i.statementText(ptr, uint32(len(text))))
		require.LessOrEqual(t, len(i.statementTexts), maxStatementTexts)
	}
	long := strings.Repeat("n", maxKnownName+1)
	for _, name := range []string{"short", long} {
		tuple := make([]byte, 16)
		put32(tuple, 0, memoryWith(t, i, name))
		put32(tuple, 4, uint32(len(name)))
		list, _ := i.newFields()
		require.Equal(t, none, i.liftFields(list, tuple))
		require.Equal(t, name, list.entries[0].Name)
	}
	for _, known := range i.names.of(1) {
		require.Equal(t, "short", known)
	}
}

func TestParametersAndConnectionsAreBounded(t *testing.T) {
	i := idleInstance(t)
	require.Contains(t, trapOf(func() { i.liftParameters(0, maxParameters+1) }), "over 64 parameters")
	empty := i.alloc(maxParameters*valueSize, 8)
	require.True(t, i.memory.Write(empty, make([]byte, maxParameters*valueSize)))
	require.Empty(t, trapOf(func() { i.liftParameters(empty, maxParameters) }))
	require.Len(t, i.parameters, maxParameters)

	const database = "registry"
	name, out := memoryWith(t, i, database), i.alloc(16, 8)
	open := func() { sqliteOpen(i, []uint64{uint64(name), uint64(len(database)), uint64(out)}) }
	for range maxConnections {
		require.Empty(t, trapOf(open))
	}
	require.Contains(t, trapOf(open), "over 16 connections")
}

func TestHeaderFieldsOfAGuestAreBoundedInBytes(t *testing.T) {
	i := idleInstance(t)
	for size, trapped := range map[int]bool{maxFieldBytes - 1: false, maxFieldBytes: true} {
		tuple := make([]byte, 16)
		put32(tuple, 0, memoryWith(t, i, "n"))
		put32(tuple, 4, 1)
		put32(tuple, 8, memoryWith(t, i, strings.Repeat("v", size)))
		put32(tuple, 12, uint32(size))
		list, _ := i.newFields()
		require.Equal(t, trapped, trapOf(func() { i.liftFields(list, tuple) }) != "", "%d bytes and a name of one", size)
	}
	for size, trapped := range map[int]bool{maxFieldBytes/2 - 1: false, maxFieldBytes / 2: true} {
		tuples := make([]byte, 2*16)
		name, value := memoryWith(t, i, "n"), memoryWith(t, i, strings.Repeat("v", size))
		for _, at := range []int{0, 16} {
			put32(tuples, at, name)
			put32(tuples, at+4, 1)
			put32(tuples, at+8, value)
			put32(tuples, at+12, uint32(size))
		}
		list, _ := i.newFields()
		require.Equal(t, trapped, trapOf(func() { i.liftFields(list, tuples) }) != "", "twice %d bytes", size)
	}
}

// TestSpareMemoryStaysAligned: sizes are rounded up, but never beyond the end.
func TestSpareMemoryStaysAligned(t *testing.T) {
	s := span{ptr: 64, size: 32}
	for _, c := range []struct{ size, ptr, left uint32 }{{1, 64, 24}, {8, 72, 16}, {9, 80, 0}} {
		require.Equal(t, c.ptr, s.take(c.size))
		require.Equal(t, c.left, s.size)
	}
	s = span{ptr: 64, size: 5}
	require.EqualValues(t, 64, s.take(5))
	require.Equal(t, span{ptr: 69}, s)

	i := idleInstance(t)
	i.spare = span{i.alloc(8, blockAlign), 8}
	small := i.spare
	require.NotEqual(t, small.ptr, i.newBlock(9).base, "it would reach into other memory")
	i.spare = small
	require.Equal(t, small.ptr, i.newBlock(8).base)
}

func TestTheLargestLimitsAreAllowed(t *testing.T) {
	good := realConfig(nil, newLedger()).withDefaults()
	for _, c := range []struct {
		change func(c *Config)
		ok     bool
	}{
		{func(c *Config) { c.StepLimit = math.MaxInt32 }, true}, {func(c *Config) { c.StepLimit = math.MaxInt32 + 1 }, false},
		{func(c *Config) { c.StepLimit = -1 }, false},
		{func(c *Config) { c.MemoryLimit = pageSize }, true}, {func(c *Config) { c.MemoryLimit = pageSize - 1 }, false},
		{func(c *Config) { c.MemoryLimit = 1 << 30 }, true}, {func(c *Config) { c.MemoryLimit = 1<<30 + 1 }, false},
		{func(c *Config) { c.MaxInstances = 1 }, true}, {func(c *Config) { c.MaxInstances = -1 }, false},
		{func(c *Config) { c.Timeout = -1 }, false}, {func(c *Config) { c.Timeout = 1 }, true},
		{func(c *Config) { c.Meter = nil }, false}, {func(c *Config) { c.Clock = nil }, false}, {func(c *Config) { c.Random = nil }, false},
	} {
		config := good
		c.change(&config)
		require.Equal(t, c.ok, config.check() == nil, "%+v", config)
	}
}

// TestAFinalResponseHasAStatusOfOne.
func TestAFinalResponseHasAStatusOfOne(t *testing.T) {
	i := idleInstance(t)
	_, ref := i.newFields()
	stack := []uint64{uint64(i.add(kindFields, ref, noParent))}
	newResponse(i, stack)
	response := stack[0]
	for status, refused := range map[uint64]uint64{100: 1, 101: 1, 199: 1, 200: 0, 599: 0, 600: 1} {
		stack := []uint64{response, status}
		setStatus(i, stack)
		require.Equal(t, refused, stack[0], "%d", status)
	}
}

// TestTheMeterIsAskedWithItsTokenAtItsAddress: everything else is denied, as a request of the guest to
// another server would be.
func TestTheMeterIsAskedWithItsTokenAtItsAddress(t *testing.T) {
	i := idleInstance(t)
	r := charge.Request{ID: "r", Account: 7, Key: 12, PerMinute: 60, Endpoint: charge.Companies, Outcome: charge.Found}
	for name, c := range map[string]struct {
		scheme, authority, method, target, token string
		failure                                  uint64
		status                                   int
	}{
		"right":            {"http", "meter.internal", "POST", r.Target(), "token-of-the-meter", 0, 200},
		"another scheme":   {"https", "meter.internal", "POST", r.Target(), "token-of-the-meter", errorDenied, 0},
		"another server":   {"http", "example.com", "POST", r.Target(), "token-of-the-meter", errorDenied, 0},
		"another token":    {"http", "meter.internal", "POST", r.Target(), "token-of-the-meteR", 0, 401},
		"no token":         {"http", "meter.internal", "POST", r.Target(), "", 0, 401},
		"another method":   {"http", "meter.internal", "GET", r.Target(), "token-of-the-meter", 0, 405},
		"another path":     {"http", "meter.internal", "POST", "/v1/other", "token-of-the-meter", 0, 404},
		"a malformed void": {"http", "meter.internal", "POST", charge.VoidPath, "token-of-the-meter", 0, 400},
		"a void":           {"http", "meter.internal", "POST", charge.VoidTarget("r"), "token-of-the-meter", 0, 204},
	} {
		fields, ref := i.newFields()
		if c.token != "" {
			fields.entries = append(fields.entries, handler.Header{Name: "AUTHORIZATION", Value: "Bearer " + c.token})
		}
		answer, failure := i.callMeter(&outgoingRequest{fields: ref, method: c.method, target: c.target, scheme: c.scheme, authority: c.authority})
		require.Equal(t, c.failure, failure, name)
		if failure == 0 {
			require.Equal(t, c.status, answer.status, name)
		}
	}
}

// TestWhatOneRequestDidIsNotCountedInTheNext, on the same instance.
func TestWhatOneRequestDidIsNotCountedInTheNext(t *testing.T) {
	i := idleInstance(t)
	i.lowered, i.calls, i.statements, i.outgoing = 1, 2, 3, 4
	i.parameters = append(i.parameters, handler.Value{Kind: handler.Text, Text: "secret"})
	i.charges = append(i.charges, "r")
	i.end()
	i.begin(t.Context(), time.Minute, i.reserved, lookup("/o", ""), &handler.Response{})
	require.Zero(t, i.lowered)
	require.Zero(t, i.calls+i.statements+i.outgoing)
	require.Empty(t, i.charges)
	require.Equal(t, i.reserved, i.spare)
	require.NotContains(t, fmt.Sprint(i.parameters[:cap(i.parameters)]), "secret")
}

// punctual is a meter whose calls end with their context, as every meter's may.
type punctual struct {
	*ledger
	charges, voids []time.Duration // how long each call was given
}

func (m *punctual) Charge(ctx context.Context, r charge.Request) charge.Verdict {
	until, _ := ctx.Deadline()
	m.charges = append(m.charges, time.Until(until))
	return m.ledger.Charge(ctx, r)
}

func (m *punctual) Void(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	until, _ := ctx.Deadline()
	m.voids = append(m.voids, time.Until(until))
	return m.ledger.Void(ctx, id)
}

// TestAVoidOutlivesItsClient, and is limited in time: the charge of a failed request must not stand
// because the client has gone.
func TestAVoidOutlivesItsClient(t *testing.T) {
	meter := &punctual{ledger: newLedger()}
	e := newEngine(t, hostileConfig(t, meter))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	var resp handler.Response
	require.ErrorIs(t, e.Answer(ctx, lookup("/F", ""), &resp), ErrGuest)
	require.Zero(t, meter.standing())
	require.Len(t, meter.voids, 1)
	require.Positive(t, meter.voids[0], "there is a limit")
	require.LessOrEqual(t, meter.voids[0], meterLimit)
}

// TestCallsOfTheMeterAreLimitedToASecond, however long the request may take.
func TestCallsOfTheMeterAreLimitedToASecond(t *testing.T) {
	meter := &punctual{ledger: newLedger()}
	config := hostileConfig(t, meter)
	config.Timeout = time.Hour
	e := newEngine(t, config)
	var resp handler.Response
	require.NoError(t, e.Answer(t.Context(), lookup("/H", ""), &resp))
	require.ErrorIs(t, e.Answer(t.Context(), lookup("/Z", ""), &resp), ErrGuest) // voids its charge
	require.NotEmpty(t, meter.voids)
	for _, given := range append(meter.charges, meter.voids...) {
		require.Positive(t, given, "there is a limit")
		require.LessOrEqual(t, given, meterLimit)
	}
}

// TestAChargeWithoutAVerdictIsVoidedToo, when its request fails: it may have been made.
func TestAChargeWithoutAVerdictIsVoidedToo(t *testing.T) {
	i := idleInstance(t)
	meter := i.engine.config.Meter.(*ledger)
	meter.code = charge.MeteringUnavailable
	r := charge.Request{ID: "r", Account: 7, Key: 12, PerMinute: 60, Endpoint: charge.Companies, Outcome: charge.Found}
	_, query, _ := strings.Cut(r.Target(), "?")
	answer, _ := i.newFields()
	for range 2 { // the handler asks again
		require.Equal(t, http.StatusServiceUnavailable, i.serveCharge(query, answer))
	}
	require.NoError(t, i.voidCharges(t.Context()))
	require.Equal(t, []string{"r"}, meter.voided, "once")
}

// TestTheGuestSeesOneClientAddress, whatever a client sends under that name.
func TestTheGuestSeesOneClientAddress(t *testing.T) {
	i := idleInstance(t)
	i.request.Headers = append(i.request.Headers,
		handler.Header{Name: labels.ClientAddrHeader, Value: "203.0.113.66"}, handler.Header{Name: strings.ToUpper(labels.ClientAddrHeader), Value: "203.0.113.67"})
	stack := []uint64{uint64(i.add(kindIncomingRequest, 0, noParent))}
	requestHeaders(i, stack)
	var seen []string
	for _, field := range i.fields[i.ref(stack[0], kindFields)].entries {
		if strings.EqualFold(field.Name, labels.ClientAddrHeader) {
			seen = append(seen, field.Value)
		}
	}
	require.Equal(t, []string{"192.0.2.1"}, seen)
}

// TestABodyTakesSoMuch, to the last byte.
func TestABodyTakesSoMuch(t *testing.T) {
	i := idleInstance(t)
	i.bodies = append(i.bodies, outgoingBody{data: make([]byte, maxBodyBytes-maxWriteBytes)})
	body := &i.bodies[len(i.bodies)-1]
	stream := uint64(i.add(kindOutputStream, len(i.bodies)-1, noParent))
	data, out := memoryWith(t, i, strings.Repeat("abcd", maxWriteBytes/4)+"e"), i.alloc(12, 4)
	write := func(size uint64) string {
		return trapOf(func() { streamWrite(i, []uint64{stream, uint64(data), size, uint64(out)}) })
	}
	require.Contains(t, write(maxWriteBytes+1), "write of 4097 bytes is over the limit")
	require.Empty(t, write(maxWriteBytes))
	require.Equal(t, strings.Repeat("abcd", maxWriteBytes/4), string(body.data[maxBodyBytes-maxWriteBytes:]))
	require.Contains(t, write(1), "body is over the limit")
	require.Len(t, body.data, maxBodyBytes)
}
