package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/host/engine"
	"regedge/host/sqlite"
	"regedge/internal/testkit/sampletest"
	"regedge/schema"
)

const perMinute = 1000

// generous is a meter that gives every request what the plain server gives the first one.
type generous struct{}

func (generous) Charge(context.Context, charge.Request) charge.Verdict {
	return charge.Verdict{RateLimit: perMinute, RateRemaining: perMinute - 1, RateReset: 60, CreditsRemaining: plainCredits - 1, RetryAfter: charge.Unsent}
}

func (generous) Void(context.Context, string) error { return nil }

// fixed is a clock and a source of random bytes.
type fixed struct{}

func (fixed) UnixMilli() int64 { return 1_763_700_000_000 }
func (fixed) Read(p []byte)    { clear(p) }

// TestThePlainServerAnswersAsAnEdge with the same members of a company and header fields, or the comparison
// would be one of different work.
func TestThePlainServerAnswersAsAnEdge(t *testing.T) {
	registry, access := sampletest.Registry(t), filepath.Join(t.TempDir(), "access.db")
	key := ident.NewKey(fixed{}.Read)
	hash := ident.Hash(key)
	db, err := schema.OpenFile(access)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	for _, insert := range []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO plan (id, api_access, per_minute, monthly_volume, email, phone) VALUES ('made-up', 1, ?, 1, 1, 1)`, []any{perMinute}},
		{`INSERT INTO account (id, plan) VALUES (7, 'made-up')`, nil},
		{`INSERT INTO api_key (id, account, hash) VALUES (12, 7, ?)`, []any{hash[:]}},
	} {
		_, err = db.Exec(insert.sql, insert.args...)
		require.NoError(t, err)
	}
	store := func(path string) *sqlite.Store {
		s, err := sqlite.Open(sqlite.Config{Path: path, ReadTx: 10 * time.Millisecond})
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	native := engine.NewNative(engine.Parts{
		Access: store(access), Registry: store(registry), Meter: generous{}, Clock: fixed{}, Random: fixed{}, DocsURL: "http://docs.invalid",
	})
	charges := filepath.Join(t.TempDir(), "plain.db")
	peer, err := newPlain(access, registry, charges)
	require.NoError(t, err)
	server := httptest.NewServer(peer.routes())
	defer server.Close()
	for _, cin := range []string{sampletest.CompanyEveryField, sampletest.CompanyFullBoard, sampletest.CompanyBare} {
		var wanted handler.Response
		require.NoError(t, native.Answer(t.Context(), &handler.Request{
			Method: "GET", Target: "/v1/companies/" + cin, Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + key}},
		}, &wanted))
		request, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/v1/companies/"+cin, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+key)
		got, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer got.Body.Close()
		require.Equal(t, wanted.Status, got.StatusCode)
		var want, have struct{ Data, Meta map[string]any }
		require.NoError(t, json.Unmarshal(wanted.Body, &want))
		require.NoError(t, json.NewDecoder(got.Body).Decode(&have))
		require.Equal(t, want.Data, have.Data)
		require.Equal(t, names(want.Meta), names(have.Meta))
		for _, h := range wanted.Headers {
			require.NotEmpty(t, got.Header.Get(h.Name), h.Name)
		}
	}
	var charged int
	ledger, err := schema.OpenReadOnly(charges)
	require.NoError(t, err)
	defer ledger.Close()
	require.NoError(t, ledger.QueryRow("SELECT count(*) FROM charge WHERE account = 7").Scan(&charged))
	require.Equal(t, 3, charged)
}

func names(members map[string]any) (list []string) {
	for name := range members {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
