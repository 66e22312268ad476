package engine

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/server"
	"regedge/internal/testkit"
)

// hostileModule is testdata/hostile.wat, assembled by Binaryen's wasm-as. It breaks
// one rule for each path.
//
//go:embed testdata/hostile.wasm
var hostileModule []byte

// asComponent wraps core modules as a component does.
func asComponent(modules ...[]byte) []byte {
	binary := append([]byte{}, componentPreamble...)
	for _, m := range modules {
		binary = append(binary, sectionCoreModule)
		binary = appendU32(binary, uint32(len(m)))
		binary = append(binary, m...)
	}
	return binary
}

// hostileTimeout ends the guest that waits for an hour.
const hostileTimeout = 300 * time.Millisecond

func hostileConfig(t testing.TB, meter Meter) Config {
	databases, _ := newDatabases(t)
	config := realConfig(databases, meter)
	config.Component = asComponent(hostileModule)
	config.Timeout = hostileTimeout
	config.MemoryLimit = 4 << 20
	return config
}

// failing lists the faults that fail their request, with a pattern of the error.
var failing = []struct{ path, name, want string }{
	{"/a", "forged handle", "is not a handle of a incoming-request"},
	{"/b", "dropped handle", "is not a handle of a incoming-request"},
	{"/c", "foreign handle", "is not a handle of a incoming-request"},
	{"/d", "moved handle", "is not a handle of a fields"},
	{"/e", "two answers", "is not a handle of a response-outparam"},
	{"/f", "no answer", "without a response"},
	{"/g", "result out of range", "pointer out of range"},
	{"/h", "text out of range", "pointer out of range"},
	{"/i", "misaligned result", "not aligned"},
	{"/j", "text not UTF-8", "not UTF-8"},
	{"/k", "endless loop", "run-time limit"},
	{"/l", "endless recursion", "stack overflow|run-time limit"},
	{"/m", "endless shallow recursion", "run-time limit"},
	{"/n", "trap", "unreachable"},
	{"/p", "memory exhausted", "out of bounds memory access"},
	{"/r", "allocator traps", "cabi_realloc"},
	{"/s", "allocator out of range", "cabi_realloc returned"},
	{"/t", "allocator misaligned", "cabi_realloc returned"},
	{"/u", "allocator calls the host", "out of turn"},
	{"/v", "allocator hangs", "run-time limit"},
	{"/6", "allocator past the end", "cabi_realloc returned"},
	{"/w", "body without end", "body is over the limit"},
	{"/z", "handles without end", "handles"},
	{"/A", "wait for nothing", "poll of 0"},
	{"/B", "wait for a foreign handle", "is not a handle of a pollable"},
	{"/C", "wait of an hour", "run-time limit"},
	{"/D", "body dropped before its stream", "dropped before what belongs to it"},
	{"/E", "unfinished body", "before it finished the body"},
	{"/M", "too many header fields", "over the limit"},
	{"/N", "list size overflows", "poll of"},
	{"/O", "statements without end", "over 16"},
	{"/P", "no case of the variant", "not a case"},
	{"/R", "error instead of a response", "error-code 38"},
	{"/U", "no case of the SQL value", "SQL parameter"},
	{"/V", "wrong content-length", "content-length"},
	{"/0", "request dropped before its fields", "dropped before what belongs to it"},
	{"/4", "dropped twice", "is not a handle of a fields"},
	{"/5", "endless loop of calls", "lists of header fields"},
	{"/9", "endless loop of filling memory", "run-time limit"},
	{"/-", "unknown fault", "unreachable"},
}

func TestHostileGuestFailsItsRequestAlone(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		config := hostileConfig(t, newLedger())
		config.Fresh = fresh
		e := newEngine(t, config)
		for _, c := range failing {
			t.Run(c.name, func(t *testing.T) {
				resp := handler.Response{Status: 1, Headers: []handler.Header{{}}, Body: []byte("left over")}
				err := e.Answer(t.Context(), longLookup(c.path), &resp)
				require.ErrorIs(t, err, ErrGuest)
				require.Regexp(t, c.want, err.Error())
				if c.path != "/l" { // either limit may come first
					require.Equal(t, c.want == "run-time limit", errors.Is(err, ErrTimeLimit))
				}
				require.Zero(t, resp.Status)
				require.Empty(t, resp.Headers)
				require.Empty(t, resp.Body)
				requireAlive(t, e)
			})
		}
		require.Zero(t, e.Stats().Busy)
	}
}

