package meter_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

func TestOneEdge(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")

	t.Run("charges a credit for each lookup that succeeds", func(t *testing.T) {
		account := c.account("growth", 100)
		if time.Now().Second() > 55 { // the rate is counted by the minute
			time.Sleep(6 * time.Second)
		}
		for i := range 10 {
			v := e.charge(account, charge.Found)
			require.Equal(t, "", v.Code)
			require.EqualValues(t, 99-i, v.CreditsRemaining)
			require.EqualValues(t, 1000-1-i, v.RateRemaining)
		}
		eventually(t, func() bool { return c.read(account).Spent == 10 }, "the charges are reported")
	})

	t.Run("answers 402 when nothing is left, and serves again after a top-up", func(t *testing.T) {
		account := c.account("growth", 3)
		for range 3 {
			require.Equal(t, "", e.charge(account, charge.Found).Code)
		}
		for range 3 {
			require.Equal(t, charge.InsufficientCredits, e.charge(account, charge.Found).Code)
			require.Equal(t, charge.InsufficientCredits, e.charge(account, charge.NotFound).Code)
			require.Equal(t, "", e.charge(account, charge.Failed).Code)
		}
		_, err := c.client.ChangeCredits(t.Context(), account, writer.CreditChange{Amount: 2})
		require.NoError(t, err)
		eventually(t, func() bool { return e.charge(account, charge.Found).Code == "" }, "the top-up arrives")
	})

	t.Run("answers 402 to an account that never had credits", func(t *testing.T) {
		require.Equal(t, charge.InsufficientCredits, e.charge(c.account("growth", 0), charge.Found).Code)
	})

	t.Run("refuses a key past its not-found cap on all endpoints", func(t *testing.T) {
		account := c.account("scale", 1000)
		for i := range 100 {
			require.Equal(t, "", e.charge(account, charge.NotFound).Code, i)
		}
		v := e.charge(account, charge.NotFound)
		require.Equal(t, charge.NotFoundCapExceeded, v.Code)
		require.Positive(t, v.RetryAfter)
		require.Equal(t, charge.NotFoundCapExceeded, e.charge(account, charge.Found).Code)
		require.Equal(t, "", e.charge(account, charge.Failed).Code)
	})

	t.Run("refuses an account past its monthly volume", func(t *testing.T) {
		_, err := c.client.SetPlan(t.Context(), writer.Plan{ID: "tiny", APIAccess: true, PerMinute: 1000, MonthlyVolume: 2})
		require.NoError(t, err)
		account := c.account("tiny", 100)
		require.Equal(t, "", e.charge(account, charge.Found).Code)
		require.Equal(t, "", e.charge(account, charge.Found).Code)
		require.Equal(t, charge.MonthlyVolumeExceeded, e.charge(account, charge.Found).Code)
		require.Equal(t, charge.MonthlyVolumeExceeded, e.charge(account, charge.NotFound).Code)
	})

	t.Run("an id is charged once, and a voided one never", func(t *testing.T) {
		account := c.account("growth", 100)
		r := request(account, charge.Found)
		first := e.Charge(t.Context(), r)
		require.EqualValues(t, 99, first.CreditsRemaining)
		require.Equal(t, first, e.Charge(t.Context(), r))
		require.NoError(t, e.Void(t.Context(), r.ID))
		require.NoError(t, e.Void(t.Context(), r.ID))
		require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), r).Code)
		require.EqualValues(t, 99, e.charge(account, charge.Found).CreditsRemaining)
		unseen := request(account, charge.Found)
		require.NoError(t, e.Void(t.Context(), unseen.ID))
		require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), unseen).Code)
		eventually(t, func() bool { return c.read(account).Spent == 1 }, "one charge stands")
	})
}

