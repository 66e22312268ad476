package engine

import (
	"context"

	"regedge/handler"
)

// Screen answers requests that are refused whatever the registry has, as the component would, byte
// for byte, without it: a refusal costs less than an instance (docs/performance.md, "Refusals").
// It is safe for concurrent use.
type Screen struct {
	parts Parts
	rates handler.Rates
}

// NewScreen returns a screen. The rates are those of the parts' meter.
func NewScreen(parts Parts, rates handler.Rates) *Screen { return &Screen{parts, rates} }

// Refuse answers a request and returns true, or returns false if it has to be looked up.
func (s *Screen) Refuse(ctx context.Context, request *handler.Request, response *handler.Response) (refused bool) {
	h := handler.Handler{
		Access: nativeStore{ctx, s.parts.Access}, Clock: s.parts.Clock, Random: s.parts.Random,
		DocsURL: func() string { return s.parts.DocsURL },
	}
	answer := h.Screen(request, notingRates{s.rates, ctx})
	if answer == nil {
		return false
	}
	give(answer, response)
	return true
}
