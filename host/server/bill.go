package server

import "context"

// Bill says who pays for a request, and how much, for its log line. The Answerer fills it in once it
// knows the account.
type Bill struct {
	// Account and Key are ids of the access database, 0 if unknown or for the sandbox key.
	Account, Key int64
	Sandbox      bool
	// Cost is in credits.
	Cost int64
}

type billKey struct{}

// WithBill returns a context that leads to a bill. A server answers each request with one.
func WithBill(ctx context.Context, bill *Bill) context.Context {
	return context.WithValue(ctx, billKey{}, bill)
}

// BillOf returns the bill that a context leads to, nil if there is none.
func BillOf(ctx context.Context) *Bill {
	bill, _ := ctx.Value(billKey{}).(*Bill)
	return bill
}
