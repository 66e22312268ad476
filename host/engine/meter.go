package engine

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/handler/fastbytes"
)

// meterLimit bounds one call of the meter (docs/design.md, "The meter's contract").
const meterLimit = time.Second

// The names of the variables with the meter's URL and token.
const (
	variableMeterURL   = "meter_url"
	variableMeterToken = "meter_token"
)

// Meter decides whether requests may be answered, and charges them; see package charge. It is shared
// by all requests; a handler.Meter is one request's view of it. Both methods return by the deadline
// of their context. Charge is idempotent by the request's id and refuses with
// charge.MeteringUnavailable if there is no verdict. After Void returned nil, the id is not charged
// and never will be.
type Meter interface {
	Charge(context.Context, charge.Request) charge.Verdict
	Void(ctx context.Context, id string) error
}

// meterAddress is the address of the meter for the guest, and the credentials that it has to send.
type meterAddress struct{ scheme, authority, authorization string }

// newMeterAddress parses the variables of the meter. Without a URL, every outgoing request is denied.
func newMeterAddress(variables map[string]string) (meterAddress, error) {
	text := variables[variableMeterURL]
	if text == "" {
		return meterAddress{}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return meterAddress{}, fmt.Errorf("variable %s: want http://HOST, got %q", variableMeterURL, text)
	}
	if strings.TrimSuffix(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return meterAddress{}, fmt.Errorf("variable %s: want a scheme and a host only, got %q", variableMeterURL, text)
	}
	return meterAddress{u.Scheme, u.Host, "Bearer " + variables[variableMeterToken]}, nil
}

// allows reports whether a request goes to the meter.
func (m *meterAddress) allows(r *outgoingRequest) bool {
	return m.authority != "" && r.authority == m.authority && r.scheme == m.scheme
}

// admits reports whether the fields carry the meter's token.
func (m *meterAddress) admits(fields []handler.Header) bool {
	for n := range fields {
		if fastbytes.EqualFold(fields[n].Name, "authorization") {
			return subtle.ConstantTimeCompare([]byte(fields[n].Value), []byte(m.authorization)) == 1
		}
	}
	return false
}

// callMeter serves an outgoing request in this process. It returns the response, or, for a request to
// anything but the meter, a case of error-code.
func (i *instance) callMeter(r *outgoingRequest) (incomingResponse, uint64) {
	meter := &i.engine.meterAddress
	if !meter.allows(r) {
		return incomingResponse{}, errorDenied
	}
	answer, ref := i.newFields()
	status := 401
	if meter.admits(i.fields[r.fields].entries) {
		status = i.serveMeter(r, answer)
	}
	return incomingResponse{status, ref}, 0
}

// serveMeter answers like the meter's HTTP API (docs/design.md, "The meter's contract"). It returns
// the status.
func (i *instance) serveMeter(r *outgoingRequest, answer *fieldList) int {
	path, query, _ := strings.Cut(r.target, "?")
	switch {
	case path != charge.ChargePath && path != charge.VoidPath:
		return 404
	case r.method != "POST":
		return 405
	case path == charge.VoidPath:
		return i.serveVoid(query)
	}
	return i.serveCharge(query, answer)
}

func (i *instance) serveCharge(query string, answer *fieldList) int {
	request, err := charge.ParseRequest(query)
	if err != nil {
		return 400
	}
	ctx := &deadline{Context: i.ctx, limit: meterLimit}
	defer ctx.release()
	if !i.owns(request.ID) {
		i.charges = append(i.charges, request.ID)
	}
	verdict := i.engine.config.Meter.Charge(ctx, request)
	note(i.ctx, &request, &verdict)
	verdict.Headers(func(name, value string) {
		answer.entries = append(answer.entries, handler.Header{Name: name, Value: value})
	})
	return charge.Status(verdict.Code)
}

func (i *instance) serveVoid(query string) int {
	id, err := charge.ParseVoid(query)
	if err != nil {
		return 400
	}
	ctx := &deadline{Context: i.ctx, limit: meterLimit}
	defer ctx.release()
	if err := i.engine.config.Meter.Void(ctx, id); err != nil {
		return 503
	}
	noteVoid(i.ctx)
	i.disown(id)
	return 204
}

// owns reports whether this request made a charge with the id and has not voided it.
func (x *exchange) owns(id string) bool {
	for _, c := range x.charges {
		if c == id {
			return true
		}
	}
	return false
}

func (x *exchange) disown(id string) {
	for n, c := range x.charges {
		if c == id {
			x.charges = append(x.charges[:n], x.charges[n+1:]...)
			return
		}
	}
}

// voidCharges voids the charges of a failed request, even if its context has ended because the
// client is gone.
func (i *instance) voidCharges(ctx context.Context) error {
	if len(i.charges) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), meterLimit)
	defer cancel()
	var problems []error
	for _, id := range i.charges {
		if err := i.engine.config.Meter.Void(limited, id); err != nil {
			problems = append(problems, fmt.Errorf("void charge %s: %w", id, err))
		}
	}
	return errors.Join(problems...)
}
