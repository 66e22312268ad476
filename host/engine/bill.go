package engine

import (
	"context"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/server"
)

// note writes the meter's decision into the bill of a request.
func note(ctx context.Context, r *charge.Request, v *charge.Verdict) {
	bill := server.BillOf(ctx)
	if bill == nil {
		return
	}
	*bill = server.Bill{Account: r.Account, Key: r.Key, Sandbox: r.Sandbox}
	if v.Code == "" && r.Outcome == charge.Found && !r.Sandbox && !v.Replayed {
		bill.Cost = 1
	}
}

// noteVoid removes the cost from the bill.
func noteVoid(ctx context.Context) {
	if bill := server.BillOf(ctx); bill != nil {
		bill.Cost = 0
	}
}

// notingRates also notes in the bill when the rate refuses a request.
type notingRates struct {
	handler.Rates
	ctx context.Context
}

// Exceeded asks the meter.
func (n notingRates) Exceeded(r charge.Request) (charge.Verdict, bool) {
	verdict, exceeded := n.Rates.Exceeded(r)
	if exceeded {
		note(n.ctx, &r, &verdict)
	}
	return verdict, exceeded
}