func TestTwoEdges(t *testing.T) {
	c := startCentre(t, nil)
	one, two := c.edge("one"), c.edge("two")

	t.Run("spend one account's credits, never more than there are", func(t *testing.T) {
		const credits = 200
		account := c.account("scale", credits)
		served := 0
		for dry := 0; dry < 20; {
			for _, e := range []*edge{one, two} {
				switch e.found(account) {
				case "":
					served++
					dry = 0
				case charge.InsufficientCredits:
					dry++
				}
			}
		}
		require.Equal(t, credits, served)
		eventually(t, func() bool { return c.read(account).Spent == credits }, "all charges are reported")
	})

	t.Run("recall an idle lease for an edge that needs it", func(t *testing.T) {
		account := c.account("scale", 1)
		v := one.charge(account, charge.NotFound)
		require.Equal(t, "", v.Code)
		require.EqualValues(t, 1, c.read(account).Leased)
		require.Equal(t, "", two.found(account), "the credit that the other edge held")
		require.Equal(t, charge.InsufficientCredits, one.found(account))
	})

	t.Run("answer 503, never 402, for credits that are out of reach", func(t *testing.T) {
		c.wait = 300 * time.Millisecond
		two := c.edge("impatient")
		account := c.account("scale", 1)
		require.Equal(t, "", one.charge(account, charge.NotFound).Code)
		c.cut["one"].Store(true)
		defer c.cut["one"].Store(false)
		require.Equal(t, charge.MeteringUnavailable, two.found(account))
		require.Equal(t, "", one.found(account), "the edge that holds the credit serves without the writer")
	})

	t.Run("share an account's rate", func(t *testing.T) {
		account := c.account("scale", 1000)
		r := request(account, charge.Found)
		eventually(t, func() bool { return one.Charge(t.Context(), r).Code == "" }, "one is connected again")
		eventually(t, func() bool {
			r := request(account, charge.Failed)
			r.PerMinute = 1 << 20
			for range 3 {
				r.ID = request(account, charge.Failed).ID
				one.Charge(t.Context(), r)
			}
			return two.charge(account, charge.Failed).RateRemaining < 1000-20
		}, "two learns of one's requests")
	})
}

func TestWithoutTheWriter(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 100)
	require.Equal(t, "", e.found(account))
	c.cutAfterReport(e, account, 1)

	t.Run("serves from its leases", func(t *testing.T) {
		eventually(t, func() bool { return e.Stats().Unreachable }, "the edge notices")
		held := c.read(account).Leased
		require.Positive(t, held)
		for range held {
			require.Equal(t, "", e.found(account))
		}
		require.Equal(t, charge.MeteringUnavailable, e.found(account), "nothing is held any more")
		v := e.charge(c.account("scale", 5), charge.Found)
		require.Equal(t, charge.MeteringUnavailable, v.Code)
		require.EqualValues(t, 1, v.RetryAfter)
	})

	t.Run("serves the sandbox key", func(t *testing.T) {
		r := charge.Request{ID: "sandbox", Sandbox: true, Client: "192.0.2.1", PerMinute: 30, Endpoint: charge.LLPs, Outcome: charge.Found}
		v := e.Charge(t.Context(), r)
		require.Equal(t, "", v.Code)
		require.EqualValues(t, 29, v.RateRemaining)
		require.EqualValues(t, charge.Unsent, v.CreditsRemaining)
	})

	t.Run("keeps its charges over a restart and reports them later", func(t *testing.T) {
		spent := c.read(account).Spent
		e.stop()
		c.wait = 300 * time.Millisecond
		c.run(e)
		require.Equal(t, charge.MeteringUnavailable, e.found(account))
		c.cut["one"].Store(false)
		eventually(t, func() bool { return e.found(account) == "" }, "the writer is back")
		eventually(t, func() bool {
			a := c.read(account)
			return a.Spent > spent && a.Spent+e.credits(t, account) == 100
		}, "all charges arrive")
	})
}

// credits is what an edge believes is left of an account, learned by a not-found lookup.
func (e *edge) credits(t *testing.T, account int64) int64 {
	r := request(account, charge.NotFound)
	return e.Charge(t.Context(), r).CreditsRemaining
}

