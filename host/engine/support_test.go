package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/handler/directors"
	"regedge/handler/ident"
	"regedge/host/sqlite"
	"regedge/schema"
	"regedge/wasm"
)

// The company that the tests look up. It is made up.
const (
	madeUpCIN   = "U72900KA2015PTC990001"
	madeUpEmail = "registry@example.com"
	docsURL     = "http://docs.example"
)

const madeUpRegistry = `
INSERT INTO pincode VALUES ('560001', 'Bengaluru', 'Karnataka');
INSERT INTO company (rowid, cin, company_name, status, incorporation_date, category, class, roc, authorized_capital,
  paid_up_capital, listed, main_division, state, pincode, address_line, city, email, as_of, last_updated) VALUES
  (cin_number('` + madeUpCIN + `'), '` + madeUpCIN + `', 'MADE-UP EXAMPLE PRIVATE LIMITED', 'ACTIVE', '2015-04-01', 'Company limited by Shares', 'Private',
  'RoC-Bangalore', 1000000, 500000, 0, 'Computer and related activities', 'Karnataka', '560001', '1 Made-up Road',
  'Bengaluru', '` + madeUpEmail + `', '2025-01-01', 1735689600);
INSERT INTO director (din, name, as_of, last_updated) VALUES
  ('00000001', 'MADE-UP ASHA', '2025-01-01', 1735689600), ('00000002', 'MADE-UP RAVI', '2025-01-01', 1735689600),
  ('00000003', 'MADE-UP MEENA', '2025-01-01', 1735689600);
INSERT INTO appointment (cin, din, designation, appointment_date, as_of)
  SELECT '` + madeUpCIN + `', din, 'Director', '2016-02-0' || substr(din, 8), '2025-01-01' FROM director;
INSERT INTO release (seq, id, released_at, companies, llps, directors, appointments, partners)
  VALUES (1, 'r1', 1735689600, 1, 0, 3, 3, 0);`

// madeUpBoards stores the directors lists as an import does.
var madeUpBoards = `UPDATE company SET district = (SELECT p.district FROM pincode p WHERE p.pincode = company.pincode),
	directors = coalesce(` + directors.Of("company.cin") + ", '');"

const madeUpPlan = `
INSERT INTO plan VALUES ('scale', 1, 1200, 1000000, 1, 1);
INSERT INTO account VALUES (7, 'scale', 0);`

// newDatabases makes both databases and returns them with a live key.
func newDatabases(t testing.TB) (databases map[string]Database, key string) {
	t.Helper()
	key = ident.NewKey((&seeded{rand.NewChaCha8([32]byte{1})}).Read)
	hash := sha256.Sum256([]byte(key))
	databases = map[string]Database{
		"registry": newDatabase(t, schema.Registry, madeUpRegistry+madeUpBoards),
		"access":   newDatabase(t, schema.Access, madeUpPlan+fmt.Sprintf(`INSERT INTO api_key (id, account, hash) VALUES (12, 7, x'%x')`, hash)),
	}
	return databases, key
}

func newDatabase(t testing.TB, database schema.Database, script string) *sqlite.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), string(database)+".db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, schema.Migrate(t.Context(), db, database))
	_, err = db.Exec(script)
	require.NoError(t, err)
	s, err := sqlite.Open(sqlite.Config{Path: path, ReadTx: 10 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// ledger is a meter with one balance, which records the charges.
type ledger struct {
	mu       sync.Mutex
	charged  map[string]charge.Request
	voided   []string
	credits  int64
	code     string // refuses every charge, if not empty
	voidFail error
}

func newLedger() *ledger { return &ledger{charged: map[string]charge.Request{}, credits: 1000} }

func (l *ledger) Charge(_ context.Context, r charge.Request) charge.Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := charge.Verdict{Code: l.code, RateLimit: r.PerMinute, RateRemaining: r.PerMinute - 1, RateReset: 60,
		CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent}
	if v.Code != "" {
		return v
	}
	l.charged[r.ID] = r
	if !r.Sandbox {
		v.CreditsRemaining = l.credits - int64(len(l.charged))
	}
	return v
}

func (l *ledger) Void(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.voidFail != nil {
		return l.voidFail
	}
	delete(l.charged, id)
	l.voided = append(l.voided, id)
	return nil
}

// standing returns the number of charges that are not voided.
func (l *ledger) standing() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.charged)
}

