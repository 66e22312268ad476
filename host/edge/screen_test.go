package edge_test

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/host/edge"
	"regedge/host/engine"
	"regedge/host/sqlite"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/meter"
	"regedge/schema"
)

// noon is the clock of these tests, which stands still.
type noon struct{}

func (noon) now() time.Time     { return time.Date(2026, 3, 4, 12, 0, 17, 250_000_000, time.UTC) }
func (n noon) UnixMilli() int64 { return n.now().UnixMilli() }

// keyOf returns a key of the right form, the same for the same n.
func keyOf(n byte) string {
	return ident.NewKey(func(p []byte) {
		for i := range p {
			p[i] = n
		}
	})
}

// The keys of the screen's tests.
var (
	liveKey, suspendedKey, dashboardKey, unknownKey = keyOf(1), keyOf(2), keyOf(3), keyOf(4)
	brokenKey                                       = liveKey[:len(liveKey)-1] + "_"
)

// screened is a component and a screen over the same parts, with a real meter whose writer is away.
type screened struct {
	component *engine.Engine
	screen    *engine.Screen
	meter     *meter.Meter
}

func newScreened(t testing.TB) screened {
	t.Helper()
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: unreachable{}, WaitLimit: time.Nanosecond, Now: noon{}.now})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	registry, err := sqlite.Open(sqlite.Config{Path: sampletest.Registry(t)})
	require.NoError(t, err)
	t.Cleanup(func() { registry.Close() })
	parts := engine.Parts{
		Access: openAccess(t), Registry: registry, Meter: m,
		Clock: noon{}, Random: engine.Random{}, DocsURL: "http://docs.example",
	}
	component, err := engine.NewComponent(t.Context(), parts, engine.Limits{Instances: 2})
	require.NoError(t, err)
	t.Cleanup(func() { component.Close(context.Background()) })
	return screened{component, engine.NewScreen(parts, m), m}
}

// openAccess makes an access database with an account for each of the keys that are known.
func openAccess(t testing.TB) edge.Database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	run := func(statement string, args ...any) {
		_, err := db.Exec(statement, args...)
		require.NoError(t, err)
	}
	run(`INSERT INTO plan VALUES ('scale', 1, 3, 1000000, 1, 1), ('free', 0, 0, 0, 0, 0)`)
	run(`INSERT INTO account (id, plan, suspended) VALUES (7, 'scale', 0), (8, 'scale', 1), (9, 'free', 0)`)
	for account, key := range map[int]string{7: liveKey, 8: suspendedKey, 9: dashboardKey} {
		hash := sha256.Sum256([]byte(key))
		run(`INSERT INTO api_key (id, account, hash) VALUES (?1, ?1, ?2)`, account, hash[:])
	}
	require.NoError(t, db.Close())
	access, err := edge.OpenFile(t.Context(), schema.Access, path)
	require.NoError(t, err)
	t.Cleanup(func() { access.Close() })
	return access
}

func lookup(method, target string, authorization ...string) *handler.Request {
	q := &handler.Request{Method: method, Target: target, ClientAddr: func() string { return "192.0.2.1" }}
	for _, value := range authorization {
		q.Headers = append(q.Headers, handler.Header{Name: "Authorization", Value: value})
	}
	return q
}

// anonymous replaces the request id, which no two answers share, and drops the length, which only the
// component sends: the server sets its own.
func anonymous(r *handler.Response) {
	r.Headers = slices.DeleteFunc(r.Headers, func(h handler.Header) bool { return h.Name == "Content-Length" })
	for i, h := range r.Headers {
		if h.Name == handler.HeaderRequestID {
			r.Headers[i].Value = strings.Repeat("0", len(h.Value))
			r.Body = []byte(strings.ReplaceAll(string(r.Body), h.Value, r.Headers[i].Value))
		}
	}
}

