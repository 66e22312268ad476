package push

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// TestATransactionWhoseAnswerIsLostIsNotSentAgain: the push asks first whether it was committed.
func TestATransactionWhoseAnswerIsLostIsNotSentAgain(t *testing.T) {
	f, before := newPushed(t)
	f.editSome()
	after := f.snapshot()
	f.commits.Store(0)
	report, err := Run(t.Context(), f.config(after))
	require.NoError(t, err)
	whole := f.commits.Load()
	require.Greater(t, whole, int64(1), "%+v", report)
	for lost := int64(1); lost <= whole; lost++ {
		_, err := Run(t.Context(), f.config(before))
		require.NoError(t, err)
		f.commits.Store(0)
		f.loseCommit.Store(lost)
		_, err = Run(t.Context(), f.config(after))
		require.NoError(t, err)
		require.Equal(t, whole, f.commits.Load(), "the answer to transaction %d was lost", lost)
		f.same(after)
	}
}

// TestATransactionThatNeverArrivedIsSentAgain: asking alone would leave it out. The first of a new primary
// leaves nothing to ask for.
func TestATransactionThatNeverArrivedIsSentAgain(t *testing.T) {
	f := newFixture(t)
	for _, dropped := range []int64{1, 2} {
		if dropped > 1 {
			f.editSome()
		}
		release := f.snapshot()
		f.commits.Store(0)
		f.dropCommit.Store(dropped)
		config, told := f.config(release), 0
		config.Failed = func(err error, attempt, of int, pause time.Duration) {
			told++
			require.Error(t, err)
			require.Equal(t, []any{1, attempts, firstPause}, []any{attempt, of, pause})
		}
		_, err := Run(t.Context(), config)
		require.NoError(t, err)
		require.Equal(t, 1, told)
		require.Greater(t, f.commits.Load(), dropped)
		f.same(release)
	}
}

// TestATransactionThatArrivesTwiceIsWrittenOnce: one that seemed lost, as at a primary that took more than a minute for it,
// and comes after it was sent again.
func TestATransactionThatArrivesTwiceIsWrittenOnce(t *testing.T) {
	f, before := newPushed(t)
	f.editSome()
	f.edit([]string{"*"}, `INSERT INTO company (cin, company_name, status, as_of, last_updated)
		VALUES ('U99999KA2025PTC999990', 'A0', 'ACTIVE', '2025-01-01', 5)`) // all other names move
	after := f.snapshot()
	f.commits.Store(0)
	report, err := Run(t.Context(), f.config(after))
	require.NoError(t, err)
	require.True(t, report.NewGeneration)
	whole := f.commits.Load()
	for late := int64(1); late <= whole; late++ {
		_, err := Run(t.Context(), f.config(before))
		require.NoError(t, err)
		f.commits.Store(0)
		f.lateCommit.Store(late)
		_, err = Run(t.Context(), f.config(after))
		require.NoError(t, err, "transaction %d came twice", late)
		require.Equal(t, whole+1, f.commits.Load())
		f.lateCommit.Store(0)
		f.same(after)
		require.Equal(t, []string{"[{ true}]"}, dump(t, f.primary(), `SELECT release FROM pushing`), "the push is complete")
	}
}

// TestARefusedTokenIsNotTriedAgain: a token that may only read, at a primary that asks for one. The
// same answer would come for half a minute.
func TestARefusedTokenIsNotTriedAgain(t *testing.T) {
	f := newFixture(t)
	release := f.snapshot()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	keyFile := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(keyFile, []byte(base64.RawURLEncoding.EncodeToString(public)), 0o600))
	server := &sqld.Server{Config: sqld.Config{
		Program: sqldtest.Program(t), Dir: filepath.Join(t.TempDir(), "data"), HTTP: testkit.FreePort(t), JWTKeyFile: keyFile,
	}}
	require.NoError(t, server.Start())
	t.Cleanup(server.Kill)
	sqldtest.Await(t, server, token(private, "rw"))
	for _, refused := range []string{token(private, "ro"), "no token"} {
		client, err := libsql.Open(server.URL(), refused)
		require.NoError(t, err)
		defer client.Close()
		p := &pusher{config: f.config(release), there: &side{db: client}}
		p.config.Primary = client
		p.config.Pause = func(context.Context, time.Duration) { t.Error("it was tried again") }
		require.ErrorIs(t, p.begin(t.Context(), state{}), libsql.ErrUnauthorized)
		require.ErrorIs(t, p.commit(t.Context(), nil), libsql.ErrUnauthorized)
	}
}

// token is a token of sqld that may read ("ro") or write as well ("rw").
func token(key ed25519.PrivateKey, access string) string {
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`)) + "." + encode([]byte(`{"a":"`+access+`"}`))
	return signed + "." + encode(ed25519.Sign(key, []byte(signed)))
}
