package engine_test

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/internal/testkit/sampletest"
	"regedge/schema"
)

// keyUntil adds a key to the fixture, as the writer projects it.
func (w *fixture) keyUntil(t *testing.T, id, ends int64, old string, oldEnds int64) string {
	t.Helper()
	db, err := schema.OpenFile(w.path)
	require.NoError(t, err)
	defer db.Close()
	key := ident.NewKey((&sequence{next: byte(id)}).Read)
	hash := sha256.Sum256([]byte(key))
	var oldHash []byte
	if old != "" {
		sum := sha256.Sum256([]byte(old))
		oldHash = sum[:]
	}
	_, err = db.Exec(`INSERT INTO api_key (id, account, hash, ends_at, old_hash, old_ends_at) VALUES (?, 7, ?, ?, ?, ?)`, id, hash[:], ends, oldHash, oldEnds)
	require.NoError(t, err)
	return key
}

// TestASecretEndsByTheEdgesClock: without the centre, both engines refuse a key at its expiry, and the secret
// from before a rotation at its own, with the same answer as for an unknown key.
func TestASecretEndsByTheEdgesClock(t *testing.T) {
	now := stopped{}.UnixMilli()
	for engine, a := range answerers(t) {
		t.Run(engine, func(t *testing.T) {
			old, older := ident.NewKey((&sequence{next: 100}).Read), ident.NewKey((&sequence{next: 120}).Read)
			for name, c := range map[string]struct {
				key    string
				status int
			}{
				"ends in a moment":                {a.keyUntil(t, 11, now+1, "", 0), 200},
				"ends now":                        {a.keyUntil(t, 12, now, "", 0), 401},
				"never ends":                      {a.keyUntil(t, 13, 0, old, now+1), 200},
				"the secret before":               {old, 200},
				"new, and the one before ended":   {a.keyUntil(t, 14, now+1, older, now), 200},
				"the secret before, when it ends": {older, 401},
			} {
				before := len(a.meter.charged)
				for range 2 { // the second one from the cache
					var response handler.Response
					require.NoError(t, a.Answer(t.Context(), request("/v1/companies/"+sampletest.CompanyEveryField, c.key), &response))
					require.Equal(t, c.status, response.Status, "%s: %s", name, response.Body)
					if c.status == 401 {
						require.Contains(t, string(response.Body), `"code":"invalid_api_key"`)
					}
				}
				charged := 0
				if c.status == 200 {
					charged = 2
				}
				require.Len(t, a.meter.charged, before+charged, name)
			}
			for _, r := range a.meter.charged {
				require.EqualValues(t, 7, r.Account)
			}
		})
	}
}
