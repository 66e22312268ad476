package writer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// accessKey is a key's row of the access database.
type accessKey struct {
	hash, old     []byte
	ends, oldEnds int64
	allowed       []byte
	perMinute     int64
	limited       int64
}

func readAccessKey(t *testing.T, w *Writer, id int64) (k accessKey) {
	t.Helper()
	err := w.config.Access.QueryRow(`SELECT hash, ends_at, old_hash, old_ends_at, allowed, per_minute, limited_until FROM api_key WHERE id = ?`, id).Scan(&k.hash, &k.ends, &k.old, &k.oldEnds, &k.allowed, &k.perMinute, &k.limited)
	require.NoError(t, err)
	return k
}

func hashOfKey(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// keyFor makes an account with a key.
func keyFor(t *testing.T, client *Client) (account int64, key NewKey) {
	t.Helper()
	a, err := client.AddAccount(t.Context(), "Acme", "", "starter")
	require.NoError(t, err)
	key, err = client.AddKey(t.Context(), a.ID, "server")
	require.NoError(t, err)
	return a.ID, key
}

func TestAKeyExpires(t *testing.T) {
	w, client, clock := runForRoles(t)
	account, _ := keyFor(t, client)
	_, err := client.AddKeyWith(t.Context(), account, KeySettings{Name: "late", Expires: new(clock.now())})
	require.ErrorIs(t, err, ErrMalformed, "in the past")
	never := time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	_, err = client.AddKeyWith(t.Context(), account, KeySettings{Name: "late", Expires: &never})
	require.ErrorIs(t, err, ErrMalformed, "its year has five digits in UTC")
	ends := clock.now().Add(time.Hour).Truncate(time.Millisecond)
	k, err := client.AddKeyWith(t.Context(), account, KeySettings{Name: "trial", Expires: &ends})
	require.NoError(t, err)
	require.True(t, ends.Equal(*k.Expires))
	require.Equal(t, ends.UnixMilli(), readAccessKey(t, w, k.ID).ends)

	later := ends.Add(time.Hour)
	changed, err := client.ChangeKey(t.Context(), k.ID, KeyChange{Expires: &later})
	require.NoError(t, err)
	require.Equal(t, "trial", changed.Name)
	require.Equal(t, later.UnixMilli(), readAccessKey(t, w, k.ID).ends)
	clock.pass(90 * time.Minute)
	read, err := client.Key(t.Context(), k.ID)
	require.NoError(t, err)
	require.True(t, read.Active())
	clock.pass(30 * time.Minute)
	read, err = client.Key(t.Context(), k.ID)
	require.NoError(t, err)
	require.True(t, read.Expired)
	_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{NeverExpires: true})
	require.ErrorIs(t, err, ErrKeyEnded, "what has ended stays so")
	_, err = client.RotateKey(t.Context(), k.ID, time.Hour)
	require.ErrorIs(t, err, ErrKeyEnded)
	a, err := client.Account(t.Context(), account)
	require.NoError(t, err)
	require.Equal(t, 1, a.Keys, "an expired key is not active")
	for range 4 {
		_, err = client.AddKey(t.Context(), account, "")
		require.NoError(t, err)
	}
	_, err = client.AddKey(t.Context(), account, "")
	require.ErrorIs(t, err, ErrTooManyKeys)
}

func TestAKeyIsRenamed(t *testing.T) {
	w, client, clock := runForRoles(t)
	_, k := keyFor(t, client)
	ends := clock.now().Add(time.Hour)
	_, err := client.ChangeKey(t.Context(), k.ID, KeyChange{Expires: &ends})
	require.NoError(t, err)
	name := "billing"
	changed, err := client.ChangeKey(t.Context(), k.ID, KeyChange{Name: &name})
	require.NoError(t, err)
	require.Equal(t, "billing", changed.Name)
	require.NotNil(t, changed.Expires, "the end stays")
	changed, err = client.ChangeKey(t.Context(), k.ID, KeyChange{NeverExpires: true})
	require.NoError(t, err)
	require.Nil(t, changed.Expires)
	require.Zero(t, readAccessKey(t, w, k.ID).ends)
	_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{NeverExpires: true, Expires: &ends})
	require.ErrorIs(t, err, ErrMalformed)
	bad := "a\nb"
	_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{Name: &bad})
	require.ErrorIs(t, err, ErrMalformed)
	_, err = client.RevokeKey(t.Context(), k.ID)
	require.NoError(t, err)
	_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{Name: &name})
	require.ErrorIs(t, err, ErrKeyEnded)
	_, err = client.ChangeKey(t.Context(), 99, KeyChange{Name: &name})
	require.ErrorIs(t, err, ErrNotFound)
}

