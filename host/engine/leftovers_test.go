package engine

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/server"
)

// TestARequestLeavesNothingBehind for the next one on its instance, in any of its lists and counts.
func TestARequestLeavesNothingBehind(t *testing.T) {
	var x exchange
	x.begin(t.Context(), time.Minute, span{1, 2}, lookup("/o", ""), &handler.Response{})
	x.handles.add(kindFields, 0, noParent)
	x.fields = append(x.fields, fieldList{entries: []handler.Header{{Name: "a", Value: "secret"}}})
	x.requests, x.answers, x.futures = make([]outgoingRequest, 1), make([]incomingResponse, 1), make([]futureResponse, 1)
	x.responses, x.bodies, x.pollables = make([]outgoingResponse, 1), make([]outgoingBody, 1), make([]pollable, 1)
	x.databases, x.charges, x.parameters = make([]Database, 1), []string{"id"}, []handler.Value{{Text: "secret"}}
	x.result.Values = []handler.Value{{Text: "secret"}}
	x.lowered, x.calls, x.statements, x.outgoing = 1, 1, 1, 1
	entries, parameters, values := x.fields[0].entries, x.parameters, x.result.Values
	x.end()
	for name, n := range map[string]int{
		"handles": len(x.handles.slots), "fields": len(x.fields), "requests": len(x.requests), "answers": len(x.answers), "futures": len(x.futures),
		"responses": len(x.responses), "bodies": len(x.bodies), "pollables": len(x.pollables), "databases": len(x.databases),
		"charges": len(x.charges), "parameters": len(x.parameters), "values": len(x.result.Values),
		"lowered": int(x.lowered), "calls": x.calls, "statements": x.statements, "outgoing": x.outgoing, "spare": int(x.spare.size),
	} {
		require.Zero(t, n, name)
	}
	require.Empty(t, entries[0].Value+parameters[0].Text+values[0].Text, "overwritten, not just cut off")
	require.Nil(t, x.request)
	require.Nil(t, x.response)
}

// TestAnAnswerThatIsNotGivenIsEmpty: the content of an earlier response must not be sent.
func TestAnAnswerThatIsNotGivenIsEmpty(t *testing.T) {
	e, err := New(context.Background(), hostileConfig(t, newLedger()))
	require.NoError(t, err)
	require.NoError(t, e.Close(context.Background()))
	resp := handler.Response{Status: 200, Headers: []handler.Header{{Name: "a"}}, Body: []byte("left over"), Cause: errors.New("left over")}
	require.ErrorIs(t, e.Answer(t.Context(), lookup("/o", ""), &resp), ErrClosed)
	require.Zero(t, resp.Status)
	require.Empty(t, resp.Headers)
	require.Empty(t, resp.Body)
	require.NoError(t, resp.Cause)
}

// TestResultsAreWrittenWhole into memory that has something else in it.
func TestResultsAreWrittenWhole(t *testing.T) {
	i := idleInstance(t)
	out := i.alloc(40, 8)
	fresh := func() uint64 {
		require.True(t, i.memory.Write(out, bytes.Repeat([]byte{0xff}, 40)))
		return uint64(out)
	}
	i.bodies = append(i.bodies, outgoingBody{})
	body := uint64(i.add(kindOutgoingBody, len(i.bodies)-1, noParent))
	bodyWrite(i, []uint64{body, fresh()})
	require.Zero(t, get32(i.bytes(out, 8), 0))
	stream := uint64(get32(i.bytes(out, 8), 4))
	bodyWrite(i, []uint64{body, fresh()})
	require.EqualValues(t, 1, get32(i.bytes(out, 8), 0), "a body has one stream")
	data := memoryWith(t, i, "abc")
	streamWrite(i, []uint64{stream, uint64(data), 3, fresh()})
	require.Zero(t, get32(i.bytes(out, 12), 0))

	failure := errors.New(strings.Repeat("x", maxErrorText) + "cut")
	fresh()
	i.failExecute(out, failure)
	view := i.bytes(out, 20)
	require.Equal(t, []uint32{1, sqliteIO, maxErrorText}, []uint32{get32(view, 0), get32(view, 4), get32(view, 12)})
	require.Equal(t, strings.Repeat("x", maxErrorText), string(i.bytes(get32(view, 8), get32(view, 12))))
	require.Equal(t, failure, i.response.Cause)
	i.failExecute(out, errors.New("later"))
	require.Equal(t, failure, i.response.Cause, "the first one is the cause")
}

// TestTheBillIsOfWhatWasCharged, by live keys, once.
func TestTheBillIsOfWhatWasCharged(t *testing.T) {
	found := charge.Request{Account: 5, Key: 7, Outcome: charge.Found}
	for name, c := range map[string]struct {
		change func(r *charge.Request, v *charge.Verdict)
		cost   int64
	}{
		"a lookup":      {func(*charge.Request, *charge.Verdict) {}, 1},
		"nothing found": {func(r *charge.Request, _ *charge.Verdict) { r.Outcome = charge.NotFound }, 0},
		"the sandbox":   {func(r *charge.Request, _ *charge.Verdict) { r.Sandbox = true }, 0},
		"refused":       {func(_ *charge.Request, v *charge.Verdict) { v.Code = charge.InsufficientCredits }, 0},
		"again":         {func(_ *charge.Request, v *charge.Verdict) { v.Replayed = true }, 0},
	} {
		bill := server.Bill{Cost: 9}
		ctx := server.WithBill(t.Context(), &bill)
		r, v := found, charge.Verdict{}
		c.change(&r, &v)
		note(ctx, &r, &v)
		require.Equal(t, server.Bill{Account: 5, Key: 7, Sandbox: r.Sandbox, Cost: c.cost}, bill, name)
		noteVoid(ctx)
		require.Zero(t, bill.Cost, name)
		note(t.Context(), &r, &v)
		noteVoid(t.Context())
	}
}
