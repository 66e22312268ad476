package main

import (
	"errors"
	"strings"

	"go.bytecodealliance.org/cm"

	"regedge/handler/charge"
	"regedge/handler/fastbytes"
	monotonicclock "regedge/wasm/bindings/wasi/clocks/monotonic-clock"
	outgoinghandler "regedge/wasm/bindings/wasi/http/outgoing-handler"
	"regedge/wasm/bindings/wasi/http/types"
	"regedge/wasm/bindings/wasi/io/poll"
	"regedge/wasm/labels"
)

// meterDeadline bounds one call to the meter, from the request to the answer's headers, in
// nanoseconds (docs/design.md, "A request's way").
const meterDeadline monotonicclock.Duration = 1_000_000_000

var (
	errMeterAddress  = errors.New("call the meter: meter_url is not http://authority or https://authority")
	errMeterRefused  = errors.New("call the meter: the host does not allow the call")
	errMeterDeadline = errors.New("call the meter: no answer within a second")
	errMeterFailed   = errors.New("call the meter: the call failed")
	errMeterAnswer   = errors.New("call the meter: void was not answered with 204")
)

// meter is a handler.Meter that calls the meter by HTTP (docs/design.md, "The meter's contract").
type meter struct{}

func (meter) Charge(r charge.Request) (charge.Verdict, error) {
	response, err := post(r.Target())
	if err != nil {
		return charge.Verdict{}, err
	}
	entries := response.Headers().Entries().Slice()
	next := 0 // usually the headers come in the order in which ParseVerdict reads them
	return charge.ParseVerdict(int(response.Status()), func(name string) string {
		for range entries {
			entry := &entries[next]
			if next++; next == len(entries) {
				next = 0
			}
			if fastbytes.EqualFold(string(entry.F0), name) { // the case of names depends on the host
				return fieldText(entry.F1)
			}
		}
		return ""
	})
}

func (meter) Void(requestID string) error {
	response, err := post(charge.VoidTarget(requestID))
	if err != nil {
		return err
	}
	if response.Status() != 204 {
		return errMeterAnswer
	}
	return nil
}

// post sends a request without a body to the meter and returns the answer without its body.
func post(target string) (types.IncomingResponse, error) {
	request, err := newRequest(target)
	if err != nil {
		return 0, err
	}
	sent := outgoinghandler.Handle(request, cm.None[types.RequestOptions]())
	if sent.IsErr() {
		return 0, errMeterRefused
	}
	return await(*sent.OK())
}

func newRequest(target string) (types.OutgoingRequest, error) {
	scheme, authority, ok := splitURL(variable(labels.MeterURL))
	if !ok {
		return 0, errMeterAddress
	}
	request := types.NewOutgoingRequest(newFields([]field{
		newField("Authorization", "Bearer "+variable(labels.MeterToken)),
		newField("Content-Length", "0"), // the host need not wait for the end of a body
	}))
	if request.SetMethod(types.MethodPost()) == cm.ResultErr ||
		request.SetScheme(cm.Some(scheme)) == cm.ResultErr ||
		request.SetAuthority(cm.Some(authority)) == cm.ResultErr ||
		request.SetPathWithQuery(cm.Some(target)) == cm.ResultErr {
		return 0, errMeterAddress
	}
	return request, nil
}

// splitURL parses http://authority or https://authority; a slash at the end is ignored.
func splitURL(url string) (scheme types.Scheme, authority string, ok bool) {
	name, authority, _ := strings.Cut(url, "://")
	switch name {
	case "http":
		scheme = types.SchemeHTTP()
	case "https":
		scheme = types.SchemeHTTPS()
	default:
		return scheme, "", false
	}
	authority = strings.TrimSuffix(authority, "/")
	return scheme, authority, authority != "" && !strings.Contains(authority, "/")
}

// await waits for the answer until the deadline. A host that has it at once gets no further
// calls.
func await(future types.FutureIncomingResponse) (types.IncomingResponse, error) {
	if response, done, err := take(future); done {
		return response, err
	}
	answered := future.Subscribe()
	deadline := monotonicclock.SubscribeDuration(meterDeadline)
	poll.Poll(cm.ToList([]poll.Pollable{answered, deadline}))
	answered.ResourceDrop()
	deadline.ResourceDrop()
	if response, done, err := take(future); done {
		return response, err
	}
	future.ResourceDrop() // cancels the call
	return 0, errMeterDeadline
}

// take returns the answer if there is one; done is false while there is none.
func take(future types.FutureIncomingResponse) (response types.IncomingResponse, done bool, err error) {
	got := future.Get()
	outer := got.Some()
	if outer == nil {
		return 0, false, nil
	}
	if inner := outer.OK(); inner != nil && inner.IsOK() {
		return *inner.OK(), true, nil
	}
	return 0, true, errMeterFailed
}