func TestARotatedKeyHasTwoSecretsForATime(t *testing.T) {
	w, client, clock := runForRoles(t)
	account, first := keyFor(t, client)
	second, err := client.RotateKey(t.Context(), first.ID, time.Hour)
	require.NoError(t, err)
	require.Equal(t, first.ID, second.ID, "it is the same key: its usage, its limits and its place go on")
	require.NotEqual(t, first.Secret, second.Secret)
	require.Equal(t, first.Shown, second.OldShown)
	require.Equal(t, clock.now().Add(time.Hour).UnixMilli(), second.OldEnds.UnixMilli())
	row := readAccessKey(t, w, first.ID)
	require.Equal(t, accessKey{hashOfKey(second.Secret), hashOfKey(first.Secret), 0, second.OldEnds.UnixMilli(), []byte{}, 0, 0}, row)

	third, err := client.RotateKey(t.Context(), first.ID, time.Hour)
	require.NoError(t, err)
	require.Equal(t, hashOfKey(second.Secret), readAccessKey(t, w, first.ID).old, "the first secret has ended")
	soon := clock.now().Add(time.Minute)
	_, err = client.ChangeKey(t.Context(), first.ID, KeyChange{Expires: &soon})
	require.NoError(t, err)
	require.Equal(t, soon.UnixMilli(), readAccessKey(t, w, first.ID).oldEnds, "an old secret does not outlast its key")

	last, err := client.RotateKey(t.Context(), first.ID, 0)
	require.NoError(t, err)
	require.Nil(t, last.OldEnds)
	row = readAccessKey(t, w, first.ID)
	require.Equal(t, hashOfKey(last.Secret), row.hash)
	require.Nil(t, row.old, "without an overlap the secret before ends at once")
	require.NotEqual(t, third.Secret, last.Secret)
	for _, overlap := range []time.Duration{-time.Second, MaxOverlap + time.Second} {
		_, err = client.RotateKey(t.Context(), first.ID, overlap)
		require.ErrorIs(t, err, ErrMalformed)
	}
	a, err := client.Account(t.Context(), account)
	require.NoError(t, err)
	require.Equal(t, 1, a.Keys)
	_, err = client.RevokeKey(t.Context(), first.ID)
	require.NoError(t, err)
	var n int
	require.NoError(t, w.config.Access.QueryRow(`SELECT count(*) FROM api_key`).Scan(&n))
	require.Zero(t, n, "a revocation ends both secrets")
}

// TestAWriterThatStartsRepairsEndsAndOldSecrets: both are part of the projection.
func TestAWriterThatStartsRepairsEndsAndOldSecrets(t *testing.T) {
	w, client, _ := runForRoles(t)
	_, k := keyFor(t, client)
	_, err := client.RotateKey(t.Context(), k.ID, time.Hour)
	require.NoError(t, err)
	_, err = client.ChangeKey(t.Context(), k.ID, KeyChange{Allowed: &[]string{"192.0.2.0/24"}})
	require.NoError(t, err)
	want := readAccessKey(t, w, k.ID)
	for _, damage := range []string{`ends_at = 5`, `allowed = x'0400'`, `per_minute = 3`, `limited_until = 4`, `old_hash = NULL`, `old_ends_at = 9`, `old_hash = x'00'`} {
		_, err = w.config.Access.Exec(`UPDATE api_key SET ` + damage)
		require.NoError(t, err)
		require.NoError(t, w.projector.compareTables(t.Context()))
		require.Equal(t, want, readAccessKey(t, w, k.ID), damage)
	}
}