// longLookup is a request whose header fields do not fit into the spare area.
func longLookup(path string) *handler.Request {
	req := lookup(path, "")
	req.Headers = append(req.Headers, handler.Header{Name: "X-Long", Value: strings.Repeat("x", spareBytes)})
	return req
}

func requireAlive(t *testing.T, e *Engine) {
	t.Helper()
	var resp handler.Response
	require.NoError(t, e.Answer(t.Context(), lookup("/o", ""), &resp))
	require.Equal(t, 200, resp.Status)
	require.Equal(t, "ok", string(resp.Body))
}

// refusals lists the faults to which the host returns an error that the guest can handle.
var refusals = []struct{ path, name, want string }{
	{"/x", "line end in a header", "refused"},
	{"/y", "header of the connection", "refused"},
	{"/I", "another server", "refused"},
	{"/J", "wrong token", "refused"},
	{"/K", "wrong method of the meter", "refused"},
	{"/L", "malformed charge", "refused"},
	{"/Q", "impossible status", "refused"},
	{"/T", "unknown database", "refused"},
	{"/W", "wrong statement", "refused"},
	{"/Y", "unknown variable", "refused"},
	{"/2", "calls of the meter without end", "refused"},
	{"/3", "answer taken twice", "refused"},
	{"/H", "honest charge", "ok"},
	{"/q", "grown memory", "ok"},
	{"/7", "allocator hides what was used", "ok"},
	{"/8", "allocator hangs afterwards", "ok"},
}

func TestHostRefusesWithAnError(t *testing.T) {
	e := newEngine(t, hostileConfig(t, newLedger()))
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			var resp handler.Response
			require.NoError(t, e.Answer(t.Context(), lookup(c.path, ""), &resp))
			require.Equal(t, c.want, string(resp.Body))
			requireAlive(t, e)
		})
	}
}

func TestInstanceThatCannotBeRestoredIsDiscarded(t *testing.T) {
	for _, path := range []string{"/q", "/7", "/8"} {
		e := newEngine(t, hostileConfig(t, newLedger()))
		var resp handler.Response
		require.NoError(t, e.Answer(t.Context(), lookup(path, ""), &resp))
		require.Equal(t, int64(1), e.Stats().Discarded, path)
		requireAlive(t, e)
		require.Equal(t, int64(2), e.Stats().Created, path)
	}
}

// TestAnInstanceThatFailedIsNotUsedAgain, though its memory could be restored: operators see how many were thrown away.
func TestAnInstanceThatFailedIsNotUsedAgain(t *testing.T) {
	e := newEngine(t, hostileConfig(t, newLedger()))
	for n, fault := range failing {
		if n == 3 {
			break
		}
		require.Error(t, e.Answer(t.Context(), lookup(fault.path, ""), new(handler.Response)))
		require.Equal(t, Stats{Created: int64(n + 1), Discarded: int64(n + 1)}, e.Stats(), fault.name)
	}
	requireAlive(t, e)
	require.Equal(t, Stats{Created: 4, Discarded: 3}, e.Stats())
}

// TestALengthThatIsNoNumberIsWrong: a client would read the answer in its own way.
func TestALengthThatIsNoNumberIsWrong(t *testing.T) {
	for value, right := range map[string]bool{"2": true, "3": false, "": false, "2x": false, " 2": false} {
		err := checkLength(&handler.Response{Headers: []handler.Header{{Name: "content-Length", Value: value}}, Body: []byte("{}")})
		require.Equal(t, right, err == nil, "%q", value)
	}
	require.Error(t, checkLength(&handler.Response{Headers: []handler.Header{{Name: "Content-Length", Value: "none"}}}))
	require.NoError(t, checkLength(&handler.Response{Headers: []handler.Header{{Name: "Content-Length", Value: "0"}}}))
}