func TestRestart(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 100)
	r := request(account, charge.Found)
	first := e.Charge(t.Context(), r)
	void := request(account, charge.Found)
	require.Equal(t, "", e.Charge(t.Context(), void).Code)
	require.NoError(t, e.Void(t.Context(), void.ID))
	e.stop()
	c.run(e)

	t.Run("gives the same verdict on an id from before", func(t *testing.T) {
		require.Equal(t, first, e.Charge(t.Context(), r))
		require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), void).Code)
	})
	t.Run("of the writer goes unnoticed", func(t *testing.T) {
		c.restart()
		require.Equal(t, "", e.found(account))
		eventually(t, func() bool { return c.read(account).Spent == 2 }, "the charges are reported to the new writer")
	})
	t.Run("a state directory has one owner", func(t *testing.T) {
		_, err := meter.Open(meter.Config{State: e.state})
		require.ErrorIs(t, err, journal.ErrInUse)
	})
}

func TestNewSegmentsLoseNothing(t *testing.T) {
	c := startCentre(t, nil)
	c.segment = 1
	e := c.edge("one")
	account := c.account("scale", 1000)
	segments := func() []string {
		names, err := filepath.Glob(filepath.Join(e.state, "journal-*"))
		require.NoError(t, err)
		return names
	}
	before := segments()
	first := request(account, charge.Found)
	verdict := e.Charge(t.Context(), first)
	require.Equal(t, "", verdict.Code)
	charges := int64(1)
	eventually(t, func() bool {
		require.Equal(t, "", e.found(account))
		charges++
		names := segments()
		return names[len(names)-1] != before[len(before)-1]
	}, "a new segment begins")
	require.Equal(t, "", e.found(account))
	charges++
	e.stop()
	c.segment = 0
	c.run(e)
	require.Equal(t, verdict, e.Charge(t.Context(), first))
	require.Equal(t, 1000-charges-1, e.charge(account, charge.Found).CreditsRemaining)
	eventually(t, func() bool { return c.read(account).Spent == charges+1 }, "everything is reported")
}

func TestARetiredNodeIsWrittenOffAndItsLateReportIsBooked(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 100)
	require.Equal(t, "", e.found(account))
	c.cutAfterReport(e, account, 1)
	require.Equal(t, "", e.found(account))
	require.Equal(t, "", e.found(account))

	before := c.read(account)
	_, err := c.client.RetireNode(t.Context(), "one", false)
	require.NoError(t, err)
	a := c.read(account)
	require.Equal(t, before.Leased, a.Lost)
	require.Equal(t, before.Leased, a.Compensated)
	require.Zero(t, a.Leased)

	c.cut["one"].Store(false)
	eventually(t, func() bool {
		late := c.read(account)
		return late.Spent == 3 && late.Lost == before.Leased-2 && late.Left == a.Left
	}, "the late report moves lost to spent")
	eventually(t, func() bool { return errors.Is(e.Ready(), meter.ErrRetired) }, "the edge learns that it is retired")
	require.Equal(t, charge.MeteringUnavailable, e.found(account))
}

func TestCreditsThatAreTakenAndASuspensionRecallLeases(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 100)
	require.Equal(t, "", e.found(account))
	a, err := c.client.ChangeCredits(t.Context(), account, writer.CreditChange{Amount: -95})
	require.NoError(t, err)
	require.GreaterOrEqual(t, a.Left, int64(0))
	eventually(t, func() bool {
		a := c.read(account)
		return a.Bought == 5 && a.Deducting == 0
	}, "the lease is recalled for the adjustment")
	suspended := true
	_, err = c.client.ChangeAccount(t.Context(), account, writer.AccountChange{Suspended: &suspended})
	require.NoError(t, err)
	eventually(t, func() bool { return c.read(account).Leased == 0 }, "a suspended account's leases are recalled")
}

func TestSecondWriterStopsTheFirst(t *testing.T) {
	c := startCentre(t, nil)
	ledger, err := schema.OpenFile(c.dir + "/ledger.db")
	require.NoError(t, err)
	defer ledger.Close()
	access, err := schema.OpenFile(c.dir + "/access.db")
	require.NoError(t, err)
	defer access.Close()
	second, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: operatorToken, TakeOver: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go second.Run(ctx)
	_, err = c.client.AddAccount(t.Context(), "late", "", "free")
	require.ErrorIs(t, err, writer.ErrFenced)
}