// refusals are requests that are refused without the registry, once the rates are used up.
func refusals() map[string]*handler.Request {
	const company = "/v1/companies/"
	return map[string]*handler.Request{
		"sandbox over its rate":                  lookup("GET", company+sampletest.CompanyEveryField, "Bearer "+ident.SandboxKey),
		"sandbox over its rate, unknown company": lookup("GET", company+sampletest.CompanyNotHeld, "bearer "+ident.SandboxKey),
		"sandbox over its rate, no CIN":          lookup("GET", company+"x", "Bearer "+ident.SandboxKey),
		"sandbox over its rate, a search":        lookup("GET", "/v1/search/companies?name=a", "Bearer "+ident.SandboxKey),
		"a live key over its rate":               lookup("GET", company+sampletest.CompanyEveryField, "Bearer "+liveKey),
		"a live key over its rate, no DIN":       lookup("GET", "/v1/directors/x", "Bearer "+liveKey),
		"a made-up key":                          lookup("GET", company+sampletest.CompanyEveryField, "Bearer "+unknownKey),
		"a made-up key with a wrong checksum":    lookup("GET", company+sampletest.CompanyEveryField, "Bearer "+brokenKey),
		"a key that is no key":                   lookup("GET", company+"x", "Bearer x"),
		"another scheme":                         lookup("GET", company+"x", "Basic "+liveKey),
		"two keys":                               lookup("GET", company+"x", "Bearer "+liveKey, "Bearer "+liveKey),
		"no key":                                 lookup("GET", company+"x"),
		"a suspended account":                    lookup("GET", company+"x", "Bearer "+suspendedKey),
		"a plan without API access":              lookup("GET", company+"x", "Bearer "+dashboardKey),
		"no endpoint":                            lookup("GET", "/v2", "Bearer "+liveKey),
		"another method":                         lookup("POST", company+"x", "Bearer "+liveKey),
		"a preflight":                            lookup("OPTIONS", company+"x"),
	}
}

// useUpRates uses up the current minute's rate of the sandbox and of the live key.
func (s screened) useUpRates(t testing.TB) {
	t.Helper()
	for range handler.SandboxPerMinute {
		for _, key := range []string{ident.SandboxKey, liveKey} {
			require.NoError(t, s.component.Answer(t.Context(), lookup("GET", "/v1/companies/x", "Bearer "+key), &handler.Response{}))
		}
	}
}

func TestTheScreenRefusesByteForByteAsTheComponent(t *testing.T) {
	s := newScreened(t)
	s.useUpRates(t)
	for name, q := range refusals() {
		t.Run(name, func(t *testing.T) {
			var want, got handler.Response
			require.NoError(t, s.component.Answer(t.Context(), q, &want))
			require.True(t, s.screen.Refuse(t.Context(), q, &got))
			anonymous(&want)
			anonymous(&got)
			require.Equal(t, want, got)
		})
	}
}

func TestTheScreenLetsPassWhatIsNotRefused(t *testing.T) {
	s := newScreened(t)
	for _, key := range []string{ident.SandboxKey, liveKey} {
		for _, target := range []string{"/v1/companies/" + sampletest.CompanyEveryField, "/v1/companies/x", "/v1/search/companies?name=a"} {
			for range 100 { // it counts nothing
				var got handler.Response
				require.False(t, s.screen.Refuse(t.Context(), lookup("GET", target, "Bearer "+key), &got))
				require.Zero(t, got)
			}
		}
	}
	require.Zero(t, s.meter.Stats().Refused)
}

// BenchmarkRefusal is the cost of refusing a request, in the component and in the screen.
func BenchmarkRefusal(b *testing.B) {
	s := newScreened(b)
	s.useUpRates(b)
	var madeUp atomic.Uint32
	newKey := func() string {
		n := madeUp.Add(1)
		return ident.NewKey(func(p []byte) {
			for i := range p {
				p[i] = byte(n >> (8 * (i % 4)))
			}
		})
	}
	for _, name := range []string{"sandbox over its rate", "a live key over its rate", "a made-up key", "a made-up key with a wrong checksum", "no key"} {
		q := refusals()[name]
		next := func() *handler.Request { return q }
		if name == "a made-up key" {
			var many []*handler.Request
			for range 1024 {
				many = append(many, lookup("GET", q.Target, "Bearer "+newKey()))
			}
			next = func() *handler.Request { return many[madeUp.Add(1)%1024] }
		}
		for way, refuse := range map[string]func(*handler.Request, *handler.Response) bool{
			"component": func(q *handler.Request, a *handler.Response) bool {
				return s.component.Answer(b.Context(), q, a) == nil
			},
			"screen": func(q *handler.Request, a *handler.Response) bool { return s.screen.Refuse(b.Context(), q, a) },
		} {
			b.Run(name+"/"+way, func(b *testing.B) {
				var response handler.Response
				b.ReportAllocs()
				for b.Loop() {
					response = handler.Response{Headers: response.Headers[:0], Body: response.Body[:0]}
					if !refuse(next(), &response) || response.Status < 400 {
						b.Fatalf("got %d, want a refusal", response.Status)
					}
				}
			})
		}
	}
}