// frozen is a clock that stands still.
type frozen int64

func (f frozen) UnixMilli() int64 { return int64(f) }

// constant is randomness that is always the same, so that answers can be compared.
type constant struct{}

func (constant) Read(p []byte) {
	for n := range p {
		p[n] = 0xa5
	}
}

// seeded is randomness from a seed.
type seeded struct{ source *rand.ChaCha8 }

func (s *seeded) Read(p []byte) {
	var eight [8]byte
	for len(p) > 0 {
		binary.LittleEndian.PutUint64(eight[:], s.source.Uint64())
		p = p[copy(p, eight[:]):]
	}
}

func testVariables() map[string]string {
	return map[string]string{"meter_url": "http://meter.internal", "meter_token": "token-of-the-meter", "docs_url": docsURL}
}

// realConfig runs the service's component.
func realConfig(databases map[string]Database, meter Meter) Config {
	return Config{
		Component: wasm.Component, Databases: databases, Meter: meter,
		Variables: testVariables(), Clock: frozen(1763700000000), Random: constant{},
	}
}

func newEngine(t testing.TB, config Config) *Engine {
	t.Helper()
	e, err := New(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	return e
}

func lookup(path, key string) *handler.Request {
	return &handler.Request{
		Method: "GET", Target: path, ClientAddr: func() string { return "192.0.2.1" },
		Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + key}},
	}
}

func header(r *handler.Response, name string) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

var _ handler.Clock = frozen(0)

func TestEngineAnswersACompany(t *testing.T) {
	databases, key := newDatabases(t)
	meter := newLedger()
	e := newEngine(t, realConfig(databases, meter))
	var resp handler.Response
	require.NoError(t, e.Answer(t.Context(), lookup("/v1/companies/"+madeUpCIN, key), &resp))
	require.Equal(t, 200, resp.Status, string(resp.Body))
	require.Equal(t, madeUpCIN, gjson.GetBytes(resp.Body, "data.cin").String())
	require.Equal(t, madeUpEmail, gjson.GetBytes(resp.Body, "data.contact.email").String())
	require.Len(t, gjson.GetBytes(resp.Body, "data.directors").Array(), 3)
	require.Equal(t, "r1", header(&resp, "X-Registry-Release"))
	require.Equal(t, "999", header(&resp, "X-Credits-Remaining"))
	require.Equal(t, 1, meter.standing())
}

// TestALookupMakesSoManyCallsOfTheHost: docs/performance.md says what each is for.
func TestALookupMakesSoManyCallsOfTheHost(t *testing.T) {
	databases, key := newDatabases(t)
	i, err := newEngine(t, realConfig(databases, newLedger())).acquire(t.Context())
	require.NoError(t, err)
	defer i.engine.release(context.Background(), i, false)
	var resp handler.Response
	i.begin(t.Context(), time.Minute, i.reserved, lookup("/v1/companies/"+madeUpCIN, key), &resp)
	defer i.end()
	request, out := i.add(kindIncomingRequest, 0, noParent), i.add(kindResponseOutparam, 0, noParent)
	i.mayCall = true
	require.NoError(t, i.limited(func() error {
		return i.handleFunc.CallWithStack(i, []uint64{uint64(request), uint64(out)})
	}))
	require.NoError(t, i.takeResponse())
	require.Equal(t, 200, resp.Status)
	require.Equal(t, 32, i.calls)
}
