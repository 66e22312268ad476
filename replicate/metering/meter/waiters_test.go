package meter_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/meter"
)

// TestFewRequestsOfAnAccountWait holds an account's credits at an edge that is away.
func TestFewRequestsOfAnAccountWait(t *testing.T) {
	c := startCentre(t, nil)
	c.wait = time.Minute
	away, e := c.edge("away"), c.edge("here")
	stuck, other := c.account("growth", 5), c.account("growth", 100)
	require.Equal(t, "", away.found(stuck))
	c.cutAfterReport(away, stuck, 1)

	const requests, alone, left = 300, 43, 4 // the other edge may not have leased all four
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make(chan charge.Verdict, requests)
	for range requests {
		go func() { answers <- e.Charge(waiting, request(stuck, charge.Found)) }()
	}
	atOnce := time.After(20 * time.Second)
	for n := range requests - alone {
		select {
		case v := <-answers:
			if v.Code != "" {
				require.Equal(t, charge.MeteringUnavailable, v.Code)
				require.EqualValues(t, 1, v.RetryAfter)
			}
		case <-atOnce:
			require.Fail(t, "requests wait", "%d of %d", requests-n, requests)
		}
	}
	require.LessOrEqual(t, e.Stats().Waiting, alone)
	require.GreaterOrEqual(t, e.Stats().Crowded, int64(requests-alone-left))
	require.Equal(t, "", e.found(other), "another account waits for its first lease beside it")
	cancel()
	for range alone {
		<-answers
	}
	require.Zero(t, e.Stats().Waiting)
}

// TestAPlaceIsLeftForTheNextAccountThatWaits has many accounts wait in vain, each as often as it may.
func TestAPlaceIsLeftForTheNextAccountThatWaits(t *testing.T) {
	c := startCentre(t, nil)
	c.wait = time.Minute
	away, e := c.edge("away"), c.edge("here")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stuck []int64
	for range 8 {
		account := c.account("growth", 2)
		require.Equal(t, "", away.found(account))
		stuck = append(stuck, account)
	}
	c.cutAfterReport(away, stuck[len(stuck)-1], 1)
	for sent, account := range stuck {
		for range 50 {
			go e.Charge(ctx, request(account, charge.Found))
		}
		eventually(t, func() bool {
			s := e.Stats()
			return s.Crowded+int64(s.Waiting) == int64(sent+1)*50
		}, "each waits or was refused")
	}
	require.Less(t, e.Stats().Waiting, meter.MaxWaiting)
	require.Equal(t, "", e.found(c.account("growth", 100)))
}

// TestAccountsThatWaitOneAfterAnotherLeaveAPlace has more accounts than there are places wait in vain,
// with one request each, again and again.
func TestAccountsThatWaitOneAfterAnotherLeaveAPlace(t *testing.T) {
	const accounts = 2 * meter.MaxWaiting
	c := startCentre(t, nil)
	c.wait = time.Minute
	away, e := c.edge("away"), c.edge("here")
	var stuck []int64
	for range accounts {
		account := c.account("growth", 2)
		require.Equal(t, "", away.found(account))
		stuck = append(stuck, account)
	}
	c.cutAfterReport(away, stuck[accounts-1], 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for again := range 3 {
		for _, account := range stuck {
			go e.Charge(ctx, request(account, charge.Found))
		}
		eventually(t, func() bool {
			s := e.Stats()
			return s.Crowded+int64(s.Waiting) == int64(again+1)*accounts
		}, "each waits or was refused")
		require.Equal(t, "", e.found(c.account("growth", 100)), "a new account, time %d", again)
	}
	require.LessOrEqual(t, e.Stats().Waiting, meter.MaxWaiting)
	require.Zero(t, e.Stats().Unavailable-e.Stats().Crowded)
}
