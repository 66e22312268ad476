package writer_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
)

// run opens a writer on the files in dir, and runs it until stop is called.
func run(t *testing.T, dir string, restored bool) (w *writer.Writer, stop func()) {
	ledger, access := openDatabases(t, dir)
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: token, Restored: restored})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return w, func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, ledger.Close())
		require.NoError(t, access.Close())
	}
}

// customer is an account with a key and credits.
func customer(t *testing.T, w *writer.Writer, name string) (writer.Account, writer.NewKey) {
	client := newClient(w, token)
	a, err := client.AddAccount(t.Context(), name, "", "scale")
	require.NoError(t, err)
	key, err := client.AddKey(t.Context(), a.ID, "")
	require.NoError(t, err)
	a, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 100})
	require.NoError(t, err)
	return a, key
}

// use has an edge answer lookups.
func use(t *testing.T, m *meter.Meter, a writer.Account, key writer.NewKey, lookups int) {
	for i := range lookups {
		v := m.Charge(t.Context(), charge.Request{
			ID: fmt.Sprintf("request-%d-%d", a.ID, i), Account: a.ID, Key: key.ID, PerMinute: 1000, Endpoint: charge.Companies, Outcome: charge.Found,
		})
		require.Empty(t, v.Code)
	}
}

// TestARestoredLedgerGivesNobodysIdAgain: an account is made after the backup, and used. The restored
// ledger does not know it, and makes one for somebody else.
func TestARestoredLedgerGivesNobodysIdAgain(t *testing.T) {
	for _, announced := range []bool{true, false} {
		t.Run(fmt.Sprintf("announced %v", announced), func(t *testing.T) {
			dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup.db")
			w, stop := run(t, dir, false)
			customer(t, w, "kept")
			node, err := newClient(w, token).AddNode(t.Context(), "one")
			require.NoError(t, err)
			db := openLedger(t, dir)
			_, err = db.Exec(`VACUUM INTO ?`, backup)
			require.NoError(t, err)
			dead, deadKey := customer(t, w, "dead")

			current := w
			m, err := meter.Open(meter.Config{State: t.TempDir(), WaitLimit: 10 * time.Second,
				Writer: meter.OverHTTP("http://writer", node.Token, &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					return writer.InProcess(current.Handler()).RoundTrip(r)
				})})})
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			done := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { done <- m.Run(ctx) }()
			use(t, m, dead, deadKey, 5)
			cancel()
			require.NoError(t, <-done)
			stop()
			require.NoError(t, db.Close())

			for _, suffix := range []string{"", "-wal", "-shm"} {
				require.NoError(t, os.RemoveAll(filepath.Join(dir, "ledger.db"+suffix)))
			}
			content, err := os.ReadFile(backup)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "ledger.db"), content, 0o600))
			current, stop = run(t, dir, announced)
			defer stop()
			restoring := func() bool {
				h, err := newClient(current, token).Health(t.Context())
				require.NoError(t, err)
				return h.Restoring
			}
			for !restoring() { // the edge shows that the ledger went back
				require.NoError(t, m.Exchange(t.Context()))
			}
			fresh, freshKey := customer(t, current, "new")
			require.NotEqual(t, dead.ID, fresh.ID)
			require.NotEqual(t, deadKey.ID, freshKey.ID)
			require.Eventually(t, func() bool { return m.Exchange(t.Context()) == nil && !restoring() }, 30*time.Second, time.Millisecond)
			fresh, err = newClient(current, token).Account(t.Context(), fresh.ID)
			require.NoError(t, err)
			require.Zero(t, fresh.Spent+fresh.Leased, "of the new account")
			lost, err := newClient(current, token).Account(t.Context(), dead.ID)
			require.NoError(t, err)
			require.EqualValues(t, 5, lost.Spent, "of the one that was lost")
			require.True(t, lost.Suspended)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
