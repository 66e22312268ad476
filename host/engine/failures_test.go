package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
)

// partly is a meter that can't void some ids.
type partly struct {
	*ledger
	stuck map[string]bool
}

func (m partly) Void(ctx context.Context, id string) error {
	if m.stuck[id] {
		return errors.New("no answer")
	}
	return m.ledger.Void(ctx, id)
}

// TestAVoidThatFailsStopsNoOther: each charge of a failed request is taken back, and each that stands is named.
func TestAVoidThatFailsStopsNoOther(t *testing.T) {
	i := idleInstance(t)
	meter := partly{newLedger(), map[string]bool{"a": true, "c": true}}
	i.engine.config.Meter = meter
	i.charges = []string{"a", "b", "c", "d"}
	err := i.voidCharges(t.Context())
	require.ErrorContains(t, err, "void charge a: no answer")
	require.ErrorContains(t, err, "void charge c: no answer")
	require.Equal(t, []string{"b", "d"}, meter.voided)
}

// TestTheGuestIsToldOfAVoidThatFails, and the charge stays one that is voided if its request fails.
func TestTheGuestIsToldOfAVoidThatFails(t *testing.T) {
	i := idleInstance(t)
	meter := newLedger()
	i.engine.config.Meter = meter
	i.charges = []string{"a"}
	meter.voidFail = errors.New("no answer")
	require.Equal(t, 503, i.serveVoid("id=a"))
	require.True(t, i.owns("a"))
	meter.voidFail = nil
	require.Equal(t, 204, i.serveVoid("id=a"))
	require.False(t, i.owns("a"))
}

// TestAVoidOfOneChargeLeavesTheOthers: they are voided when the request fails.
func TestAVoidOfOneChargeLeavesTheOthers(t *testing.T) {
	x := exchange{charges: []string{"a", "b", "c"}}
	x.disown("b")
	require.Equal(t, []string{"a", "c"}, x.charges)
	x.disown("never charged")
	require.Equal(t, []string{"a", "c"}, x.charges)
	require.True(t, x.owns("a"))
	require.False(t, x.owns("b"))
}

// TestTheTimerOfARequestStopsWithIt: at a thousand requests a second they would be thousands.
func TestTheTimerOfARequestStopsWithIt(t *testing.T) {
	var x exchange
	x.begin(t.Context(), time.Hour, span{}, lookup("/o", ""), &handler.Response{})
	ctx := x.ctx
	done := ctx.Done()
	x.end()
	<-done
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}

// TestTrailersAreRefused: no answer has any, so a body that ends with them is not finished.
func TestTrailersAreRefused(t *testing.T) {
	i := idleInstance(t)
	finish := func(trailers bool) (failed bool, finished bool) {
		i.bodies = append(i.bodies, outgoingBody{})
		ref := len(i.bodies) - 1
		out := i.alloc(40, 8)
		stack := []uint64{uint64(i.add(kindOutgoingBody, ref, noParent)), 0, 0, uint64(out)}
		if trailers {
			_, fields := i.newFields()
			stack[1], stack[2] = 1, uint64(i.add(kindFields, fields, noParent))
		}
		bodyFinish(i, stack)
		view := i.bytes(out, 40)
		if trailers {
			require.EqualValues(t, errorInternal, get64(view, 8))
			require.Zero(t, get32(view, 16))
			require.Contains(t, trapOf(func() { i.ref(stack[2], kindFields) }), "is not a handle", "it was moved")
		}
		return get32(view, 0) == 1, i.bodies[ref].finished
	}
	failed, finished := finish(true)
	require.True(t, failed)
	require.False(t, finished)
	failed, finished = finish(false)
	require.False(t, failed)
	require.True(t, finished)
}

// TestAPanicOfTheHandlerIsVoidedWhenTheClientIsGone, as a trap of the component is.
func TestAPanicOfTheHandlerIsVoidedWhenTheClientIsGone(t *testing.T) {
	meter := &punctual{ledger: newLedger()}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	m := &requestMeter{ctx: ctx, meter: meter, charged: "id"}
	require.NoError(t, m.voidCharge())
	require.Equal(t, []string{"id"}, meter.voided)
	require.LessOrEqual(t, meter.voids[0], meterLimit)
}