func TestClockSkewIsNotReady(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "skewed")
	require.NoError(t, err)
	ahead := func() time.Time { return time.Now().Add(7 * time.Second) }
	e := &edge{name: "skewed", token: node.Token, state: t.TempDir()}
	c.connect("skewed")
	now := c.now
	c.now = ahead
	c.run(e)
	c.now = now
	defer e.stop()
	eventually(t, func() bool { return e.Ready() != nil && fmt.Sprint(e.Ready()) != meter.ErrNoEpoch.Error() }, "the skew is seen")
	require.ErrorIs(t, e.Ready(), meter.ErrSkew)
}

// TestRestoredWriterLogsTheEdgesItWaitsFor checks what an operator reads in the log.
func TestRestoredWriterLogsTheEdgesItWaitsFor(t *testing.T) {
	c := startCentre(t, nil)
	here, away := c.edge("here"), c.edge("away")
	account := c.account("growth", 100)
	require.Equal(t, "", here.charge(account, charge.Found).Code)
	require.Equal(t, "", away.charge(account, charge.Found).Code)
	away.stop()
	c.stop()
	var log testkit.Log
	logged := func(text string) func() bool { return func() bool { return strings.Contains(log.String(), text) } }
	c.log = slog.New(slog.NewTextHandler(&log, nil))
	c.start(true)
	eventually(t, logged("have reported or are retired\" edges=\"away, here\"\n"), "it waits for both, even if one is quick")
	eventually(t, logged("have reported or are retired\" edges=away\n"), "it waits for one edge")
	require.NotContains(t, log.String(), "leases are granted again")
	c.run(away)
	eventually(t, logged("leases are granted again"), "it waits for no edge any more")
}

// TestRestoredWriterLogsWhatItCompensated: an operator who repeats a lost purchase must not give these credits again.
func TestRestoredWriterLogsWhatItCompensated(t *testing.T) {
	c := startCentre(t, nil)
	here := c.edge("here")
	account := c.account("growth", 0)
	restored := c.backup()
	_, err := c.client.ChangeCredits(t.Context(), account, writer.CreditChange{Amount: 100})
	require.NoError(t, err)
	eventually(t, func() bool { return here.found(account) == "" }, "it has heard of the purchase")
	c.cutAfterReport(here, account, 1)
	held := c.read(account).Leased + 1
	c.stop()
	c.dir = restored
	var log testkit.Log
	c.log = slog.New(slog.NewTextHandler(&log, nil))
	c.cut["here"].Store(false)
	c.start(true)
	eventually(t, func() bool { return strings.Contains(log.String(), "repeat a purchase without them") }, "the operator is told")
	require.Contains(t, log.String(), fmt.Sprintf("credits=%d accounts=1\n", held))
	require.Equal(t, held, c.read(account).Compensated)
}

func TestUsageIsReported(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 100)
	for _, outcome := range []charge.Outcome{charge.Found, charge.Found, charge.NotFound, charge.Failed} {
		require.Equal(t, "", e.charge(account, outcome).Code)
	}
	counts := func(q writer.UsageQuery) map[string]int64 {
		rows, err := c.client.Usage(t.Context(), q)
		require.NoError(t, err)
		found := map[string]int64{}
		for _, r := range rows {
			require.Equal(t, "companies", r.Endpoint)
			found[r.Outcome] += r.Count
		}
		return found
	}
	want := map[string]int64{"found": 2, "not_found": 1, "failed": 1}
	eventually(t, func() bool { return len(counts(writer.UsageQuery{Account: account})) == 3 }, "the usage arrives")
	require.Equal(t, want, counts(writer.UsageQuery{Account: account}))
	require.Empty(t, counts(writer.UsageQuery{Account: account + 1}))
	require.Empty(t, counts(writer.UsageQuery{To: time.Now().Add(-2 * time.Hour)}))
}
