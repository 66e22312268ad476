package handler

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
)

type fixedClock int64

func (c fixedClock) UnixMilli() int64 { return int64(c) }

type countingRandom struct{ n byte }

func (r *countingRandom) Read(p []byte) {
	for i := range p {
		r.n++
		p[i] = r.n
	}
}

func TestRequestIDsSortByTimeAndDiffer(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC).UnixMilli()
	random := &countingRandom{}
	first := NewRequestID(fixedClock(now), random)
	second := NewRequestID(fixedClock(now), random)
	later := NewRequestID(fixedClock(now+1), random)
	require.True(t, charge.ValidID(first))
	require.Len(t, first, 26)
	require.NotEqual(t, first, second)
	require.Equal(t, first[:10], second[:10])
	require.Less(t, first[:10], later[:10])
	require.Equal(t, "01ARYZ6S410000000000000000"[:10], NewRequestID(fixedClock(1469918176385), random)[:10])
}

// meterScript answers the charges with its errors in turn.
type meterScript struct {
	charges []error
	voided  []string
	asked   []charge.Request
}

func (m *meterScript) Charge(r charge.Request) (charge.Verdict, error) {
	m.asked = append(m.asked, r)
	err := m.charges[len(m.asked)-1]
	return charge.Verdict{RateLimit: 30, RateRemaining: 29, RateReset: 1, CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent}, err
}

func (m *meterScript) Void(id string) error {
	m.voided = append(m.voided, id)
	return nil
}

// emptySearch is a store that finds nothing.
type emptySearch struct{}

func (emptySearch) Query(statement string, _ []Value) (*Result, error) {
	row := []Value{text("release"), text("[]")}
	if statement == forgivingStatement {
		row = append(row, Value{})
	}
	return &Result{Columns: len(row), Values: row}, nil
}

func TestAChargeWithoutAVerdict(t *testing.T) {
	lost := errors.New("no answer")
	serve := func(meter *meterScript) *Response {
		h := &Handler{Registry: emptySearch{}, Meter: meter, Clock: fixedClock(1), Random: &countingRandom{}, DocsURL: func() string { return "" }}
		return h.Serve(&Request{Method: "GET", Target: "/v1/search/companies?name=abc",
			Headers: []Header{{"Authorization", "Bearer reg_sandbox_public"}}, ClientAddr: func() string { return "192.0.2.1" }})
	}
	t.Run("is retried once under the same id", func(t *testing.T) {
		meter := &meterScript{charges: []error{lost, nil}}
		require.Equal(t, 200, serve(meter).Status)
		require.Len(t, meter.asked, 2)
		require.Equal(t, meter.asked[0], meter.asked[1])
		require.Empty(t, meter.voided)
	})
	t.Run("is voided and answered with 503 if the retry fails", func(t *testing.T) {
		meter := &meterScript{charges: []error{lost, lost}}
		r := serve(meter)
		require.Equal(t, 503, r.Status)
		require.Equal(t, "1", header(t, r, charge.HeaderRetryAfter))
		require.Equal(t, []string{meter.asked[0].ID}, meter.voided)
	})
}

func TestEveryProblemIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Problems() {
		require.False(t, seen[p.Code], "%s is in the table twice", p.Code)
		seen[p.Code] = true
		require.NotEmpty(t, p.Title, p.Code)
		require.NotEmpty(t, p.Detail, p.Code)
		require.GreaterOrEqual(t, p.Status, 400)
		if status := charge.Status(p.Code); status != 0 {
			require.Equal(t, status, p.Status, p.Code)
		}
	}
}
