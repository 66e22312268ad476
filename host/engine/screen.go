package engine

import (
	"context"

	"regedge/handler"
)

// Screen answers requests that are refused whatever the registry holds, with the same bytes as the
// component but without running it: a refusal then costs less than an instance
// (docs/performance.md, "Refusals"). It is safe for concurrent use.
type Screen struct {
	parts Parts
	rates handler.Rates
}

// NewScreen returns a screen. rates are the rate limits of the same meter as in parts.
func NewScreen(parts Parts, rates handler.Rates) *Screen { return &Screen{parts, rates} }

// Refuse answers a request and returns true, or returns false if the request has to be looked up.
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