// TestAnOldSecretIsNotShownOfAKeyThatEnded: it is as dead as the key.
func TestAnOldSecretIsNotShownOfAKeyThatEnded(t *testing.T) {
	_, client, _ := runForRoles(t)
	_, key := keyFor(t, client)
	rotated, err := client.RotateKey(t.Context(), key.ID, time.Hour)
	require.NoError(t, err)
	require.Equal(t, key.Shown, rotated.OldShown)
	revoked, err := client.RevokeKey(t.Context(), key.ID)
	require.NoError(t, err)
	require.Empty(t, revoked.OldShown)
	require.Nil(t, revoked.OldEnds)
}

// TestWhatTakesAccessFromAKeyIsProjectedFirst, and what names or slows it is not.
func TestWhatTakesAccessFromAKeyIsProjectedFirst(t *testing.T) {
	allowed, rate, credits, name := []string{"192.0.2.1"}, int64(1), int64(1), "other"
	synctest.Test(t, func(t *testing.T) {
		w, client, _ := runForRoles(t)
		for _, statement := range []string{`UPDATE`, `DELETE`} {
			_, err := w.config.Access.Exec(`CREATE TRIGGER refuse_` + statement + ` BEFORE ` + statement + ` ON api_key BEGIN SELECT raise(ABORT, 'no'); END`)
			require.NoError(t, err)
		}
		for what, c := range map[string]struct {
			change func(*Client, int64) error
			takes  bool
		}{
			"networks": {func(c *Client, id int64) error {
				_, err := c.ChangeKey(context.Background(), id, KeyChange{Allowed: &allowed})
				return err
			}, true},
			"a rate": {func(c *Client, id int64) error {
				_, err := c.ChangeKey(context.Background(), id, KeyChange{PerMinute: &rate})
				return err
			}, false},
			"credits": {func(c *Client, id int64) error {
				_, err := c.ChangeKey(context.Background(), id, KeyChange{MonthlyCredits: &credits})
				return err
			}, false},
			"an end": {func(c *Client, id int64) error {
				_, err := c.ChangeKey(context.Background(), id, KeyChange{Expires: new(time.Now().Add(24 * time.Hour))})
				return err
			}, true},
			"a name": {func(c *Client, id int64) error {
				_, err := c.ChangeKey(context.Background(), id, KeyChange{Name: &name})
				return err
			}, false},
			"a secret at once": {func(c *Client, id int64) error { _, err := c.RotateKey(context.Background(), id, 0); return err }, true},
			"a secret later": {func(c *Client, id int64) error {
				_, err := c.RotateKey(context.Background(), id, time.Hour)
				return err
			}, false},
			"a secret later, and the one before at once": {func(c *Client, id int64) error {
				_, err := c.RotateKey(context.Background(), id, time.Hour)
				if err == nil {
					w.projector.mu.Lock()
					w.projector.pending = nil // the first rotation is projected
					w.projector.mu.Unlock()
					_, err = c.RotateKey(context.Background(), id, time.Hour)
				}
				return err
			}, true},
			"the key": {func(c *Client, id int64) error { _, err := c.RevokeKey(context.Background(), id); return err }, true},
		} {
			_, key := keyFor(t, client)
			require.NoError(t, c.change(client, key.ID), what)
			w.projector.mu.Lock()
			at := slices.IndexFunc(w.projector.pending, func(row *pendingRow) bool { return row.id == key.ID })
			require.GreaterOrEqual(t, at, 0, what)
			require.Equal(t, c.takes, w.projector.pending[at].takes, what)
			w.projector.mu.Unlock()
		}
	})
}

// TestAChangeOfAKeyIsFoundInTheLogOfItsAccount, whoever makes it: the owner looks for it there, and no path of
// these calls names the account.
func TestAChangeOfAKeyIsFoundInTheLogOfItsAccount(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, key := keyFor(t, client)
	path := fmt.Sprint("/v1/keys/", key.ID)
	for _, call := range []struct{ method, path, body string }{
		{http.MethodPatch, path, `{"name":"renamed"}`}, {http.MethodPost, path + "/rotate", `{"overlap_seconds":60}`}, {http.MethodDelete, path, ""},
	} {
		answer := answerTo(w, firstOperator, call.method, call.path, strings.NewReader(call.body))
		require.Equal(t, http.StatusOK, answer.Code, answer.Body)
		audit, err := client.AuditPage(t.Context(), account, ListQuery{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, call.method+" "+call.path, audit.Data[0].Act)
	}
}
