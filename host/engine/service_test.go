package engine_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/host/engine"
	"regedge/host/server"
	"regedge/host/sqlite"
	"regedge/internal/testkit/sampletest"
	"regedge/schema"
)

// counting counts the statements of one database.
type counting struct {
	engine.Database
	statements int
}

func (c *counting) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	c.statements++
	return c.Database.Query(ctx, statement, args, dst)
}

// tally is a meter that grants everything and records its calls.
type tally struct {
	charged []charge.Request
	voided  []string
	limits  []time.Duration // of the calls that void
	onCall  func()          // called before a verdict, if not nil
	replays bool            // charges nothing, as for an Idempotency-Key that comes again
}

func (m *tally) Charge(_ context.Context, r charge.Request) charge.Verdict {
	m.charged = append(m.charged, r)
	if m.onCall != nil {
		m.onCall()
	}
	credits := int64(41)
	if r.Sandbox {
		credits = charge.Unsent
	}
	return charge.Verdict{RateLimit: 60, RateRemaining: 59, RateReset: 30, CreditsRemaining: credits, RetryAfter: charge.Unsent, Replayed: m.replays}
}

func (m *tally) Void(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	until, _ := ctx.Deadline()
	m.limits = append(m.limits, time.Until(until))
	m.voided = append(m.voided, id)
	return nil
}

type stopped struct{}

// UnixMilli is within a second, so that its milliseconds are seen in ids of requests.
func (stopped) UnixMilli() int64 {
	return time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC).UnixMilli()
}

// sequence is randomness that is the same in every run.
type sequence struct{ next byte }

func (s *sequence) Read(p []byte) {
	for i := range p {
		s.next++
		p[i] = s.next
	}
}

// fixture is one set of parts over the sample, with a key of an account on the plan scale.
type fixture struct {
	access, registry counting
	meter            tally
	key              string
	path             string // of the access database
}

// statementLimit is long: under the race detector a search takes seconds.
const statementLimit = time.Minute

