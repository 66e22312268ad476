package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/history"
)

// in makes calls of one subject, one after the other, a second each.
func in(calls ...history.Call) []history.Call {
	for i := range calls {
		calls[i].Subject = 1
		calls[i].Begin, calls[i].End = time.Duration(i)*time.Second, time.Duration(i)*time.Second+900*time.Millisecond
	}
	return calls
}

func call(kind history.Kind, units ...int64) history.Call {
	return history.Call{Kind: kind, Units: append(units, 0)[0]}
}

// later moves calls from the nth on by some time.
func later(calls []history.Call, n int, by time.Duration) []history.Call {
	for i := range calls[n:] {
		calls[n+i].Begin += by
		calls[n+i].End += by
	}
	return calls
}

func TestBalances(t *testing.T) {
	const second = time.Second
	bought, served, refused, cut := call(history.Bought, 1), call(history.Served), call(history.Refused), call(history.CutOff)
	for name, c := range map[string]struct {
		calls []history.Call
		holds bool
	}{
		"each credit is spent once":                  {in(bought, served, refused), true},
		"a credit is spent twice":                    {in(bought, served, served), false},
		"a 402 before the last credit":               {later(in(call(history.Bought, 2), served, refused, served), 2, 4*second), false},
		"a 402 two seconds after a purchase":         {later(in(refused, bought, refused), 2, 4*second), false},
		"a 402 less than two seconds after it":       {in(refused, bought, refused, served), true},
		"a cut off call that was charged":            {later(in(bought, cut, refused), 2, 4*second), true},
		"a cut off call that was not":                {in(bought, cut, served), true},
		"one cut off call is not charged twice":      {later(in(call(history.Bought, 2), cut, refused), 2, 4*second), false},
		"what is being taken":                        {later(in(call(history.Bought, 5), call(history.Taking, 5), refused, call(history.Took, 5)), 2, 4*second), true},
		"a part of it is taken":                      {later(in(call(history.Bought, 5), call(history.Taking, 4), refused), 2, 4*second), false},
		"what was not taken after all":               {later(in(call(history.Bought, 5), call(history.Taking, 5), refused, call(history.Took, 4)), 2, 4*second), false},
		"it was spent instead":                       {later(in(call(history.Bought, 5), cut, call(history.Taking, 5), refused, call(history.Took, 4)), 2, 4*second), true},
		"what was taken is not spent":                {in(call(history.Bought, 1), call(history.Taking, 1), call(history.Took, 1), served), false},
		"what was spent is not taken":                {in(call(history.Bought, 5), call(history.Taking, 5), served, call(history.Took, 4), call(history.Left, 0)), true},
		"what is left in the end":                    {in(call(history.Bought, 5), served, call(history.Left, 4)), true},
		"a purchase that was booked twice":           {in(call(history.Bought, 5), served, call(history.Left, 9)), false},
		"a charge that was booked twice":             {in(call(history.Bought, 5), served, call(history.Left, 3)), false},
		"a charge of a cut off call, booked once":    {in(call(history.Bought, 5), cut, call(history.Left, 4)), true},
		"what is counted":                            {in(call(history.Bought, 5), served, served, call(history.Counted, 2)), true},
		"a call that was counted twice":              {in(call(history.Bought, 5), served, served, call(history.Counted, 3)), false},
		"a call that was not counted":                {in(call(history.Bought, 5), served, served, call(history.Counted, 1)), false},
		"a cut off call that was counted":            {in(call(history.Bought, 5), served, cut, call(history.Counted, 2)), true},
		"a cut off call that was not counted":        {in(call(history.Bought, 5), served, cut, call(history.Counted, 1)), true},
		"a purchase counts only from its first call": {in(served, bought), false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.holds, history.Balances().Check(c.calls) == nil) })
	}
}

func TestOverlappingCallsHaveAnyOrder(t *testing.T) {
	calls := in(call(history.Served), call(history.Bought, 1))
	calls[0].End = 2 * time.Second
	calls[0].Client = 1
	require.NoError(t, history.Balances().Check(calls))
}

func TestKeys(t *testing.T) {
	made, revoked, admitted, unknown := call(history.Made), call(history.Revoked), call(history.Admitted), call(history.Unknown)
	suspended, resumed, forbidden := call(history.Suspended), call(history.Resumed), call(history.Forbidden)
	for name, c := range map[string]struct {
		calls []history.Call
		holds bool
	}{
		"a key's life":                            {in(unknown, made, admitted, suspended, forbidden, resumed, admitted, revoked, unknown), true},
		"a revoked key serves for a moment":       {in(made, revoked, admitted), true},
		"a revoked key serves for long":           {later(in(made, revoked, admitted), 2, 4*time.Second), false},
		"a suspended account serves for long":     {later(in(made, suspended, admitted), 2, 4*time.Second), false},
		"a new key is not known for long":         {later(in(made, unknown), 1, 4*time.Second), false},
		"a suspension that was lifted comes back": {later(in(made, suspended, resumed, forbidden), 3, 4*time.Second), false},
		"a key serves before it was made":         {in(admitted, made), false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.holds, history.Keys().Check(c.calls) == nil) })
	}
}

func TestSubjectsAreChecked(t *testing.T) {
	calls := in(call(history.Bought, 1), call(history.Served))
	calls[1].Subject = 2
	require.ErrorContains(t, history.Balances().Check(slices.Clone(calls)), "the credits of 2: no order of 1 calls")
	require.NoError(t, history.Keys().Check(calls), "calls of another model")
}