func TestChargeOfAFailedRequestIsVoided(t *testing.T) {
	meter := newLedger()
	e := newEngine(t, hostileConfig(t, meter))
	var resp handler.Response
	for _, path := range []string{"/F", "/G"} {
		meter.voided = nil
		require.ErrorIs(t, e.Answer(t.Context(), lookup(path, ""), &resp), ErrGuest)
		require.Equal(t, []string{"hostile-1"}, meter.voided, path)
		require.Zero(t, meter.standing())
	}
}

func TestChargeIsVoidedWhenTheClientIsGone(t *testing.T) {
	meter := newLedger()
	e := newEngine(t, hostileConfig(t, meter))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	var resp handler.Response
	require.ErrorIs(t, e.Answer(ctx, lookup("/F", ""), &resp), ErrGuest)
	require.Zero(t, meter.standing())
}

func TestChargeThatTheGuestVoidedIsLeftAlone(t *testing.T) {
	meter := newLedger()
	e := newEngine(t, hostileConfig(t, meter))
	var resp handler.Response
	var bill server.Bill
	require.ErrorIs(t, e.Answer(server.WithBill(t.Context(), &bill), lookup("/Z", ""), &resp), ErrGuest)
	require.Equal(t, []string{"hostile-1"}, meter.voided)
	require.Zero(t, bill.Cost)
}

// breaking is a meter that fails once it has charged.
type breaking struct{ *ledger }

func (m breaking) Charge(ctx context.Context, r charge.Request) charge.Verdict {
	m.ledger.Charge(ctx, r)
	panic("the host fails")
}

func TestChargeOfAMeterThatBreaksIsVoided(t *testing.T) {
	meter := newLedger()
	e := newEngine(t, hostileConfig(t, breaking{meter}))
	var resp handler.Response
	require.ErrorContains(t, e.Answer(t.Context(), lookup("/H", ""), &resp), "the host fails")
	require.Equal(t, []string{"hostile-1"}, meter.voided)
	require.Zero(t, meter.standing())
}

func TestChargeOfAGoodRequestStands(t *testing.T) {
	meter := newLedger()
	e := newEngine(t, hostileConfig(t, meter))
	var resp handler.Response
	require.NoError(t, e.Answer(t.Context(), lookup("/H", ""), &resp))
	require.Equal(t, 1, meter.standing())
	require.Empty(t, meter.voided)
}

func TestChargeOfAnEarlierRequestStands(t *testing.T) {
	meter := newLedger()
	config := hostileConfig(t, meter)
	config.MaxInstances = 1
	e := newEngine(t, config)
	var resp handler.Response
	require.NoError(t, e.Answer(t.Context(), lookup("/H", ""), &resp))
	require.ErrorIs(t, e.Answer(t.Context(), lookup("/n", ""), &resp), ErrGuest, "on the same instance")
	require.Empty(t, meter.voided)
	require.Equal(t, 1, meter.standing())
}

func TestFailedVoidIsReported(t *testing.T) {
	meter := newLedger()
	meter.voidFail = errors.New("writer is away")
	e := newEngine(t, hostileConfig(t, meter))
	var resp handler.Response
	err := e.Answer(t.Context(), lookup("/F", ""), &resp)
	require.ErrorIs(t, err, ErrGuest)
	require.ErrorContains(t, err, "void charge hostile-1: writer is away")
}

// wide is a database that returns one row of a number of bytes.
type wide int

func (w wide) Query(_ context.Context, _ string, _ []handler.Value, dst *handler.Result) error {
	dst.Columns = 1
	dst.Values = append(dst.Values[:0], handler.Value{Kind: handler.Text, Text: strings.Repeat("x", int(w))})
	return nil
}

func TestResultOverTheLimitFailsItsRequestAlone(t *testing.T) {
	config := hostileConfig(t, newLedger())
	config.Databases["registry"] = wide(maxLowerBytes + 1)
	e := newEngine(t, config)
	var resp handler.Response
	err := e.Answer(t.Context(), lookup("/X", ""), &resp)
	require.ErrorIs(t, err, ErrGuest)
	require.ErrorContains(t, err, "over the limit")
	requireAlive(t, e)
}