func newFixture(t testing.TB) *fixture {
	t.Helper()
	registry, err := sqlite.Open(sqlite.Config{Path: sampletest.Registry(t), Timeout: statementLimit})
	require.NoError(t, err)
	t.Cleanup(func() { registry.Close() })
	w := &fixture{key: ident.NewKey((&sequence{}).Read)}
	w.registry.Database = registry
	w.path = filepath.Join(t.TempDir(), "access.db")
	path := w.path
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	hash := sha256.Sum256([]byte(w.key))
	for statement, args := range map[string][]any{
		`INSERT INTO plan VALUES ('scale', 1, 1200, 1000000, 1, 1)`: nil,
		`INSERT INTO account (id, plan) VALUES (7, 'scale')`:        nil,
		`INSERT INTO api_key (id, account, hash) VALUES (9, 7, ?)`:  {hash[:]},
	} {
		_, err := db.Exec("PRAGMA foreign_keys=off")
		require.NoError(t, err)
		_, err = db.Exec(statement, args...)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	access, err := sqlite.Open(sqlite.Config{Path: path, Timeout: statementLimit})
	require.NoError(t, err)
	t.Cleanup(func() { access.Close() })
	w.access.Database = access
	return w
}

func (w *fixture) parts() engine.Parts {
	return engine.Parts{
		Access: &w.access, Registry: &w.registry, Meter: &w.meter,
		Clock: stopped{}, Random: &sequence{}, DocsURL: "http://docs.example",
	}
}

// answerers makes both engines, each with a fixture of its own.
func answerers(t *testing.T) map[string]struct {
	*fixture
	server.Answerer
} {
	native, component := newFixture(t), newFixture(t)
	made, err := engine.NewComponent(t.Context(), component.parts(), engine.Limits{Instances: 2})
	require.NoError(t, err)
	t.Cleanup(func() { made.Close(context.Background()) })
	type pair = struct {
		*fixture
		server.Answerer
	}
	return map[string]pair{
		"native":    {native, engine.NewNative(native.parts())},
		"component": {component, made},
	}
}

func request(target, key string) *handler.Request {
	return &handler.Request{
		Method: "GET", Target: target, Authority: "h", ClientAddr: func() string { return "192.0.2.1" },
		Headers: []handler.Header{{Name: "authorization", Value: "Bearer " + key}, {Name: "spin-client-ADDR", Value: "6.6.6.6"}},
	}
}

func TestLookupRunsOneStatementPerDatabase(t *testing.T) {
	for engine, a := range answerers(t) {
		for target, status := range map[string]int{
			"/v1/companies/" + sampletest.CompanyGrandBoard:  200,
			"/v1/companies/" + sampletest.CompanyNotHeld:     404,
			"/v1/directors/" + sampletest.DirectorManyLinks:  200,
			"/v1/llps/" + sampletest.LLPManyPartners:         200,
			"/v1/search/companies?name=made":                 200,
			"/v1/search/llps?llpin=" + sampletest.LLPNotHeld: 200,
		} {
			t.Run(engine+target, func(t *testing.T) {
				a.access.statements, a.registry.statements = 0, 0
				var response handler.Response
				require.NoError(t, a.Answer(t.Context(), request(target, a.key), &response))
				require.Equal(t, status, response.Status, string(response.Body))
				require.Equal(t, 1, a.access.statements, "statements on access")
				require.Equal(t, 1, a.registry.statements, "statements on the registry")
			})
		}
	}
}

func TestBothEnginesAnswerTheSameBytes(t *testing.T) {
	both := answerers(t)
	native, component := both["native"], both["component"]
	for _, target := range []string{
		"/v1/companies/" + sampletest.CompanyEveryField, "/v1/companies/x", "/v1/search/companies?name=a&limit=10", "/v2", "*",
	} {
		for _, key := range []string{native.key, ident.SandboxKey, "wrong"} {
			var want, got handler.Response
			require.NoError(t, native.Answer(t.Context(), request(target, key), &want))
			require.NoError(t, component.Answer(t.Context(), request(target, key), &got))
			blank(&want)
			blank(&got)
			require.Equal(t, want.Status, got.Status)
			require.ElementsMatch(t, want.Headers, got.Headers)
			require.Equal(t, string(want.Body), string(got.Body))
		}
	}
	require.Equal(t, len(native.meter.charged), len(component.meter.charged))
	for i, charged := range component.meter.charged {
		want := native.meter.charged[i]
		want.ID, charged.ID = want.ID[:10], charged.ID[:10] // the time
		require.Equal(t, want, charged)
		if charged.Sandbox {
			require.Equal(t, "192.0.2.1", charged.Client, "the client's own field is ignored")
		}
	}
}

// blank replaces the request id, which differs, and drops the length, which only the component sends:
// the server sets its own.
func blank(r *handler.Response) {
	r.Headers = slices.DeleteFunc(r.Headers, func(h handler.Header) bool { return h.Name == "Content-Length" })
	for i, h := range r.Headers {
		if h.Name == handler.HeaderRequestID {
			r.Body = []byte(strings.ReplaceAll(string(r.Body), h.Value, "ID"))
			r.Headers[i].Value = "ID"
		}
	}
}

// TestABillSaysWhatWasCharged, alike in both engines: for a company, a 404, a sandbox request, and an
// unauthenticated one.
func TestABillSaysWhatWasCharged(t *testing.T) {
	w := newFixture(t)
	component, err := engine.NewComponent(t.Context(), w.parts(), engine.Limits{})
	require.NoError(t, err)
	defer component.Close(t.Context())
	for _, answerer := range []server.Answerer{engine.NewNative(w.parts()), component} {
		bill := func(target, key string) (bill server.Bill) {
			var response handler.Response
			require.NoError(t, answerer.Answer(server.WithBill(t.Context(), &bill), request(target, key), &response))
			return bill
		}
		paid := bill("/v1/companies/"+sampletest.CompanyEveryField, w.key)
		require.Positive(t, paid.Account)
		require.Positive(t, paid.Key)
		require.EqualValues(t, 1, paid.Cost)
		free := paid
		free.Cost = 0
		require.Equal(t, free, bill("/v1/companies/U99999MH1999PTC999999", w.key))
		require.Equal(t, server.Bill{Sandbox: true}, bill("/v1/companies/"+sampletest.CompanyEveryField, ident.SandboxKey))
		require.Zero(t, bill("/v1/companies/"+sampletest.CompanyEveryField, "wrong"))
		w.meter.replays = true
		require.Equal(t, free, bill("/v1/companies/"+sampletest.CompanyEveryField, w.key), "a retry costs nothing")
		w.meter.replays = false
	}
}

func TestFailureAfterTheChargeVoidsIt(t *testing.T) {
	w := newFixture(t)
	w.meter.onCall = func() { panic("the host fails") }
	var response handler.Response
	err := engine.NewNative(w.parts()).Answer(t.Context(), request("/v1/search/companies?name=made", w.key), &response)
	require.ErrorContains(t, err, "the host fails")
	require.Len(t, w.meter.charged, 1)
	require.Equal(t, []string{w.meter.charged[0].ID}, w.meter.voided)
}

// TestAVoidOfTheNativeEngineOutlivesItsClient, too, and is limited in time: a meter that hangs holds the request for no longer.
func TestAVoidOfTheNativeEngineOutlivesItsClient(t *testing.T) {
	w := newFixture(t)
	ctx, leave := context.WithCancel(t.Context())
	w.meter.onCall = func() { leave(); panic("the host fails") }
	var response handler.Response
	err := engine.NewNative(w.parts()).Answer(ctx, request("/v1/search/companies?name=made", w.key), &response)
	require.ErrorContains(t, err, "the host fails")
	require.Len(t, w.meter.voided, 1)
	require.Positive(t, w.meter.limits[0], "there is a limit")
	require.LessOrEqual(t, w.meter.limits[0], time.Second)
}

// TestAScreenTellsWhyItRefuses, for the log: the access database can't be read.
func TestAScreenTellsWhyItRefuses(t *testing.T) {
	w := newFixture(t)
	w.access.Database = broken{}
	var response handler.Response
	require.True(t, engine.NewScreen(w.parts(), overRate{}).Refuse(t.Context(), request("/v1/companies/"+sampletest.CompanyEveryField, w.key), &response))
	require.Equal(t, 503, response.Status)
	require.ErrorContains(t, response.Cause, "secret path")
	require.NotContains(t, string(response.Body), "secret")
}

// TestAScreenReadsForItsRequest, and no longer once the client is gone.
func TestAScreenReadsForItsRequest(t *testing.T) {
	w := newFixture(t)
	w.access.Database = untilGone{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var response handler.Response
	require.True(t, engine.NewScreen(w.parts(), overRate{}).Refuse(ctx, request("/v1/companies/"+sampletest.CompanyEveryField, w.key), &response))
	require.ErrorIs(t, response.Cause, context.Canceled)
}

// untilGone finds nothing, and fails once the request has ended.
type untilGone struct{}

func (untilGone) Query(ctx context.Context, _ string, _ []handler.Value, _ *handler.Result) error {
	return ctx.Err()
}

func TestFailureOfADatabaseIsNotCharged(t *testing.T) {
	for engine, a := range answerers(t) {
		t.Run(engine, func(t *testing.T) {
			a.registry.Database = broken{}
			var response handler.Response
			require.NoError(t, a.Answer(t.Context(), request("/v1/search/companies?name=made", a.key), &response))
			require.ErrorContains(t, response.Cause, "secret path", "the failure is logged")
			require.Equal(t, 503, response.Status)
			require.NotContains(t, string(response.Body), "secret")
			require.Len(t, a.meter.charged, 1)
			require.Equal(t, charge.Failed, a.meter.charged[0].Outcome)
		})
	}
}

type broken struct{}

func (broken) Query(context.Context, string, []handler.Value, *handler.Result) error {
	return fmt.Errorf("secret path")
}

// overRate refuses every request for its rate.
type overRate struct{}

func (overRate) Exceeded(charge.Request) (charge.Verdict, bool) {
	return charge.Verdict{Code: charge.RateLimitExceeded, RateLimit: 3, RateReset: 4, CreditsRemaining: charge.Unsent, RetryAfter: 4}, true
}

// TestAScreenSaysWhoseRateIsExceeded, for the line of the request, and that it cost nothing.
func TestAScreenSaysWhoseRateIsExceeded(t *testing.T) {
	w := newFixture(t)
	screen := engine.NewScreen(w.parts(), overRate{})
	for key, want := range map[string]server.Bill{w.key: {Account: 7, Key: 9}, ident.SandboxKey: {Sandbox: true}, "unknown": {}} {
		var bill server.Bill
		var response handler.Response
		require.True(t, screen.Refuse(server.WithBill(t.Context(), &bill), request("/v1/companies/"+sampletest.CompanyEveryField, key), &response))
		require.Equal(t, want, bill)
	}
}
