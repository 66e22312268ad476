package engine

import (
	"context"
	"errors"
	"fmt"

	"regedge/handler"
	"regedge/handler/charge"
)

// Native runs the handler as plain Go. It is safe for concurrent use.
type Native struct{ parts Parts }

// NewNative returns the handler with its parts.
func NewNative(parts Parts) *Native { return &Native{parts} }

// Answer serves one request. A panic of the handler is an error; if the request was
// charged by then, the charge is voided first.
func (n *Native) Answer(ctx context.Context, request *handler.Request, response *handler.Response) (err error) {
	meter := &requestMeter{ctx: ctx, meter: n.parts.Meter}
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.Join(fmt.Errorf("handler: panic: %v", cause), meter.voidCharge())
		}
	}()
	h := handler.Handler{
		Access: nativeStore{ctx, n.parts.Access}, Registry: nativeStore{ctx, n.parts.Registry},
		Meter: meter, Clock: n.parts.Clock, Random: n.parts.Random, DocsURL: func() string { return n.parts.DocsURL },
	}
	give(h.Serve(request), response)
	return nil
}

// give copies an answer into the memory of a response.
func give(answer, response *handler.Response) {
	response.Status, response.Cause = answer.Status, answer.Cause
	response.Headers = append(response.Headers, answer.Headers...)
	response.Body = append(response.Body, answer.Body...)
}

// nativeStore is the handler's view of a database, for one request.
type nativeStore struct {
	ctx      context.Context
	database Database
}

func (s nativeStore) Query(statement string, args []handler.Value) (*handler.Result, error) {
	var result handler.Result
	if err := s.database.Query(s.ctx, statement, args, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// requestMeter is the handler's view of the meter, for one request. It records what was charged.
type requestMeter struct {
	ctx     context.Context
	meter   Meter
	charged string // request id
}

func (m *requestMeter) Charge(r charge.Request) (charge.Verdict, error) {
	m.charged = r.ID
	verdict := m.meter.Charge(m.ctx, r)
	note(m.ctx, &r, &verdict)
	return verdict, nil
}

func (m *requestMeter) Void(requestID string) error {
	noteVoid(m.ctx)
	return m.meter.Void(m.ctx, requestID)
}

func (m *requestMeter) voidCharge() error {
	if m.charged == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), meterLimit)
	defer cancel()
	if err := m.meter.Void(ctx, m.charged); err != nil {
		return fmt.Errorf("void charge %s: %w", m.charged, err)
	}
	return nil
}