// slowMeter returns when its context ends.
type slowMeter struct{ *ledger }

func (m slowMeter) Charge(ctx context.Context, r charge.Request) charge.Verdict {
	<-ctx.Done()
	return charge.Verdict{Code: charge.MeteringUnavailable, RateLimit: charge.Unsent, RateRemaining: charge.Unsent,
		RateReset: charge.Unsent, CreditsRemaining: charge.Unsent, RetryAfter: 1}
}

func TestMeterCallIsLimitedInTime(t *testing.T) {
	config := hostileConfig(t, slowMeter{newLedger()})
	config.Timeout = 20 * time.Second
	e := newEngine(t, config)
	began := time.Now()
	var resp handler.Response
	require.NoError(t, e.Answer(t.Context(), lookup("/H", ""), &resp))
	require.Equal(t, "refused", string(resp.Body), "503 is not 200")
	require.GreaterOrEqual(t, time.Since(began), meterLimit)
}

func TestConcurrentFaultsAreIsolated(t *testing.T) {
	config := hostileConfig(t, newLedger())
	config.MaxInstances = 3
	e := newEngine(t, config)
	done := make(chan error)
	paths := []string{"/o", "/a", "/n", "/o", "/q", "/S", "/k", "/o"}
	for _, path := range paths {
		go func() {
			var err error
			for range 20 {
				var resp handler.Response
				if path == "/k" {
					err = errors.Join(err, mustFail(e.Answer(context.Background(), lookup(path, ""), &resp)))
					break
				}
				served := e.Answer(context.Background(), lookup(path, ""), &resp)
				if good := strings.Contains("/o/q/S", path); good != (served == nil) || good && string(resp.Body) != "ok" {
					err = errors.Join(err, errors.New(path), served)
				}
			}
			done <- err
		}()
	}
	for range paths {
		require.NoError(t, <-done)
	}
	requireAlive(t, e)
}

// Go cannot preempt a guest that computes, so a garbage collection waits for it, and all goroutines
// wait for the collection. This test hangs if a guest does not end by itself.
func TestGarbageCollectionOutlivesAnEndlessLoop(t *testing.T) {
	e := newEngine(t, hostileConfig(t, newLedger()))
	served := make(chan error)
	for _, path := range []string{"/k", "/m", "/9"} {
		go func() {
			var resp handler.Response
			served <- e.Answer(context.Background(), lookup(path, ""), &resp)
		}()
		runtime.GC()
		require.ErrorIs(t, <-served, ErrTimeLimit)
	}
}

func TestLookupIsFarBelowTheStepLimit(t *testing.T) {
	databases, key := newDatabases(t)
	config := realConfig(databases, newLedger())
	config.StepLimit = DefaultStepLimit / 200
	e := newEngine(t, config)
	var resp handler.Response
	require.NoError(t, e.Answer(t.Context(), lookup("/v1/companies/"+madeUpCIN, key), &resp))
	require.Equal(t, 200, resp.Status)
}

func mustFail(err error) error {
	if err == nil {
		return errors.New("served, want a failure")
	}
	return nil
}

func TestHostileModuleMatchesItsSource(t *testing.T) {
	assembler, err := exec.LookPath("wasm-as")
	if err != nil {
		testkit.MissingTool(t, "Binaryen's wasm-as is not installed")
	}
	out := filepath.Join(t.TempDir(), "hostile.wasm")
	said, err := exec.Command(assembler, "--enable-bulk-memory", "--enable-mutable-globals", "--enable-sign-ext",
		"testdata/hostile.wat", "-o", out).CombinedOutput()
	require.NoError(t, err, string(said))
	built, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, hostileModule, built, "assemble testdata/hostile.wat again")
}

// TestCallsOfTheHostAreBounded, also those that leave nothing behind, such as a look at the clock.
func TestCallsOfTheHostAreBounded(t *testing.T) {
	served := 0
	f := &function{serve: func(*instance, []uint64) { served++ }}
	i := &instance{mayCall: true}
	for range maxCalls {
		f.Call(i, nil)
	}
	require.Panics(t, func() { f.Call(i, nil) })
	require.Equal(t, maxCalls, served)
}
